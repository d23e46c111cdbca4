"""Forked processes for tests: what they do, and what became of it."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

LONGEST_S = 120  # a child that hangs is killed


def run_in_fork(work: Callable[[], object], *, fork: Callable[[], int] = os.fork) -> str:
    """Do `work` in a forked process; what it returned, or the name and text of what it raised, or how it died."""
    reading, writing = os.pipe()
    child = fork()
    if not child:
        signal.alarm(LONGEST_S)
        try:
            outcome = str(work())
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
            if isinstance(error, AssertionError):
                traceback.print_exc()
        os.write(writing, outcome.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as answer:
        outcome = answer.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return outcome if code == 0 else f"exited with {code}"


def exit_code_of_fork(work: Callable[[], object]) -> int:
    """Do `work` in a forked process that ends as the caller does not: what is raised leaves only `work`."""
    child = os.fork()
    if not child:
        signal.alarm(LONGEST_S)
        code = 1
        try:
            work()
            code = 0
        except SystemExit as over:
            code = int(over.code or 0)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

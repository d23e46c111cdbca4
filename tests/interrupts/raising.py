"""Raise an exception at a chosen line of a call, or whenever a timer says so."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import octavo
from octavo.log.ownership import fork_safe

# `forget` is what `WeakCallbacks` gives to its weak references, `abandon` what a consumer that is gone calls, and
# `_raise_again` is below.
_FINALIZERS: Final = ("__del__", "forget", "abandon", "_raise_again")
_OURS: Final = str(Path(octavo.__file__).parent)
_HARMLESS: Final = ("records", "schemas", "spark")  # which change nothing, and take most of the lines


class Interrupted(BaseException):
    """What a signal handler raises."""


Line = tuple[str, int]  # a source file, and a line of it


def lines_of(change: Callable[[], object]) -> Counter[Line]:
    """How often a change runs each line at which it can be interrupted. It is done then."""
    lines: Counter[Line] = Counter()

    def note(line: Line) -> bool:
        lines[line] += 1
        return False

    _run(change, note)
    return lines


def chosen(lines: Counter[Line], seed: int) -> tuple[Line, int]:
    """Return a line, and how often it is run before. One seed after the other gives one line after the other."""
    order = sorted(lines)
    random.Random("lines").shuffle(order)
    line = order[seed % len(order)]
    return line, random.Random(seed).randrange(lines[line])


def raise_at_line(change: Callable[[], object], line: Line, before: int = 0) -> bool:
    """Call `change` and raise `Interrupted` at a line that was run so often `before`; whether it came that far.

    Lines count that are Octavo's, and those of context managers, in which an interrupt may come as well.
    """
    left = before

    def is_now(found: Line) -> bool:
        nonlocal left
        left -= found == line
        return left < 0

    return _run(change, is_now)


def _run(change: Callable[[], object], is_now: Callable[[Line], bool]) -> bool:
    """Call `change`, and raise before the first line of which `is_now` says so; whether there was one."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not _counts(frame):
            return None
        if event == "line" and is_now((frame.f_code.co_filename, frame.f_lineno)):
            sys.settrace(None)
            raise Interrupted
        return trace

    try:
        sys.settrace(trace)
        change()
    except Interrupted:
        return True
    finally:
        sys.settrace(None)
    return False


def _counts(frame: FrameType) -> bool:
    if _is_in_finalizer(frame):
        return False
    file = frame.f_code.co_filename
    return file == contextlib.__file__ or (
        file.startswith(_OURS) and file[len(_OURS) + 1 :].split("/")[0] not in _HARMLESS
    )


def _is_in_finalizer(frame: FrameType | None) -> bool:
    """Whether an exception would get nowhere: Python prints those of `__del__` and of weak references, and goes on."""
    while frame is not None:
        if frame.f_code.co_name in _FINALIZERS:
            return True
        frame = frame.f_back
    return False


def free_locks() -> None:
    """Release what only tracing leaves held: it raises also where a `with` has ended, before the lock is released.

    A signal handler is never called there. The same thread could go on nevertheless, but a flush takes other threads.
    """
    for lock in list(fork_safe._made):
        while hasattr(lock, "_is_owned") and lock._is_owned():
            lock.release()


class Timer:
    """Raises `Interrupted` at random moments."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(repr(seed))
        self._is_armed = False
        self._hook = sys.unraisablehook

    def interrupt(self, change: Callable[[], object], within_s: float) -> bool:
        """Call `change`, and raise once within so many seconds, if it takes that long; whether it did."""
        before = signal.signal(signal.SIGALRM, self._raise)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._raise_again
        try:
            try:
                self._is_armed = True
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + self._random.random() * within_s)
                change()
            finally:
                self._is_armed = False
        except Interrupted:
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            sys.unraisablehook = self._hook
        return False

    def _raise(self, _: int, frame: FrameType | None) -> None:
        if _is_in_finalizer(frame):
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
        elif self._is_armed:
            self._is_armed = False  # so that there is one, and it is caught
            raise Interrupted

    def _raise_again(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Try again a little later where an interrupt got nowhere, as in callbacks of weak sets and the collector.

        An interrupt between `open` and the `with` around it leaves the file to the collector, which warns.
        """
        if isinstance(unraisable.exc_value, Interrupted):
            self._is_armed = True
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
        elif not isinstance(unraisable.exc_value, ResourceWarning):
            self._hook(unraisable)

"""A child process that does cases with the kernels in one mode, watched by the parent.

Compiled code that reads where it should not takes its process with it, and compiled code that hangs cannot be
interrupted: hence another process, one for many cases.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.corruption.worker import PROGRESS_SIZE, Case

MODES: Final = ("interpreted", "compiled", "checked")
STARTING: Final = 280.0  # seconds: compiling takes twenty, on a busy machine ten times that; a test may take 600
CASE: Final = 120.0  # seconds for one case, of which most take less than a millisecond

_ROOT: Final = Path(__file__).parents[2]


class Died(AssertionError):
    """The child died in, or was killed for not finishing, the case `name`."""

    def __init__(self, mode: str, name: str, how: str, last_words: str) -> None:
        super().__init__(f"with {mode} kernels, {how} in the case: {name}\n{last_words}")
        self.name = name


class Child:
    """Does cases in one mode. Starts when first needed, and again where a case was the end of it."""

    def __init__(self, mode: str, *, case_seconds: float = CASE) -> None:
        self.mode = mode
        self._case_seconds = case_seconds
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="octavo-damage-")
        self._progress = Path(self._folder.name) / "progress"
        self._errors = Path(self._folder.name) / "stderr"

    def run(
        self, cases: Callable[..., Iterator[Case]], *arguments: object, max_grown: int = 64 << 20
    ) -> dict[str, Any]:
        """Does the cases that `cases(*arguments)` gives there.

        Raises `AssertionError` where one fails, or where `max_grown` more bytes than before were resident.
        """
        process = self._started()
        assert process.stdin is not None
        request = {"module": cases.__module__, "function": cases.__name__, "arguments": arguments}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._answer(process))
        if answer["problems"]:
            raise AssertionError(f"with {self.mode} kernels:\n" + "\n".join(answer["problems"]))
        assert answer["count"], "there were no cases"
        assert answer["grown"] <= max_grown, f"{answer['grown']:,} bytes more were resident at the worst"
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._end(self._process)
        self._folder.cleanup()

    def doing(self) -> str:
        """The number and the name of the case that is being done."""
        return self._progress.read_bytes().partition(b"\0")[0].decode(errors="replace")

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None:
            return self._process
        self._progress.write_bytes(bytes(PROGRESS_SIZE))
        environment = {
            **os.environ,
            "OCTAVO_KERNELS": self.mode,
            # An allocator that reserves no more than it is asked for, so that a limit on address space means something.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)]),
        }
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.corruption.worker", str(self._progress)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
            )
        return self._process

    def _answer(self, process: subprocess.Popen[str]) -> str:
        """The child's answer, when it is there."""
        assert process.stdout is not None
        doing, since = self.doing(), time.monotonic()
        while not select.select([process.stdout], [], [], 0.2)[0]:
            if (now := self.doing()) != doing:
                doing, since = now, time.monotonic()
            allowed = STARTING if "starting" in doing else self._case_seconds
            if time.monotonic() - since > allowed:
                raise self._died(process, f"there was no end after {allowed:.0f} seconds")
        answer = process.stdout.readline()
        if not answer:
            raise self._died(process, "the process died")
        return answer

    def _died(self, process: subprocess.Popen[str], how: str) -> Died:
        code = self._end(process)
        if code < 0:
            how += f" ({signal.Signals(-code).name})"
        last_words = self._errors.read_text(errors="replace")[-4000:]
        return Died(self.mode, self.doing(), how, last_words)

    def _end(self, process: subprocess.Popen[str]) -> int:
        """Ends the process, if it has not ended by itself; its exit code."""
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)  # what died of itself should say of what
        process.kill()
        self._process = None
        return process.wait()

"""One kind of soak in a process of its own, which is ended with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.soak.kinds import ROOT, Kind, bin_of

_TAG: Final = "OCTAVO_SOAK_PROCESS"  # what is started inherits it, whatever becomes of its parents
_TRACE_S: Final = 2.0
_TEAR_DOWN_S: Final = 20.0
_NOTHING_COLLECTED: Final = 5


class KindProcess:
    """The tests of a kind, for so many seconds."""

    def __init__(self, kind: Kind, run: int, seconds: float, folder: Path, python: str = sys.executable) -> None:
        self.kind: Final = kind
        self.share: Final = seconds
        self._bin: Final = bin_of(kind, python)
        self.log: Final = folder / f"{kind.name}.log"
        self._report: Final = self.log.with_suffix(".jsonl")
        self._report.unlink(missing_ok=True)
        self._begin: Final = time.monotonic()
        self._end: float | None = None
        self._ended_because = ""
        self._tag: Final = f"{os.getpid()}:{time.time_ns()}"
        options = ["-m", kind.mark, "--soak-seconds", f"{seconds:.0f}", "--soak-run", str(run)]
        options += ["--soak-report", str(self._report), "--timeout", "0", "--durations", "10"]
        options += ["-v", "-p", "no:cacheprovider", "-o", "tmp_path_retention_policy=failed"]
        # Set-up has brought all that is needed: with CI set, a test fails that finds something missing.
        environment = {"CI": "true", **os.environ, _TAG: self._tag}
        with self.log.open("wb") as log:
            self._process: Final = subprocess.Popen(
                [f"{self._bin}/python", "-m", "pytest", *options, *kind.tests],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def took(self) -> float:
        """Seconds since it has begun, or until it ended."""
        return (time.monotonic() if self._end is None else self._end) - self._begin

    def is_over(self) -> bool:
        """Whether it has ended by itself, after which nothing of it is left."""
        if self._end is None and self._process.poll() is not None:
            self._kill_what_is_left()
            self._end = time.monotonic()
        return self._end is not None

    def end(self, because: str) -> None:
        """Have it say where it is, tear down what it has set up, and be gone."""
        self._ended_because = because
        self._signal(signal.SIGUSR1)
        self._wait(_TRACE_S)
        self._signal(signal.SIGINT)
        self._wait(_TEAR_DOWN_S)
        self._kill_what_is_left()
        self._process.wait()
        self._end = time.monotonic()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)

    def _wait(self, seconds: float) -> None:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def _kill_what_is_left(self) -> None:
        """Kill its group, and what has left that: brokers and drivers have sessions of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pid in self._tagged():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _tagged(self) -> Iterator[int]:
        wanted = f"{_TAG}={self._tag}".encode()
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                is_ours = wanted in path.read_bytes().split(b"\0")
            except OSError:  # it has ended, or is somebody else's
                continue
            if is_ours:
                yield int(path.parent.name)

    # What there is to tell

    @property
    def told(self) -> list[dict[str, Any]]:
        """What it says of each test that has ended, and last what it has not come to."""
        if not self._report.exists():
            return []
        return [json.loads(line) for line in self._report.read_text().splitlines() if line.endswith("}")]

    @property
    def tests(self) -> list[dict[str, Any]]:
        return [each for each in self.told if "test" in each]

    @property
    def left(self) -> int:
        """How many tests wait for another run."""
        return sum(len(each["left"]) for each in self.told if "left" in each)

    @property
    def cases(self) -> int:
        return sum(each["cases"] for each in self.tests)

    @property
    def problems(self) -> list[str]:
        """What went wrong, each with the command that does it again."""
        problems = [f"{self.again(each)}" for each in self.tests if each["outcome"] == "failed"]
        if self._ended_because:
            problems.append(f"{self._ended_because} in {self.again(self._now)}")
        elif not problems and self._process.returncode not in (None, 0, _NOTHING_COLLECTED):
            problems.append(f"it ended with {self._process.returncode} in {self.again(self._now)}")
        return problems

    @property
    def _now(self) -> dict[str, Any]:
        """The case that it was doing last."""
        try:
            found: dict[str, Any] = json.loads(self._report.with_suffix(".now").read_bytes())
        except (OSError, ValueError):
            return {"test": " ".join(self.kind.tests), "seed": None}
        return found

    def again(self, told: dict[str, Any]) -> str:
        """The command that does a case again."""
        command = [f"{self._bin}/pytest", "-m", self.kind.mark, "--timeout", "0"]
        if told.get("seed") is not None:
            command += ["--soak-seed", str(told["seed"])]
        if told.get("share") is not None:
            command += ["--soak-seconds", f"{told['share']:.0f}"]
        return f"{shlex.join(command)} {shlex.quote(told['test'])}"

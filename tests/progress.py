"""A plug-in of pytest that tells a person how far a long run is: `pytest -p tests.progress`.

In place of dots it writes a line: how many tests of how many, how long still, and which have been running longest. A
terminal has the line written over, a file gets one every half minute. A failure is printed when it happens, and not
again at the end. The run ends with a table of the time by folder, and leaves the seconds of each test in
`build/seconds.json`, from which `python -m tests.seconds` makes the list by which tests are ordered.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.seconds import LAST_RUN, expected, folder_of

_TERMINAL_S: Final = 0.5  # between two lines
_FILE_S: Final = 30.0
_SLOW_S: Final = 5.0  # what runs longer is named
_NAMED: Final = 3
_TRUSTED_S: Final = 120.0  # so much of the list is believed before the run itself has shown how fast it is
_UNKNOWN_S: Final = 0.05  # a test that the list of slow tests does not name


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config), "octavo-progress")


class Progress:
    """What is known of a run in the process that the person started."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._terminal: Final = sys.stderr.isatty()
        self._expected: Final = expected()
        self._workers: Final = getattr(config.option, "numprocesses", None) or 1
        self._began_s: float | None = None
        self._printed_s = 0.0
        self._width = 0
        self._left: dict[str, float] = {}  # expected seconds of what is not done
        self._total = 0
        self._failed = 0
        self._running: dict[str, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:  # without workers
            self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        self._expect(ids)

    def _expect(self, ids: Sequence[str]) -> None:
        if not self._total:  # each worker collects the same
            self._left = {name: self._expected.get(name, _UNKNOWN_S) for name in ids}
            self._total = len(self._left)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = time.monotonic()
        self._began_s = self._began_s or time.monotonic()
        self._tell()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed += report.when == "call"
            self._print(f"FAILED {report.nodeid} ({report.when})\n{report.longreprtext}\n")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)
        self._left.pop(nodeid, None)
        self._tell()

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letter for a test that passed or failed: `report.outcome` is still counted."""
        if report.when == "call" or not report.passed:
            return (report.outcome if report.when == "call" or report.skipped else "error", "", "")
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._erase()
        self._config.option.tbstyle = "no"  # failures have been printed
        if self._total:
            LAST_RUN.parent.mkdir(exist_ok=True)
            LAST_RUN.write_text(json.dumps(dict(sorted(self._seconds.items())), indent=0) + "\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        by_folder: defaultdict[str, list[float]] = defaultdict(list)
        for name, seconds in self._seconds.items():
            by_folder[folder_of(name)].append(seconds)
        terminalreporter.section("seconds of tests, summed over all workers")
        for folder, each in sorted(by_folder.items(), key=lambda pair: -sum(pair[1])):
            terminalreporter.write_line(f"{sum(each):8.0f}  {len(each):6,}  {folder}")

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._printed_s < (_TERMINAL_S if self._terminal else _FILE_S) or not self._total:
            return
        self._printed_s = now
        self._print(self._line(now), passing=True)

    def _line(self, now: float) -> str:
        done = self._total - len(self._left)
        slow = sorted((since, name) for name, since in self._running.items() if now - since > _SLOW_S)[:_NAMED]
        parts = [f"{done:,} of {self._total:,} tests", self._still(now)]
        if self._failed:
            parts.insert(1, f"{self._failed} failed")
        if slow:
            parts.append("running: " + ", ".join(f"{Path(name).name} {now - since:.0f} s" for since, name in slow))
        return " · ".join(parts)

    def _still(self, now: float) -> str:
        """How long still: as the list says at first, and more and more by how long what is done took."""
        left = sum(self._left.values())
        done = sum(self._expected.get(name, _UNKNOWN_S) for name in self._seconds if name not in self._left)
        since = now - (self._began_s or now)
        seconds = left * (since + _TRUSTED_S / self._workers) / (done + _TRUSTED_S)
        return f"about {seconds / 60:.0f} min still" if seconds >= 90 else f"about {seconds:.0f} s still"

    def _print(self, text: str, *, passing: bool = False) -> None:
        self._erase()
        if passing and self._terminal:
            text = text[: shutil.get_terminal_size().columns - 1]
            self._width = len(text)
            print(text, end="", flush=True, file=sys.stderr)
        else:
            print(text, flush=True, file=sys.stderr)

    def _erase(self) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", flush=True, file=sys.stderr)
            self._width = 0

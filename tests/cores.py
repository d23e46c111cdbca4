"""Has a process that crashes tell why: where its threads were, and a core where the system writes one into a folder.

Pytest prints the first for itself and its workers. Here all other interpreters that tests start do it as well, and all
processes may leave cores. Whether one does is said at the end of the run, which has failed then.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

PATTERN: Final = Path("/proc/sys/kernel/core_pattern")


class Cores:
    """Looks for the cores of one run: where it was started, and in the folders of its tests."""

    def __init__(self, config: pytest.Config, pattern: str) -> None:
        self._config: Final = config
        self._name: Final = re.sub("%.", "*", pattern)
        self._began_s: Final = time.time()
        self._found: list[Path] = []

    def _folders(self) -> Iterator[tuple[Path, str]]:
        for folder in {self._config.rootpath, self._config.invocation_params.dir}:
            yield folder, ""
        folders: Any = getattr(self._config, "_tmp_path_factory", None)
        if folders is not None:
            yield folders.getbasetemp(), "**/"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        names = (self._name, f"{self._name}.[0-9]*")  # the second if `core_uses_pid` is set
        paths = (path for folder, below in self._folders() for name in names for path in folder.glob(below + name))
        self._found = sorted({path for path in paths if path.is_file() and path.stat().st_mtime >= self._began_s - 1})
        if self._found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for path in self._found:
            terminalreporter.write_line(f"A process has crashed, and its core is {path}: gdb -c {path}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    os.environ["PYTHONFAULTHANDLER"] = "1"
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    if hasattr(config, "workerinput") or not PATTERN.exists():
        return
    pattern = PATTERN.read_text().strip()
    if "/" not in pattern and not pattern.startswith("|"):  # otherwise the system has them somewhere else
        config.pluginmanager.register(Cores(config, pattern), "octavo-cores")

"""A plug-in of pytest for runs without what only Linux has: `make without-linux`.

`sitecustomize.py` takes that away from all processes. The tests that cannot be run so are left out, and the end of the
run says which and why.
"""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import Final

import pytest

from tests.without_linux.left_out import LEFT_OUT

_FOLDER: Final = str(Path(__file__).parent)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run in a process that still has what should have been taken away."""
    if hasattr(select, "epoll") or _FOLDER not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        raise pytest.UsageError(f"PYTHONPATH has to begin with {_FOLDER}: see `make without-linux`")


def pytest_report_header() -> str:
    """Say what kind of run this is."""
    return "without what only Linux has (tests/without_linux)"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what cannot be run so. Raises `pytest.UsageError` if a name in the list is that of no test any more."""
    left_out = [item for item in items if name_of(item) in LEFT_OUT]
    files = {item.nodeid.partition("::")[0] for item in items}
    unknown = {name for name in LEFT_OUT if name.partition("::")[0] in files} - {name_of(item) for item in left_out}
    if unknown and not any("::" in each for each in config.args):
        raise pytest.UsageError(f"tests/without_linux/left_out.py names what is no test: {', '.join(sorted(unknown))}")
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def name_of(item: pytest.Item) -> str:
    """Return the name of a test without its parameters."""
    return item.nodeid.partition("[")[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    terminalreporter.section("left out, because it needs what only Linux has")
    for reason in dict.fromkeys(LEFT_OUT.values()):
        names = [name for name, why in LEFT_OUT.items() if why == reason]
        terminalreporter.write_line(f"{reason}:")
        for name in names:
            terminalreporter.write_line(f"    {name}")

"""A plug-in of pytest for runs without what only Linux has: `make without-linux`.

`sitecustomize.py` takes that away from all processes, and this leaves out the tests that cannot be run so, each with
the reason, which is printed at the end.
"""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import Final

import pytest

LEFT_OUT: Final[dict[str, str]] = {}

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
    """Leave out what cannot be run."""
    left_out = [item for item in items if reason_of(item.nodeid) is not None]
    if left_out:
        items[:] = [item for item in items if reason_of(item.nodeid) is None]
        config.hook.pytest_deselected(items=left_out)


def reason_of(node: str) -> str | None:
    """Return why a test is left out, if it is."""
    return next(
        (
            reason
            for begin, reason in LEFT_OUT.items()
            if node == begin or node.startswith((f"{begin}::", f"{begin}[", f"{begin}/"))
        ),
        None,
    )

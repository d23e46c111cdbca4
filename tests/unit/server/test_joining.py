"""A member of a cluster that has not found its controllers yet."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import octavo
from tests.unit.log.directory.test_member_directory import NODE, open_at


class _Enough(Exception):
    """The test has seen enough."""


def test_nothing_is_deleted_before_the_controllers_have_told_the_settings(tmp_path: Path) -> None:
    """What is on the disk may be old, and need not have been committed."""
    open_at(tmp_path).close()
    before, turns = set(threading.enumerate()), 0

    def look(awaited: str) -> None:
        nonlocal turns
        turns += 1
        new = {each.name for each in set(threading.enumerate()) - before}
        assert not new & {"octavo-background", "octavo-cleaner"}, awaited
        if turns == 2:  # by now the server is complete
            raise _Enough

    config = {
        "process.roles": "broker",
        "node.id": str(NODE),
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
    }
    with pytest.raises(_Enough):
        octavo.serve(config=config, on_wait=look, say=lambda _: None)

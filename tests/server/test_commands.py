"""`octavo topics`, `produce` and `consume`, on Octavo's own broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.server.serving import serve
from tests.server.commands import SCENES, Commands


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_commands(scene: Callable[[Commands], None], tmp_path: Path) -> None:
    with serve() as server:
        scene(Commands(server.bootstrap_servers, tmp_path))


def test_nobody_answers(tmp_path: Path) -> None:
    with serve() as server:
        address = server.bootstrap_servers
    told = Commands(address, tmp_path)("topics", "--list", timeout_s=0.1)
    assert told == (2, "", f"octavo: the broker at {address} does not answer: Connection refused\n")

"""Whatever is raised in the middle of a change, it is undone or the log is marked as failed: never half done, going on.

The exception comes at lines of each change, and at moments that a timer chooses. Then the directory is looked at in the
process that goes on, after a kill, and after it was closed. Every day a few of each are tried; in the soak one line
after the other, and many moments.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from octavo.errors import LogError
from octavo.log import DataDirectory
from tests.interrupts.changes import CHANGES, TOPIC, batch, held, make_world, open_directory
from tests.interrupts.judging import Interrupter
from tests.interrupts.raising import Timer, chosen
from tests.soak.plugin import Soak

A_FEW: Final = 3


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory to be copied."""
    folder = tmp_path_factory.mktemp("world") / "data"
    make_world(folder)
    return folder


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_done_or_undone(world: Path, tmp_path: Path, change: str) -> None:
    interrupter = Interrupter(world, tmp_path, change)
    lines = interrupter.lines()
    for seed in range(A_FEW):
        interrupter.at_line(*chosen(lines, seed))
        interrupter.by_timer(seed)


@pytest.mark.soak
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_done_or_undone_wherever_it_is_interrupted(
    world: Path, tmp_path: Path, change: str, soak: Soak
) -> None:
    interrupter = Interrupter(world, tmp_path, change)
    lines = interrupter.lines()
    timers = landed = 0
    for seed in soak.seeds():
        interrupter.at_line(*chosen(lines, seed))
        timers += 1
        landed += interrupter.by_timer(seed)
    assert landed >= timers // 10 - 5, f"{landed} of {timers} timers landed inside"


def append_under_fire(world: Path, folder: Path, rounds: Iterable[int], seed: object) -> int:
    """Append again and again while a timer raises; checks what was acknowledged. How many interrupts there were."""
    shutil.copytree(world, folder)
    data = open_directory(folder)
    data.log(TOPIC, 0).append(batch(-1))  # so that nothing has to be imported or compiled under fire
    acknowledged: dict[int, bytes] = {}
    timer = Timer(seed)
    landed = 0

    def append(first: int) -> None:
        for key in range(first, first + 1000):
            done = data.log(TOPIC, 0).append(batch(key))
            acknowledged[done.base_offset] = b"%d" % key

    for number in rounds:
        try:
            landed += timer.interrupt(partial(append, number * 1000), 1e-3)
        except LogError:  # it has failed, and says so
            data.close()
            data = open_directory(folder)
    _check(data, acknowledged)
    killed = shutil.copytree(folder, folder.with_name("killed"), ignore=shutil.ignore_patterns(".lock"))
    data.close()
    for each in (folder, killed):
        with open_directory(each) as data:
            _check(data, acknowledged)
    return landed


def _check(data: DataDirectory, acknowledged: dict[int, bytes]) -> None:
    """No offset is there twice (`held` sees to that), and at each that was acknowledged is the right record."""
    found = {offset: key for offset, key, _ in held(data.log(TOPIC, 0)).records}
    assert acknowledged.items() <= found.items()


def test_nothing_acknowledged_is_lost_and_no_offset_given_twice(world: Path, tmp_path: Path) -> None:
    assert append_under_fire(world, tmp_path / "data", range(1000), "append") > 500


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_in_many_interrupts(world: Path, tmp_path: Path, soak: Soak) -> None:
    append_under_fire(world, tmp_path / "data", soak.rounds(), soak.seed)

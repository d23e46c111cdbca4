"""Whatever is raised in the middle of a change, it is undone or the log is marked as failed: never half done, going on.

The exception comes at lines of each change, and at moments that a timer chooses. Then the directory is looked at in the
process that goes on, after a kill, and after it was closed. Every day a few of each are tried; in `make soak` all
lines, each once, and many moments.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from octavo.errors import LogError
from octavo.log import DataDirectory
from tests.interrupts.changes import CHANGES, TOPIC, batch, held, make_world, open_directory
from tests.interrupts.judging import Interrupter
from tests.interrupts.raising import Timer

A_FEW: Final = 3
MANY: Final = 100


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory to be copied."""
    folder = tmp_path_factory.mktemp("world") / "data"
    make_world(folder)
    return folder


def interrupt_at_lines(interrupter: Interrupter, change: str, most: int | None = None) -> int:
    """Interrupt a change once at each of its lines, or at so many of them; at how many that was."""
    lines = interrupter.lines()
    random = Random(change)
    chosen = sorted(lines) if most is None else random.sample(sorted(lines), most)
    for line in chosen:
        interrupter.at_line(line, random.randrange(lines[line]))
    return len(chosen)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_done_or_undone(world: Path, tmp_path: Path, change: str) -> None:
    interrupter = Interrupter(world, tmp_path, change)
    interrupt_at_lines(interrupter, change, A_FEW)
    for seed in range(A_FEW):
        interrupter.by_timer(seed)


@pytest.mark.soak
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_done_or_undone_wherever_it_is_interrupted(
    world: Path, tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupter = Interrupter(world, tmp_path, change)
    lines = interrupt_at_lines(interrupter, change)
    landed = sum(interrupter.by_timer(seed) for seed in range(MANY))
    with capsys.disabled():
        print(f"\n{change}: at each of {lines} lines; {landed} of {MANY} timers landed inside")  # noqa: T201 - how much
    assert landed > MANY // 10


def append_under_fire(world: Path, folder: Path, count: int) -> int:
    """Append again and again while a timer raises; checks what was acknowledged. How many interrupts there were."""
    shutil.copytree(world, folder)
    data = open_directory(folder)
    data.log(TOPIC, 0).append(batch(-1))  # so that nothing has to be imported or compiled under fire
    acknowledged: dict[int, bytes] = {}
    timer = Timer("append")
    landed = 0

    def append(first: int) -> None:
        for key in range(first, first + 1000):
            done = data.log(TOPIC, 0).append(batch(key))
            acknowledged[done.base_offset] = b"%d" % key

    for number in range(count):
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
    assert append_under_fire(world, tmp_path / "data", 1000) > 500


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_in_many_interrupts(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    landed = append_under_fire(world, tmp_path / "data", 12_000)
    with capsys.disabled():
        print(f"\nappends: {landed} interrupts")  # noqa: T201 - how much was tried

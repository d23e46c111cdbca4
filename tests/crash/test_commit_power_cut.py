"""The power goes off, or the process dies, at any operation of a commit: each row is there once or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.clock import Clock
from tests.crash.committing import DATA, CommitWorkload, Known, judge, open_data
from tests.crash.disk import ANY_NAMES, POWER_CUTS, PROCESS_DIED, Image, Survival, write_image
from tests.crash.storage import CrashStorage, FastStorage, Moment, PowerCut

SEEDS: Final = range(4)
CRASHES: Final = 100  # of each


def run(seed: int, folder: Path, steps: int) -> tuple[CommitWorkload, CrashStorage]:
    folder.mkdir()
    (folder / DATA).mkdir()
    storage = CrashStorage(folder)
    workload = CommitWorkload(seed, folder, storage)
    workload.run(steps)
    return workload, storage


def known_at(workload: CommitWorkload, number: int) -> Known:
    """What is known when the operation of this number is not over."""
    return [known for begin, known in workload.history if begin <= number][-1]


def ways(random: Random) -> Iterator[Survival]:
    return cycle([*random.sample(POWER_CUTS, len(POWER_CUTS)), *ANY_NAMES, PROCESS_DIED])


def crash(folder: Path, image: Image, known: Known, clock: Clock, name: str) -> None:
    """Have a crash in `folder`, look at what is left, and remove it."""
    write_image(image, folder)
    try:
        judge(folder, known, FastStorage(), clock)
    except Exception as error:
        error.add_note(name)
        raise
    finally:
        shutil.rmtree(folder)


def crash_often(seed: int, folder: Path, at_least: int, steps: int = 10) -> int:
    """Crash some commits at so many of their operations, or a few more; how many crashes that were."""
    workload, storage = run(seed, folder / "disk", steps)
    random = Random(seed)
    way = ways(random)
    every = max(1, len(storage.journal) // at_least)
    count = 0
    for number, disk in storage.crash_points():
        if number % every == seed % every:
            survival = next(way)
            name = f"seed {seed}, operation {number}, {survival}"
            crash(folder / "image", disk.image(survival, random), known_at(workload, number), workload.clock, name)
            count += 1
    return count


@pytest.mark.parametrize("seed", SEEDS)
def test_each_row_is_there_once_or_not_at_all(seed: int, folder: Path) -> None:
    assert crash_often(seed, folder, CRASHES) >= CRASHES


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_each_row_is_there_once_or_not_at_all_at_every_operation(seed: int, folder: Path) -> None:
    assert crash_often(seed, folder, 1_000_000) >= 300


# --------------------------------------------------------------------------------------- a crash, and another after it


def crash_recoveries(seed: int, folder: Path, every: int, again_every: int) -> int:
    """Crash commits, and then the next opener as well; how many crashes of openers that were."""
    workload, storage = run(seed, folder / "disk", 8)
    random = Random(seed)
    way = cycle(random.sample(POWER_CUTS, len(POWER_CUTS)))
    count = 0
    for number, disk in storage.crash_points():
        if number % every != seed % every:
            continue
        survival = next(way)
        write_image(disk.image(survival, random), folder / "first")
        recovery = CrashStorage(folder / "first")
        open_data(folder / "first", recovery, workload.clock).close()
        for again, after in recovery.crash_points():
            if random.randrange(again_every) == 0:
                second = random.choice((*POWER_CUTS, *ANY_NAMES))
                name = f"seed {seed}, operation {number}, {survival}; then operation {again}, {second}"
                image = after.image(second, random)
                crash(folder / "second", image, known_at(workload, number), workload.clock, name)
                count += 1
        shutil.rmtree(folder / "first")
    return count


@pytest.mark.parametrize("seed", range(100, 102))
def test_a_crash_of_the_next_opener_leaves_each_row_once_too(seed: int, folder: Path) -> None:
    assert crash_recoveries(seed, folder, 25, 12) >= 20


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000, 2040))
def test_crashes_of_the_next_opener_leave_each_row_once_too(seed: int, folder: Path) -> None:
    assert crash_recoveries(seed, folder, 7, 7) >= 100


# ------------------------------------------------------------------------------------------- a process that is stopped


def die_and_go_on(seed: int, folder: Path, every: int, lives: int = 4) -> int:
    """Stop a process, let another repeat what it began, and have a power cut later; how many power cuts that were."""
    random = Random(seed)
    (folder / "disk" / DATA).mkdir(parents=True)
    storage = CrashStorage(folder / "disk")
    workload = CommitWorkload(seed, folder / "disk", storage)
    workload.run(2)
    for _ in range(lives):
        storage.stop_at(len(storage.journal) + random.randrange(120), random.choice(list(Moment)))
        with pytest.raises(PowerCut):
            workload.run(1000)
        storage.restart()
        workload.run(2)
    way = ways(random)
    count = 0
    for number, disk in storage.crash_points():
        if number % every == seed % every:
            survival = next(way)
            name = f"seed {seed}, operation {number}, {survival}"
            crash(folder / "image", disk.image(survival, random), known_at(workload, number), workload.clock, name)
            count += 1
    return count


@pytest.mark.parametrize("seed", range(200, 203))
def test_a_process_that_goes_on_for_a_dead_one_commits_each_row_once(seed: int, folder: Path) -> None:
    """It finds in the page cache what the other left there, of which much is not on the disk."""
    assert die_and_go_on(seed, folder, 15) >= 30


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3000, 3040))
def test_processes_that_go_on_for_dead_ones_commit_each_row_once(seed: int, folder: Path) -> None:
    assert die_and_go_on(seed, folder, 1) >= 300

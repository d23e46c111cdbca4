"""The power goes off, or the process dies, at any operation of an export: each row is in the table once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.crash.disk import ANY_NAMES, POWER_CUTS, PROCESS_DIED, Image, Survival, Write, write_image
from tests.crash.exporting import TABLE, ExportWorkload, Known, export, judge
from tests.crash.storage import CrashStorage, FastStorage, Moment, PowerCut

SEEDS: Final = range(4)
CRASHES: Final = 55  # of each


def run(seed: int, folder: Path, steps: int) -> tuple[ExportWorkload, CrashStorage]:
    (folder / "disk").mkdir()
    storage = CrashStorage(folder / "disk")
    workload = ExportWorkload(seed, folder / "disk", folder / "logs", storage)
    workload.run(steps)
    return workload, storage


def known_at(workload: ExportWorkload, number: int) -> Known:
    """What is known when the operation of this number is not over."""
    return [known for begin, known in workload.history if begin <= number][-1]


def ways(random: Random) -> Iterator[Survival]:
    return cycle([*random.sample(POWER_CUTS, len(POWER_CUTS)), *ANY_NAMES, PROCESS_DIED])


def crash(folder: Path, image: Image, known: Known, name: str) -> None:
    """Have a crash in `folder`, look at what is left, and remove it."""
    write_image(image, folder)
    try:
        judge(folder, known, FastStorage())
    except Exception as error:
        error.add_note(name)
        raise
    finally:
        shutil.rmtree(folder)


def crash_often(seed: int, folder: Path, at_least: int, steps: int = 4) -> int:
    """Crash some exports at so many of their operations, or a few more; how many crashes that were."""
    workload, storage = run(seed, folder, steps)
    random = Random(seed)
    way = ways(random)
    chosen = _chosen(storage, at_least, seed)
    count = 0
    for number, disk in storage.crash_points():
        if number in chosen:
            survival = next(way)
            name = f"seed {seed}, operation {number}, {survival}"
            crash(folder / "image", disk.image(survival, random), known_at(workload, number), name)
            count += 1
    return count


def _chosen(storage: CrashStorage, at_least: int, seed: int) -> set[int]:
    """Choose so many operations, or a few more. Of the many small writes of pyarrow, only some are among them."""
    if at_least >= len(storage.journal):
        return set(range(len(storage.journal) + 1))
    numbers = [number for number, each in enumerate(storage.journal) if not isinstance(each, Write) or number % 9 == 0]
    every = max(1, len(numbers) // at_least)
    return set(numbers[seed % every :: every])


@pytest.mark.parametrize("seed", SEEDS)
def test_each_row_is_in_the_table_once(seed: int, folder: Path) -> None:
    assert crash_often(seed, folder, CRASHES) >= CRASHES


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_each_row_is_in_the_table_once_at_every_operation(seed: int, folder: Path) -> None:
    assert crash_often(seed, folder, 1_000_000, steps=6) >= 300


# ---------------------------------------------------------------------------------------- a crash, and another after it


def crash_recoveries(seed: int, folder: Path, every: int, again_every: int) -> int:
    """Crash exports, and then the next one as well; how many crashes of the next one that were."""
    workload, storage = run(seed, folder, 3)
    random = Random(seed)
    way = cycle(random.sample(POWER_CUTS, len(POWER_CUTS)))
    count = 0
    for number, disk in storage.crash_points():
        if number % every != seed % every:
            continue
        survival = next(way)
        write_image(disk.image(survival, random), folder / "first")
        known = known_at(workload, number)
        recovery = CrashStorage(folder / "first")
        export(known.logs, folder / "first" / TABLE, recovery)
        for again, after in recovery.crash_points():
            if random.randrange(again_every) == 0:
                second = random.choice((*POWER_CUTS, *ANY_NAMES))
                name = f"seed {seed}, operation {number}, {survival}; then operation {again}, {second}"
                pending = Known(known.logs, known.appended, frozenset(), is_merging=True)
                crash(folder / "second", after.image(second, random), pending, name)
                count += 1
        shutil.rmtree(folder / "first")
    return count


def test_a_crash_of_the_next_export_leaves_each_row_once_too(folder: Path) -> None:
    assert crash_recoveries(100, folder, 40, 20) >= 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000, 2020))
def test_crashes_of_the_next_export_leave_each_row_once_too(seed: int, folder: Path) -> None:
    assert crash_recoveries(seed, folder, 7, 7) >= 100


# ------------------------------------------------------------------------------------------ a process that is stopped


def die_and_go_on(seed: int, folder: Path, every: int, lives: int) -> int:
    """Stop a process, let another go on, and have a power cut later; how many power cuts that were."""
    random = Random(seed)
    (folder / "disk").mkdir()
    storage = CrashStorage(folder / "disk")
    workload = ExportWorkload(seed, folder / "disk", folder / "logs", storage)
    workload.run(1)
    for _ in range(lives):
        storage.stop_at(len(storage.journal) + random.randrange(120), random.choice(list(Moment)))
        with pytest.raises(PowerCut):
            workload.run(1000)
        storage.restart()
        workload.run(1)
    way = ways(random)
    count = 0
    for number, disk in storage.crash_points():
        if number % every == seed % every:
            survival = next(way)
            name = f"seed {seed}, operation {number}, {survival}"
            crash(folder / "image", disk.image(survival, random), known_at(workload, number), name)
            count += 1
    return count


def test_another_process_goes_on_for_a_dead_one(folder: Path) -> None:
    assert die_and_go_on(200, folder, 25, lives=3) >= 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3000, 3020))
def test_other_processes_go_on_for_dead_ones(seed: int, folder: Path) -> None:
    assert die_and_go_on(seed, folder, 3, lives=6) >= 100

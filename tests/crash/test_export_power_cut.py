"""The power goes off, or the process dies, at any operation of an export: each row is in the table once."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final

import pytest

from tests.crash.disk import Write
from tests.crash.exporting import TABLE, ExportWorkload, Known, export, judge
from tests.crash.noted_crashes import Kind
from tests.crash.storage import CrashStorage, FastStorage
from tests.selection import some
from tests.soak.plugin import Soak

SEEDS: Final = range(4)
CRASHES: Final = 55  # of each


def begin(seed: int, folder: Path) -> tuple[ExportWorkload, CrashStorage]:
    (folder / "disk").mkdir()
    storage = CrashStorage(folder / "disk")
    return ExportWorkload(seed, folder / "disk", folder / "logs", storage), storage


def recover(_: ExportWorkload, folder: Path, known: Known, storage: CrashStorage) -> Known:
    export(known.logs, folder / TABLE, storage)
    return Known(known.logs, known.appended, frozenset(), is_merging=True)


def choose(storage: CrashStorage, at_least: int, seed: int) -> Collection[int]:
    """Choose so many operations, or a few more. Of the many small writes of pyarrow, only some are among them."""
    if at_least >= len(storage.journal):
        return range(len(storage.journal) + 1)
    numbers = [number for number, each in enumerate(storage.journal) if not isinstance(each, Write) or number % 9 == 0]
    every = max(1, len(numbers) // at_least)
    return set(numbers[seed % every :: every])


EXPORTS: Final = Kind(begin, recover, lambda _, folder, known: judge(folder, known, FastStorage()), choose)


@pytest.mark.parametrize("seed", some(SEEDS, 3))
def test_each_row_is_in_the_table_once(seed: int, folder: Path) -> None:
    assert EXPORTS.crash_often(seed, folder, CRASHES, steps=4) >= CRASHES


@pytest.mark.soak
def test_each_row_is_in_the_table_once_in_many_crashes(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        place = folder / str(seed)
        place.mkdir()
        assert EXPORTS.crash_often(seed, place, 20, steps=6) >= 20
        shutil.rmtree(place)


def test_a_crash_of_the_next_export_leaves_each_row_once_too(folder: Path) -> None:
    assert EXPORTS.crash_recoveries(100, folder, 40, 20, steps=3) >= 10


@pytest.mark.soak
def test_crashes_of_the_next_export_leave_each_row_once_too(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        place = folder / str(seed)
        place.mkdir()
        EXPORTS.crash_recoveries(seed, place, 100, 20, steps=3)
        shutil.rmtree(place)


def test_another_process_goes_on_for_a_dead_one(folder: Path) -> None:
    assert EXPORTS.die_and_go_on(200, folder, 25, lives=3, steps=1) >= 10


@pytest.mark.soak
def test_other_processes_go_on_for_dead_ones(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        place = folder / str(seed)
        place.mkdir()
        assert EXPORTS.die_and_go_on(seed, place, 30, lives=6, steps=1) > 0
        shutil.rmtree(place)

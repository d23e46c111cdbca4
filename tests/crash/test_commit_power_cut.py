"""The power goes off, or the process dies, at any operation of a commit: each row is there once or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.crash.committing import DATA, CommitWorkload, Known, judge, open_data
from tests.crash.noted_crashes import Kind
from tests.crash.storage import CrashStorage, FastStorage
from tests.selection import some
from tests.soak.plugin import Soak

SEEDS: Final = range(4)
CRASHES: Final = 60  # of each


def begin(seed: int, folder: Path) -> tuple[CommitWorkload, CrashStorage]:
    (folder / "disk" / DATA).mkdir(parents=True)
    storage = CrashStorage(folder / "disk")
    return CommitWorkload(seed, folder / "disk", storage), storage


def recover(workload: CommitWorkload, folder: Path, known: Known, storage: CrashStorage) -> Known:
    open_data(folder, storage, workload.clock).close()
    return known


COMMITS: Final = Kind(
    begin, recover, lambda workload, folder, known: judge(folder, known, FastStorage(), workload.clock)
)


@pytest.mark.parametrize("seed", some(SEEDS, 3))
def test_each_row_is_there_once_or_not_at_all(seed: int, folder: Path) -> None:
    assert COMMITS.crash_often(seed, folder, CRASHES, steps=10) >= CRASHES


@pytest.mark.soak
def test_each_row_is_there_once_or_not_at_all_in_many_crashes(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert COMMITS.crash_often(seed, folder, 20, steps=10) >= 20
        shutil.rmtree(folder / "disk")


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 101))
def test_a_crash_of_the_next_opener_leaves_each_row_once_too(seed: int, folder: Path) -> None:
    assert COMMITS.crash_recoveries(seed, folder, 25, 12, steps=8) >= 20


@pytest.mark.soak
def test_crashes_of_the_next_opener_leave_each_row_once_too(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        COMMITS.crash_recoveries(seed, folder, 100, 20, steps=8)
        shutil.rmtree(folder / "disk")


@pytest.mark.parametrize("seed", some(range(200, 202)))
def test_a_process_that_goes_on_for_a_dead_one_commits_each_row_once(seed: int, folder: Path) -> None:
    """It finds in the page cache what the other left there, of which much is not on the disk."""
    assert COMMITS.die_and_go_on(seed, folder, 15, lives=4, steps=2) >= 30


@pytest.mark.soak
def test_processes_that_go_on_for_dead_ones_commit_each_row_once(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert COMMITS.die_and_go_on(seed, folder, 30, lives=4, steps=2) > 0
        shutil.rmtree(folder / "disk")

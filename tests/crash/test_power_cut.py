"""The power goes off at any operation of a workload, and in any way: nothing that was flushed is lost.

After each crash the directory opens, holds everything that was promised and nothing that nobody wrote, its indexes
agree with its data, it can be appended to, and once closed it opens as if nothing had happened (`verdict.judge`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.clock import Clock
from tests.crash.crashes import Cut, Kind, crash_often, crash_recoveries, die_and_go_on
from tests.crash.model import Expectations
from tests.crash.opening import open_directory
from tests.crash.storage import CrashStorage
from tests.crash.verdict import judge
from tests.crash.workload import Workload, paths
from tests.selection import some
from tests.soak.plugin import Soak

SEEDS: Final = range(10)
CRASHES: Final = 205  # of each


def make_disks(folder: Path, seed: int) -> None:
    """A folder for a data directory, every fourth time on two disks."""
    folder.mkdir()
    if seed % 4 == 3:
        for name in ("disk0", "disk1"):
            (folder / name).mkdir()


def recover(folder: Path, storage: CrashStorage, clock: Clock, _: Expectations) -> None:
    open_directory(paths(folder), storage=storage, clock=clock).close()


def _judge(folder: Path, cut: Cut) -> None:
    judge(folder, cut.expected, cut.clock, power_cut=cut.power_cut)


DIRECTORIES: Final = Kind(make_disks, Workload, recover, _judge, steps=60)


# ------------------------------------------------------------------------------------------------------------- a crash


@pytest.mark.parametrize("seed", some(SEEDS, 2))
def test_nothing_flushed_is_lost(seed: int, folder: Path) -> None:
    """All together these are more than 2,000 crashes."""
    assert crash_often(DIRECTORIES, seed, folder, CRASHES) >= CRASHES


@pytest.mark.soak
def test_nothing_flushed_is_lost_in_many_crashes(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert crash_often(DIRECTORIES, seed, folder, 20) >= 20
        shutil.rmtree(folder / "disk")


# --------------------------------------------------------------------------------------- a crash, and another after it


@pytest.mark.parametrize("seed", some(range(100, 104)))
def test_a_crash_during_recovery_loses_nothing_either(seed: int, folder: Path) -> None:
    assert crash_recoveries(DIRECTORIES, seed, folder, 40, 12) >= 20


@pytest.mark.soak
def test_crashes_during_recovery_lose_nothing_either(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        crash_recoveries(DIRECTORIES, seed, folder, 60, 20)
        shutil.rmtree(folder / "disk")


# ------------------------------------------------------------------------------------------- a process that is stopped


@pytest.mark.parametrize("seed", some(range(200, 204)))
def test_a_process_that_goes_on_for_a_dead_one_loses_nothing(seed: int, folder: Path) -> None:
    """It finds in the page cache what the other left there, of which much is not on the disk."""
    assert die_and_go_on(DIRECTORIES, seed, folder, 4) >= 50


@pytest.mark.soak
def test_processes_that_go_on_for_dead_ones_lose_nothing(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert die_and_go_on(DIRECTORIES, seed, folder, 20) > 0
        shutil.rmtree(folder / "disk")

"""The power goes off, or a process dies, amid transactions over several partitions: none is committed in part.

After each crash, once producers with the same transactional ids have begun anew, what was committed is there with the
positions that it committed, what was not cannot be seen, and nothing is open (`coordinating.judge`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.clock import Clock
from tests.crash.coordinating import CoordinatorWorkload, judge, make_disk
from tests.crash.crashes import Kind, crash_often, crash_recoveries, die_and_go_on
from tests.crash.model import Expectations
from tests.crash.opening import open_directory
from tests.crash.storage import CrashStorage
from tests.selection import some
from tests.soak.plugin import Soak

SEEDS: Final = range(4)
CRASHES: Final = 60  # of each


def recover(folder: Path, storage: CrashStorage, clock: Clock, _: Expectations) -> None:
    with open_directory(folder, storage=storage, clock=clock) as data:
        data.coordinator.finish_prepared()


TRANSACTIONS: Final = Kind(make_disk, CoordinatorWorkload, recover, judge, steps=60)


@pytest.mark.parametrize("seed", some(SEEDS))
def test_no_transaction_is_committed_in_part(seed: int, folder: Path) -> None:
    assert crash_often(TRANSACTIONS, seed, folder, CRASHES) >= CRASHES


@pytest.mark.parametrize("seed", range(100, 101))
def test_a_crash_during_recovery_commits_none_in_part_either(seed: int, folder: Path) -> None:
    assert crash_recoveries(TRANSACTIONS, seed, folder, 100, 12) >= 10


@pytest.mark.parametrize("seed", range(200, 201))
def test_a_process_that_goes_on_for_a_dead_one_commits_none_in_part(seed: int, folder: Path) -> None:
    assert die_and_go_on(TRANSACTIONS, seed, folder, 10) >= 20


@pytest.mark.soak
def test_no_transaction_is_committed_in_part_in_many_crashes(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert crash_often(TRANSACTIONS, seed, folder, 20) >= 20
        shutil.rmtree(folder / "disk")


@pytest.mark.soak
def test_crashes_during_recovery_commit_none_in_part_either(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        crash_recoveries(TRANSACTIONS, seed, folder, 100, 20)
        shutil.rmtree(folder / "disk")


@pytest.mark.soak
def test_processes_that_go_on_for_dead_ones_commit_none_in_part(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert die_and_go_on(TRANSACTIONS, seed, folder, 20) > 0
        shutil.rmtree(folder / "disk")

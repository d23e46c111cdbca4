"""The power goes off, or a process dies, while producers write: no sequence is forgotten, no aborted record is seen.

After each crash the log knows of each producer what the batches that are left tell of it. Its last batch is taken for
sent already, what was lost can be sent again in its order, open transactions are open, and of decided ones readers see
what they should, from any offset on (`log_verdict.judge`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.clock import Clock
from tests.crash.crashes import Kind, crash_often, crash_recoveries, die_and_go_on
from tests.crash.log_verdict import judge
from tests.crash.model import Expectations
from tests.crash.producing import DELETED, ProducerWorkload, open_log
from tests.crash.storage import CrashStorage
from tests.selection import some
from tests.soak.plugin import Soak

SEEDS: Final = range(9)
CRASHES: Final = 100  # of each: with those of compaction and of the coordinator more than 2,000


def make_disk(folder: Path, _: int) -> None:
    folder.mkdir()


def begin(seed: int, folder: Path, storage: CrashStorage) -> ProducerWorkload:
    return ProducerWorkload(seed, folder, storage, DELETED[seed % len(DELETED)])


def recover(folder: Path, storage: CrashStorage, clock: Clock, expected: Expectations) -> None:
    open_log(folder, storage, clock, expected.topics["t"].config).close()


PRODUCERS: Final = Kind(make_disk, begin, recover, judge, steps=70)


@pytest.mark.parametrize("seed", some(SEEDS, 3))
def test_no_sequence_is_forgotten(seed: int, folder: Path) -> None:
    assert crash_often(PRODUCERS, seed, folder, CRASHES) >= CRASHES


@pytest.mark.parametrize("seed", range(100, 101))
def test_a_crash_during_recovery_forgets_no_sequence_either(seed: int, folder: Path) -> None:
    assert crash_recoveries(PRODUCERS, seed, folder, 20, 8) >= 20


@pytest.mark.parametrize("seed", some(range(200, 202)))
def test_a_process_that_goes_on_for_a_dead_one_forgets_no_sequence(seed: int, folder: Path) -> None:
    assert die_and_go_on(PRODUCERS, seed, folder, 5) >= 30


@pytest.mark.soak
def test_no_sequence_is_forgotten_in_many_crashes(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert crash_often(PRODUCERS, seed, folder, 20) >= 20
        shutil.rmtree(folder / "disk")


@pytest.mark.soak
def test_crashes_during_recovery_forget_no_sequence_either(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        crash_recoveries(PRODUCERS, seed, folder, 50, 10)
        shutil.rmtree(folder / "disk")


@pytest.mark.soak
def test_processes_that_go_on_for_dead_ones_forget_no_sequence(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert die_and_go_on(PRODUCERS, seed, folder, 20) > 0
        shutil.rmtree(folder / "disk")

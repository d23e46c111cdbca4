"""The power goes off, or a process dies, while a log is compacted: no last value is lost, no deleted key comes back.

After each crash, by what is left every key has the value that it has by all that was written; readers see no aborted
record, and all committed ones that there are; no producer is forgotten. Compacted twice more it is still so
(`log_verdict.judge`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.crash.crashes import Kind, crash_often, crash_recoveries, die_and_go_on
from tests.crash.log_verdict import judge
from tests.crash.producing import COMPACTED, CompactedWorkload
from tests.crash.storage import CrashStorage
from tests.crash.test_producers_power_cut import make_disk, recover
from tests.selection import some
from tests.soak.plugin import Soak

SEEDS: Final = range(9)
CRASHES: Final = 100  # of each


def begin(seed: int, folder: Path, storage: CrashStorage) -> CompactedWorkload:
    return CompactedWorkload(seed, folder, storage, COMPACTED[seed % len(COMPACTED)])


COMPACTION: Final = Kind(make_disk, begin, recover, judge, steps=70)


@pytest.mark.parametrize("seed", some(SEEDS, 3))
def test_no_last_value_is_lost(seed: int, folder: Path) -> None:
    assert crash_often(COMPACTION, seed, folder, CRASHES) >= CRASHES


@pytest.mark.parametrize("seed", range(100, 101))
def test_a_crash_during_recovery_loses_no_last_value_either(seed: int, folder: Path) -> None:
    assert crash_recoveries(COMPACTION, seed, folder, 20, 8) >= 20


@pytest.mark.parametrize("seed", some(range(200, 202)))
def test_a_process_that_goes_on_for_a_dead_one_loses_no_last_value(seed: int, folder: Path) -> None:
    assert die_and_go_on(COMPACTION, seed, folder, 5) >= 30


@pytest.mark.soak
def test_no_last_value_is_lost_in_many_crashes(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert crash_often(COMPACTION, seed, folder, 20) >= 20
        shutil.rmtree(folder / "disk")


@pytest.mark.soak
def test_crashes_during_recovery_lose_no_last_value_either(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        crash_recoveries(COMPACTION, seed, folder, 50, 10)
        shutil.rmtree(folder / "disk")


@pytest.mark.soak
def test_processes_that_go_on_for_dead_ones_lose_no_last_value(soak: Soak, folder: Path) -> None:
    for seed in soak.seeds():
        assert die_and_go_on(COMPACTION, seed, folder, 20) > 0
        shutil.rmtree(folder / "disk")

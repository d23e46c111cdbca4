"""The power goes off at any operation of a workload, and in any way: nothing that was flushed is lost.

After each crash the directory opens, holds everything that was promised and nothing that nobody wrote, its indexes
agree with its data, it can be appended to, and once closed it opens as if nothing had happened (`verdict.judge`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import pytest

from octavo.log import DataDirectory
from tests.crash.disk import ANY_NAMES, POWER_CUTS, PROCESS_DIED, Image, Survival, write_image
from tests.crash.model import Expectations
from tests.crash.storage import CrashStorage, Moment, PowerCut
from tests.crash.verdict import judge
from tests.crash.workload import Clock, Workload, paths

STEPS: Final = 60
SEEDS: Final = range(10)
CRASHES: Final = 205  # of each
SOAK_SEEDS: Final = range(1000, 1060)
MEMORY: Final = Path("/dev/shm")  # a disk would only be slower


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for what need not last."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as name:
        yield Path(name)


class Cut(NamedTuple):
    """One crash, and what must be there after it."""

    name: str
    image: Image
    expected: Expectations
    clock: Clock
    power_cut: bool


def cuts(workload: Workload, storage: CrashStorage, seed: int, every: int, first: int = 0) -> Iterator[Cut]:
    """A crash at every so many operations, each in another way. To be looked at one by one: expectations go on."""
    random = Random(seed)
    ways = cycle([*random.sample(POWER_CUTS, len(POWER_CUTS)), *ANY_NAMES, PROCESS_DIED])
    at = workload.history.replay()
    for number, disk in storage.crash_points():
        expected = at(number)
        if number >= first and number % every == seed % every:
            way = next(ways)
            name = f"seed {seed}, operation {number}, {_words(way)}"
            yield Cut(name, disk.image(way, random), expected, workload.clock, way is not PROCESS_DIED)


def _words(way: Survival) -> str:
    return f"names: {way.names.value}; data: {way.data.value}{'; garbage' if way.garbage else ''}"


def run(seed: int, folder: Path, steps: int = STEPS) -> tuple[Workload, CrashStorage]:
    """A workload from beginning to end, under a storage that remembers it."""
    make_disks(folder, seed)
    storage = CrashStorage(folder)
    with Workload(seed, folder, storage) as workload:
        workload.run(steps)
    return workload, storage


def make_disks(folder: Path, seed: int) -> None:
    """A folder for a data directory, every fourth time on two disks."""
    folder.mkdir()
    if seed % 4 == 3:
        for name in ("disk0", "disk1"):
            (folder / name).mkdir()


def check(cut: Cut, folder: Path) -> None:
    """Have the crash in `folder`, look at what is left, and remove it. Raises what is wrong."""
    write_image(cut.image, folder)
    try:
        judge(folder, cut.expected, cut.clock, power_cut=cut.power_cut)
    except Exception as error:
        error.add_note(cut.name)
        raise
    finally:
        shutil.rmtree(folder)


# ------------------------------------------------------------------------------------------------------------- a crash


def crash_often(seed: int, folder: Path, at_least: int) -> int:
    """Crash one workload at so many of its operations, or a few more; how many crashes that were."""
    workload, storage = run(seed, folder / "disk")
    count = 0
    for cut in cuts(workload, storage, seed, max(1, len(storage.journal) // at_least)):
        check(cut, folder / "image")
        count += 1
    return count


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_flushed_is_lost(seed: int, folder: Path) -> None:
    """All together these are more than 2,000 crashes."""
    assert crash_often(seed, folder, CRASHES) >= CRASHES


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_nothing_flushed_is_lost_in_many_crashes(seed: int, folder: Path) -> None:
    """At every operation."""
    assert crash_often(seed, folder, 1_000_000) >= 300


# --------------------------------------------------------------------------------------- a crash, and another after it


def crash_recoveries(seed: int, folder: Path, every: int, again_every: int) -> int:
    """Crash a workload, and then its recovery as well; how many crashes of recoveries that were."""
    workload, storage = run(seed, folder / "disk")
    count = 0
    for cut in cuts(workload, storage, seed, every):
        if not cut.power_cut:
            continue  # what only a process left may still be lost by the second crash
        write_image(cut.image, folder / "first")
        recovery = CrashStorage(folder / "first")
        DataDirectory.open(paths(recovery.folder), storage=recovery, clock=cut.clock).close()
        for again in _cuts_of_recovery(cut, recovery, seed, again_every):
            check(again, folder / "second")
            count += 1
        shutil.rmtree(folder / "first")
    return count


def _cuts_of_recovery(cut: Cut, recovery: CrashStorage, seed: int, every: int) -> Iterator[Cut]:
    random = Random(seed)
    for number, disk in recovery.crash_points():
        if random.randrange(every) == 0:
            way = random.choice((*POWER_CUTS, *ANY_NAMES))
            name = f"{cut.name}; then operation {number} of the recovery, {_words(way)}"
            yield cut._replace(name=name, image=disk.image(way, random))


@pytest.mark.parametrize("seed", range(100, 104))
def test_a_crash_during_recovery_loses_nothing_either(seed: int, folder: Path) -> None:
    assert crash_recoveries(seed, folder, 40, 12) >= 20


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000, 2060))
def test_crashes_during_recovery_lose_nothing_either(seed: int, folder: Path) -> None:
    assert crash_recoveries(seed, folder, 10, 10) >= 100


# ------------------------------------------------------------------------------------------- a process that is stopped


def die_and_go_on(seed: int, folder: Path, every: int) -> int:
    """Stop a process, let another go on, and have a power cut during its life; how many such crashes that were."""
    random = Random(seed)
    make_disks(folder / "disk", seed)
    storage = CrashStorage(folder / "disk")
    workload = Workload(seed, folder / "disk", storage)
    workload.run(15)
    for _ in range(3):  # lives
        storage.stop_at(len(storage.journal) + random.randrange(60), random.choice(list(Moment)))
        with pytest.raises(PowerCut):
            workload.run(1000)
        workload.revive()
        workload.run(8)
    workload.directory.close()
    count = 0
    for cut in cuts(workload, storage, seed, every):
        check(cut, folder / "image")
        count += 1
    return count


@pytest.mark.parametrize("seed", range(200, 204))
def test_a_process_that_goes_on_for_a_dead_one_loses_nothing(seed: int, folder: Path) -> None:
    """It finds in the page cache what the other left there, of which much is not on the disk."""
    assert die_and_go_on(seed, folder, 4) >= 50


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3000, 3060))
def test_processes_that_go_on_for_dead_ones_lose_nothing(seed: int, folder: Path) -> None:
    assert die_and_go_on(seed, folder, 1) >= 200

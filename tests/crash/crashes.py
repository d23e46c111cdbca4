"""Crashes of a workload: at any of its operations, again while it recovers, and after a process has died.

A `Kind` says what is run and how what is left is judged; the rest is the same for all.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

import pytest

from tests.clock import Clock
from tests.crash.disk import ANY_NAMES, POWER_CUTS, PROCESS_DIED, Image, Survival, write_image
from tests.crash.model import Expectations, History
from tests.crash.storage import CrashStorage, Moment, PowerCut


class Running(Protocol):
    """A workload."""

    @property
    def clock(self) -> Clock: ...

    @property
    def history(self) -> History: ...

    def run(self, steps: int) -> None:
        """Do so many things."""

    def revive(self) -> None:
        """Go on after the storage has stopped, as the process that is started next."""

    def close(self) -> None:
        """Come to an end in good order."""


class Kind(NamedTuple):
    """A kind of workload."""

    make_disks: Callable[[Path, int], None]  # a folder, for a seed
    begin: Callable[[int, Path, CrashStorage], Running]
    recover: Callable[[Path, CrashStorage, Clock, Expectations], None]  # open what is left, and close it
    judge: Callable[[Path, Cut], None]
    steps: int


class Cut(NamedTuple):
    """One crash, and what must be there after it."""

    name: str
    image: Image
    expected: Expectations
    clock: Clock
    power_cut: bool


def cuts(workload: Running, storage: CrashStorage, seed: int, every: int, first: int = 0) -> Iterator[Cut]:
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


def run(kind: Kind, seed: int, folder: Path, steps: int | None = None) -> tuple[Running, CrashStorage]:
    """A workload from beginning to end, under a storage that remembers it."""
    kind.make_disks(folder, seed)
    storage = CrashStorage(folder)
    workload = kind.begin(seed, folder, storage)
    workload.run(kind.steps if steps is None else steps)
    workload.close()
    return workload, storage


def check(kind: Kind, cut: Cut, folder: Path) -> None:
    """Have the crash in `folder`, look at what is left, and remove it. Raises what is wrong."""
    write_image(cut.image, folder)
    try:
        kind.judge(folder, cut)
    except Exception as error:
        error.add_note(cut.name)
        raise
    finally:
        shutil.rmtree(folder)


def crash_often(kind: Kind, seed: int, folder: Path, at_least: int) -> int:
    """Crash one workload at so many of its operations, or a few more; how many crashes that were."""
    workload, storage = run(kind, seed, folder / "disk")
    count = 0
    for cut in cuts(workload, storage, seed, max(1, len(storage.journal) // at_least)):
        check(kind, cut, folder / "image")
        count += 1
    return count


def crash_recoveries(kind: Kind, seed: int, folder: Path, every: int, again_every: int) -> int:
    """Crash a workload, and then its recovery as well; how many crashes of recoveries that were."""
    workload, storage = run(kind, seed, folder / "disk")
    count = 0
    for cut in cuts(workload, storage, seed, every):
        if not cut.power_cut:
            continue  # what only a process left may still be lost by the second crash
        write_image(cut.image, folder / "first")
        recovery = CrashStorage(folder / "first")
        kind.recover(recovery.folder, recovery, cut.clock, cut.expected)
        for again in _cuts_of_recovery(cut, recovery, seed, again_every):
            check(kind, again, folder / "second")
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


def die_and_go_on(kind: Kind, seed: int, folder: Path, every: int, *, lives: int = 3, steps: int = 8) -> int:
    """Stop a process, let another go on, and have a power cut during its life; how many such crashes that were."""
    random = Random(seed)
    kind.make_disks(folder / "disk", seed)
    storage = CrashStorage(folder / "disk")
    workload = kind.begin(seed, folder / "disk", storage)
    workload.run(15)
    for _ in range(lives):
        storage.stop_at(len(storage.journal) + random.randrange(60), random.choice(list(Moment)))
        with pytest.raises(PowerCut):
            workload.run(1000)
        workload.revive()
        workload.run(steps)
    workload.close()
    count = 0
    for cut in cuts(workload, storage, seed, every):
        check(kind, cut, folder / "image")
        count += 1
    return count

"""Crashes of a workload that notes what is known from which operation on: at any operation, again in the recovery, and
after a process has died.

A `Kind` says what is run and how what is left is judged; the rest is the same for all.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any, Final, Generic, Protocol, TypeVar

import pytest

from tests.crash.disk import ANY_NAMES, POWER_CUTS, PROCESS_DIED, Image, Survival, write_image
from tests.crash.storage import CrashStorage, Moment, PowerCut

Known = TypeVar("Known")


class Noting(Protocol[Known]):
    """A workload."""

    @property
    def history(self) -> list[tuple[int, Known]]:
        """What is known from which operation on."""

    def run(self, steps: int) -> None:
        """Do so many things."""


Work = TypeVar("Work", bound=Noting[Any])


def every_so_often(storage: CrashStorage, at_least: int, seed: int) -> Collection[int]:
    """Choose so many operations, or a few more."""
    every = max(1, len(storage.journal) // at_least)
    return range(seed % every, len(storage.journal) + 1, every)


class Kind(Generic[Work, Known]):
    """A kind of workload, and how it is crashed.

    begin: make a workload for a seed in a folder, and the storage that it uses
    recover: open what a crash has left, and return what is known while that goes on
    judge: look at what a crash has left
    """

    def __init__(
        self,
        begin: Callable[[int, Path], tuple[Work, CrashStorage]],
        recover: Callable[[Work, Path, Known, CrashStorage], Known],
        judge: Callable[[Work, Path, Known], None],
        choose: Callable[[CrashStorage, int, int], Collection[int]] = every_so_often,
    ) -> None:
        self._begin: Final = begin
        self._recover: Final = recover
        self._judge: Final = judge
        self._choose: Final = choose

    def _run(self, seed: int, folder: Path, steps: int) -> tuple[Work, CrashStorage]:
        workload, storage = self._begin(seed, folder)
        workload.run(steps)
        return workload, storage

    def crash_often(self, seed: int, folder: Path, at_least: int, *, steps: int) -> int:
        """Crash a workload at so many of its operations, or a few more; how many crashes that were."""
        workload, storage = self._run(seed, folder, steps)
        return self._crash_at(self._choose(storage, at_least, seed), workload, storage, folder, seed, Random(seed))

    def crash_recoveries(self, seed: int, folder: Path, every: int, again_every: int, *, steps: int) -> int:
        """Crash a workload, and then the recovery as well; how many crashes of recoveries that were."""
        workload, storage = self._run(seed, folder, steps)
        random = Random(seed)
        way = cycle(random.sample(POWER_CUTS, len(POWER_CUTS)))
        count = 0
        for number, disk in storage.crash_points():
            if number % every != seed % every:
                continue
            survival = next(way)
            write_image(disk.image(survival, random), folder / "first")
            recovery = CrashStorage(folder / "first")
            known = self._recover(workload, folder / "first", _known_at(workload, number), recovery)
            for again, after in recovery.crash_points():
                if random.randrange(again_every) == 0:
                    second = random.choice((*POWER_CUTS, *ANY_NAMES))
                    name = f"seed {seed}, operation {number}, {survival}; then operation {again}, {second}"
                    self._crash(workload, folder / "second", after.image(second, random), known, name)
                    count += 1
            shutil.rmtree(folder / "first")
        return count

    def die_and_go_on(self, seed: int, folder: Path, every: int, *, lives: int, steps: int) -> int:
        """Stop a process, let another go on, and have a power cut later; how many power cuts that were."""
        random = Random(seed)
        workload, storage = self._run(seed, folder, steps)
        for _ in range(lives):
            storage.stop_at(len(storage.journal) + random.randrange(120), random.choice(list(Moment)))
            with pytest.raises(PowerCut):
                workload.run(1000)
            storage.restart()
            workload.run(steps)
        chosen = range(seed % every, len(storage.journal) + 1, every)
        return self._crash_at(chosen, workload, storage, folder, seed, random)

    def _crash_at(
        self, chosen: Collection[int], workload: Work, storage: CrashStorage, folder: Path, seed: int, random: Random
    ) -> int:
        way = _ways(random)
        count = 0
        for number, disk in storage.crash_points():
            if number in chosen:
                survival = next(way)
                name = f"seed {seed}, operation {number}, {survival}"
                image = disk.image(survival, random)
                self._crash(workload, folder / "image", image, _known_at(workload, number), name)
                count += 1
        return count

    def _crash(self, workload: Work, folder: Path, image: Image, known: Known, name: str) -> None:
        """Have a crash in `folder`, look at what is left, and remove it."""
        write_image(image, folder)
        try:
            self._judge(workload, folder, known)
        except Exception as error:
            error.add_note(name)
            raise
        finally:
            shutil.rmtree(folder)


def _known_at(workload: Noting[Known], number: int) -> Known:
    """What is known when the operation of this number is not over."""
    return [known for begin, known in workload.history if begin <= number][-1]


def _ways(random: Random) -> Iterator[Survival]:
    return cycle([*random.sample(POWER_CUTS, len(POWER_CUTS)), *ANY_NAMES, PROCESS_DIED])

"""The faults that tests plant for the rules of `octavo verify`, each in a partition or a directory that may be served.

    for each in partitions():
        sound = each.make(tmp_path / "sound", damaged=False)     # a partition folder
        damaged = each.make(tmp_path / "damaged")                # the same with the fault in it

The tests of the rules declare them; here they get what a partition needs to be served from a directory that was shut
down cleanly: indexes, producers and leader epochs, as they are without the fault. A fault of a directory's own files is
planted in the directory `closed`, which Kafka wrote.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from octavo.inspect.salvage import salvage
from octavo.inspect.verify.problem import Problem
from tests.crash.storage import FastStorage
from tests.golden.directories import unpack
from tests.golden.files import load
from tests.unit.inspect.verify import (
    test_batch_rules,
    test_directory_rules,
    test_kraft_rules,
    test_lost_segments,
    test_producer_rules,
    test_segment_rules,
)
from tests.unit.inspect.verify.planted_batches import AFTER_OFFSET, BEFORE, BEFORE_OFFSET, OFFSET, Planted, at_offset
from tests.unit.inspect.verify.planting import Fault

CLOSED_PARTITIONS: Final = ("deals-0", "events-0")
Make = Callable[[Path, bool], Path]  # is given a new folder, and whether to plant the fault; returns the partition


class PlantedPartition(NamedTuple):
    """A fault in the files of one partition."""

    name: str  # of the rule, and a number where it has several faults
    rule: str
    write: Make

    def make(self, target: Path, *, damaged: bool = True) -> Path:
        """Return the folder of a partition, below a new folder."""
        target.mkdir(parents=True)
        return self.write(target, damaged)


def partitions() -> list[PlantedPartition]:
    """Return the faults in files of partitions."""
    numbers: Counter[str] = Counter()
    planted = []
    for rule, write in _partitions():
        numbers[rule] += 1
        planted.append(PlantedPartition(f"{rule}-{numbers[rule]}", rule, write))
    return planted


def of_directories() -> list[Fault]:
    """Return the faults in files of data directories themselves, and of the metadata log."""
    return [
        fault
        for fault in (*test_directory_rules.FAULTS, *test_kraft_rules.FAULTS)
        if fault.file.partition("/")[0] not in CLOSED_PARTITIONS or fault.rule.startswith(("topic-", "not-a-file"))
    ]


def _partitions() -> Iterator[tuple[str, Make]]:
    for planted in test_batch_rules.FAULTS:
        if planted.folder == "planted-0":  # not the log of the metadata
            yield planted.rule, _batches(planted)
    for rule, plant, *_ in test_segment_rules.SEGMENTS:
        if rule not in ("segment-size", "segment-emptied"):  # which are large, or mere files
            yield rule, _segments(plant)
    yield "segment-lost", _lost(partial(test_lost_segments.write, policy="delete"), test_lost_segments.lose)
    yield "batches-lost", _lost(test_lost_segments.write_batches, test_lost_segments.cut_out)
    of_directory = {id(fault) for fault in of_directories()}
    for fault in (*test_segment_rules.INDEXES, *test_producer_rules.FAULTS, *test_directory_rules.FAULTS):
        folder, _, file = fault.file.partition("/")
        if folder in CLOSED_PARTITIONS and file and id(fault) not in of_directory:
            yield fault.rule, _closed(fault)


def _batches(planted: Planted) -> Make:
    def write(target: Path, damaged: bool) -> Path:
        batch = load(planted.batch).data
        sound = at_offset(BEFORE_OFFSET, BEFORE)
        sound += (at_offset(OFFSET, batch) if batch[16] == 2 else batch) + at_offset(AFTER_OFFSET, BEFORE)
        return _complete(target, {0: sound}, {0: planted.data} if damaged else {})

    return write


def _segments(plant: Callable[[Path], Path]) -> Make:
    def write(target: Path, damaged: bool) -> Path:
        (target / "planted").mkdir()
        folder = plant(target / "planted")
        segments = {int(path.stem): path.read_bytes() for path in folder.glob("*.log")}
        indexes = {path.name: path.read_bytes() for path in folder.glob("*index")}
        result = _complete(target, segments, segments if damaged else {})
        for name, data in indexes.items() if damaged else ():
            (result / name).write_bytes(data)
        return result

    return write


def _complete(target: Path, sound: dict[int, bytes], damaged: dict[int, bytes]) -> Path:
    """Write a partition with all its files, and then put other segments into it."""
    raw = target / "raw" / "planted-0"
    raw.mkdir(parents=True)
    for base, data in sound.items():
        (raw / f"{base:020d}.log").write_bytes(data)
    folder = target / "planted-0"
    salvage([raw], folder, storage=FastStorage())
    if damaged:
        for path in folder.glob("*.log"):
            path.unlink()
    for base, data in damaged.items():
        (folder / f"{base:020d}.log").write_bytes(data)
        for suffix in (".index", ".timeindex"):
            (folder / f"{base:020d}{suffix}").touch()
    return folder


def _lost(write_sound: Callable[[Path], Path], lose: Callable[[Path], object]) -> Make:
    def write(target: Path, damaged: bool) -> Path:
        folder = write_sound(target)
        if damaged:
            lose(folder)
        return folder

    return write


def _closed(fault: Fault) -> Make:
    def write(target: Path, damaged: bool) -> Path:
        folder = fault.file.partition("/")[0]
        directory = unpack("closed", target, folder)
        if damaged:
            fault.plant(directory)
        return directory / folder

    return write


def copy_into(source: Path, target: Path) -> None:
    """Put the files of a partition, except for its topic's id, into the folder of another one in place of its own."""
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in source.iterdir():
        if path.name != "partition.metadata" and path.is_file():
            shutil.copy(path, target / path.name)


def nothing_to_do(problem: Problem) -> bool:
    """Whether the advice is to leave everything as it is."""
    return problem.repair.startswith("Nothing")

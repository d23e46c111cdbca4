"""The power goes off, or a process dies, while a topic is created or deleted: it is there completely, or gone."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from octavo.log import DataDirectory
from octavo.log.files.partition_metadata import read_topic_id
from octavo.log.files.text_checkpoint import RECOVERY_POINT
from octavo.log.storage import DISK
from tests.clock import Clock
from tests.crash.disk import ANY_NAMES, POWER_CUTS, PROCESS_DIED, Data, Disk, Names, Survival, write_image
from tests.crash.opening import open_directory as open_after
from tests.crash.storage import CrashStorage, FastStorage
from tests.selection import some
from tests.unit.log.logs import keys, make_batch

NAME: Final = "events"
TOPIC_ID: Final = uuid.UUID(int=77)
SYNCED: Final = Survival(Names.NONE, Data.NONE)
WAYS: Final = (PROCESS_DIED, *POWER_CUTS[::3], *ANY_NAMES[:2])


def open_directory(folder: Path, storage: CrashStorage | FastStorage) -> DataDirectory:
    return open_after(folder, storage=storage, clock=Clock())


def make_disk(folder: Path) -> CrashStorage:
    """A disk on which a directory was opened, with another topic in it."""
    (folder / "disk").mkdir()
    with open_directory(folder / "disk", FastStorage()) as data:
        data.create_topic("other", config={"file.delete.delay.ms": "0"})
        data.log("other", 0).append(make_batch(first=0))
    return CrashStorage(folder / "disk")


def crashes(storage: CrashStorage, begin: int) -> Iterator[tuple[int, Disk]]:
    """The disks at all operations from `begin` on."""
    return itertools.islice(storage.crash_points(), begin, None)


def judge(folder: Path, partitions: int, *, sample: int = 1) -> bool:
    """Open what a crash has left, and say whether the topic is there. It is complete, and can be used, or gone."""
    with open_directory(folder, FastStorage()) as data:
        assert keys(data.log("other", 0)) == [0]
        numbers = range(partitions) if NAME in data.topics else range(0)
        assert data.partitions() == sorted([(NAME, number) for number in numbers] + [("other", 0)])
        for number in numbers[::sample]:
            assert read_topic_id(DISK, folder / f"{NAME}-{number}") == TOPIC_ID == data.topics[NAME].id
            data.log(NAME, number).append(make_batch(first=number))
    with open_directory(folder, FastStorage()) as data:
        assert all(report.is_unremarkable for report in data.reports)
        for number in numbers[::sample]:
            assert keys(data.log(NAME, number)) == [number]
        if not numbers:
            assert NAME not in (folder / RECOVERY_POINT).read_text("utf-8")
            data.create_topic(NAME, partitions, topic_id=TOPIC_ID)
    return bool(numbers)


def outcomes(
    folder: Path,
    partitions: int,
    change: Callable[[DataDirectory], None],
    before: Callable[[DataDirectory], None] | None = None,
) -> set[bool]:
    """Crash at every operation of a change, in every way. Return whether the topic was there, sometimes or always."""
    storage = make_disk(folder)
    data = open_directory(storage.folder, storage)
    if before is not None:
        before(data)
    begin = len(storage.journal)
    change(data)
    seen = set()
    for number, disk in crashes(storage, begin):
        for way, survival in enumerate(WAYS):
            image = folder / f"{number}-{way}"
            write_image(disk.image(survival, Random(number)), image)
            seen.add(judge(image, partitions))
    return seen


@pytest.mark.long
def test_a_half_made_topic_is_finished_or_gone_at_every_crash(folder: Path) -> None:
    def create(data: DataDirectory) -> None:
        data.create_topic(NAME, 2, topic_id=TOPIC_ID)

    assert outcomes(folder, 2, create) == {True, False}


@pytest.mark.long
def test_a_half_deleted_topic_is_there_or_gone_at_every_crash(folder: Path) -> None:
    def create(data: DataDirectory) -> None:
        data.create_topic(NAME, 2, topic_id=TOPIC_ID)
        data.write_checkpoints()

    assert outcomes(folder, 2, lambda data: data.delete_topic(NAME), create) == {True, False}


def test_a_topic_lasts_from_the_moment_it_is_created(folder: Path) -> None:
    storage = make_disk(folder)
    data = open_directory(storage.folder, storage)
    data.create_topic(NAME, 3, topic_id=TOPIC_ID)
    write_image(storage.disk().image(SYNCED, Random(0)), folder / "image")
    for number in range(3):
        assert read_topic_id(DISK, folder / f"image/{NAME}-{number}") == TOPIC_ID
    assert judge(folder / "image", 3)


def test_records_last_that_were_flushed_to_a_new_topic(folder: Path) -> None:
    storage = make_disk(folder)
    data = open_directory(storage.folder, storage)
    data.create_topic(NAME, 3, topic_id=TOPIC_ID)
    data.log(NAME, 1).append(make_batch(first=5))
    data.log(NAME, 1).flush()
    write_image(storage.disk().image(SYNCED, Random(0)), folder / "image")
    with open_directory(folder / "image", FastStorage()) as again:
        assert keys(again.log(NAME, 1)) == [5]


@pytest.mark.long
@pytest.mark.parametrize("part", some([0.0, 0.3, 0.6, 0.9]))
def test_a_half_made_topic_of_a_thousand_partitions_is_finished_or_gone(folder: Path, part: float) -> None:
    storage = make_disk(folder)
    data = open_directory(storage.folder, storage)
    begin = len(storage.journal)
    data.create_topic(NAME, 1_000, topic_id=TOPIC_ID)
    number, disk = next(crashes(storage, begin + int(part * (len(storage.journal) - begin))))
    survival = Survival(Names.FIRST, Data.SECTORS)
    write_image(disk.image(survival, Random(number)), folder / "image")
    assert judge(folder / "image", 1_000, sample=97) is (part > 0)

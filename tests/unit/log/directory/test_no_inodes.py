"""A disk that has no room for another file, though some for bytes: a directory opens, so that something can go."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

import pytest

from octavo.errors import BadDirectory, UnknownPartition
from octavo.log import DataDirectory
from octavo.log.names import TopicPartition
from octavo.log.storage import File, Storage
from tests.unit.log.logs import SMALL, keys, make_batch


class NoInodes(Storage):
    """A disk with so many files and folders at most, below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.most: int | None = None

    def fill(self) -> None:
        """Have no room for one more than there are."""
        self.most = self._count()

    def _count(self) -> int:
        return len(list(self.folder.rglob("*")))

    def _ask(self, path: Path) -> None:
        if self.most is not None and not path.exists() and self._count() >= self.most:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        if create:
            self._ask(path)
        return super().open_to_write(path, create=create)

    def make_folder(self, path: Path) -> None:
        self._ask(path)
        super().make_folder(path)


def append_for_ever(data: DataDirectory) -> None:
    for number in itertools.count():
        for topic in ("a", "b"):
            data.log(topic, 0).append(make_batch(first=number))


def write_until_full(disk: NoInodes, *, closed: bool) -> None:
    """Two topics that grow until there is no room for another segment; then the process dies or closes them."""
    data = DataDirectory.open(disk.folder, storage=disk)
    for topic in ("a", "b"):
        data.create_topic(topic, config=SMALL)
    disk.most = disk._count() + 20
    with pytest.raises(OSError, match="No space"):
        append_for_ever(data)
    disk.fill()
    if closed:
        with pytest.raises(OSError, match="No space"):
            data.close()
    else:
        for folder in data._folders:
            folder.lock.release()
    disk.fill()


@pytest.mark.parametrize("closed", [True, False])
def test_a_directory_without_room_for_a_file_is_opened_and_a_topic_deleted(tmp_path: Path, closed: bool) -> None:
    disk = NoInodes(tmp_path)
    write_until_full(disk, closed=closed)
    with DataDirectory.open(tmp_path, storage=disk) as data:
        kept = keys(data.log("a", 0))
        assert kept == list(range(len(kept))) != []
        data.delete_topic("b")
        assert data.delete_files(2**60) == 1
        assert disk._count() < (disk.most or 0)
        data.log("a", 0).append(make_batch(first=len(kept)))
    with DataDirectory.open(tmp_path, storage=disk) as data:
        assert data.reports[0].was_clean
        assert keys(data.log("a", 0)) == [*kept, len(kept)]


@pytest.mark.parametrize("room", [0, 1, 2, 3])
def test_a_partition_that_there_is_no_room_for_is_made_later(tmp_path: Path, room: int) -> None:
    disk = NoInodes(tmp_path)
    with DataDirectory.open(tmp_path, storage=disk) as data:
        data.create_topic("a", config=SMALL)
        data.create_topic("lost", config=SMALL)
        data.log("lost", 0).append(make_batch())
    for path in sorted((tmp_path / "lost-0").iterdir()):
        path.unlink()
    (tmp_path / "lost-0").rmdir()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    disk.most = disk._count() + room
    with DataDirectory.open(tmp_path, storage=disk) as data:
        assert [*data.topics] == ["a", "lost"]
        with pytest.raises(UnknownPartition):
            data.log("lost", 0)
        disk.most = None
    with DataDirectory.open(tmp_path, storage=disk) as data:
        assert data.log("lost", 0).end_offset == 0


def test_nothing_of_a_topic_that_was_deleted_on_a_full_disk_is_known_of_its_successor(tmp_path: Path) -> None:
    disk = NoInodes(tmp_path)
    data = DataDirectory.open(tmp_path, storage=disk)
    data.create_topic("a", config=SMALL)
    for number in range(10):
        data.log("a", 0).append(make_batch(first=number))
    data.log("a", 0).flush()
    data.write_checkpoints()
    disk.fill()
    data.delete_topic("a")
    assert data._folders[0].checkpoints.recovery_point(TopicPartition("a", 0)) == 0
    data._folders[0].lock.release()  # as if it had died
    disk.most = None
    with DataDirectory.open(tmp_path, storage=disk) as data:
        data.create_topic("a", config=SMALL)
        assert "a 0" not in (tmp_path / "recovery-point-offset-checkpoint").read_text()


def test_without_room_for_the_lock_nothing_is_opened(tmp_path: Path) -> None:
    disk = NoInodes(tmp_path)
    disk.fill()
    with pytest.raises((OSError, BadDirectory), match="No space"):
        DataDirectory.open(tmp_path, storage=disk)
    assert list(tmp_path.iterdir()) == []

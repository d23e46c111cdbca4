"""A disk that fills up in the middle of something: the log stays consistent, and goes on when there is room again."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from octavo.log import DataDirectory, Log
from octavo.log.storage import File, Storage
from octavo.records.layout import Buffer
from tests.selection import some
from tests.unit.log.directories import CONFIG, append, keys

FULL: Final = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FullFile(File):
    """A file on a `FullDisk`."""

    __slots__ = ("_disk",)

    def __init__(self, path: Path, flags: int, disk: FullDisk) -> None:
        super().__init__(path, flags)
        self._disk = disk

    def write_at(self, buffers: Sequence[Buffer], position: int) -> None:
        data = b"".join(buffers)
        room = self._disk.take(len(data))
        super().write_at([data[:room]], position)
        if room < len(data):
            raise FULL

    def sync(self) -> None:
        """Not really."""


class FullDisk(Storage):
    """A disk with room for so many bytes, and for as many new files."""

    def __init__(self) -> None:
        self.room: int | None = None
        self.on_sync_folder: Callable[[Path], None] | None = None

    def take(self, size: int) -> int:
        if self.room is None:
            return size
        taken = min(size, self.room)
        self.room -= taken
        return taken

    def open(self, path: Path) -> File:
        return FullFile(path, os.O_RDONLY, self)

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        if create and not path.exists() and not self.take(1):
            raise FULL
        return FullFile(path, os.O_RDWR | (os.O_CREAT if create else 0), self)

    def make_folder(self, path: Path) -> None:
        if not self.take(1):
            raise FULL
        super().make_folder(path)

    def sync_folder(self, path: Path) -> None:
        """Not really."""
        if self.on_sync_folder is not None:
            self.on_sync_folder(path)


@pytest.mark.parametrize("before", some([0, 1, 5, 12]))
def test_the_disk_fills_up_in_the_middle_of_an_append(tmp_path: Path, before: int) -> None:
    """Wherever it ends: nothing of that append is there, everything before it is, and the next one is good."""
    for room in range(0, 700, 11):
        disk = FullDisk()
        with DataDirectory.open(tmp_path / str(room), storage=disk) as data:
            data.create_topic("a", 1, CONFIG)
            log = data.log("a", 0)
            for number in range(before):
                append(log, number)
            disk.room = room
            count = _append_until_full(log, before)
            assert keys(log) == list(range(count))
            with pytest.raises(OSError, match="No space"):  # again, as if nothing had happened
                append(log, count)
            assert keys(log) == list(range(count))
            shutil.copytree(tmp_path / str(room), tmp_path / "copy", ignore=shutil.ignore_patterns(".lock"))
            disk.room = None
            for number in range(count, count + 10):
                assert append(log, number) == number
        _check(tmp_path / str(room), count + 10)
        _check(tmp_path / "copy", count)  # as if the process had died then
        shutil.rmtree(tmp_path / "copy")


def test_the_disk_fills_up_while_a_directory_is_closed(tmp_path: Path) -> None:
    """It says so; what is there is found by the next to open it."""
    for room in range(0, 500, 9):
        disk = FullDisk()
        data = DataDirectory.open(tmp_path / str(room), storage=disk)
        data.create_topic("a", 1, CONFIG)
        for number in range(20):
            append(data.log("a", 0), number)
        disk.room = room
        try:
            data.close()
        except OSError as error:
            _check_full(error)
        else:
            assert room > 0
        disk.room = None
        _check(tmp_path / str(room), 20)


def test_the_disk_fills_up_while_a_directory_is_opened(tmp_path: Path) -> None:
    disk = FullDisk()
    with DataDirectory.open(tmp_path / "data", storage=disk) as data:
        data.create_topic("a", 2, CONFIG)
        for number in range(30):
            append(data.log("a", 0), number)
    for room in range(0, 500, 9):
        (tmp_path / "data" / ".kafka_cleanshutdown").unlink(missing_ok=True)
        disk.room = room
        try:
            DataDirectory.open(tmp_path / "data", storage=disk).close()
        except OSError as error:
            _check_full(error)
    disk.room = None
    _check(tmp_path / "data", 30)


def test_the_disk_fills_up_while_a_topic_is_created(tmp_path: Path) -> None:
    """It is there or not; the others are not touched, and the next to open the directory can use it or make it."""
    for room in range(0, 1500, 29):
        disk = FullDisk()
        with DataDirectory.open(tmp_path / str(room), storage=disk) as data:
            data.create_topic("a", 1, CONFIG)
            append(data.log("a", 0), 0)
            disk.room = room
            try:
                data.create_topic("b", 2, CONFIG)
            except OSError as error:
                _check_full(error)
            disk.room = None
            append(data.log("a", 0), 1)
        with DataDirectory.open(tmp_path / str(room), storage=disk) as data:
            if "b" not in data.topics:
                data.create_topic("b", 2, CONFIG)
            for partition in (0, 1):
                append(data.log("b", partition), 0)
        _check(tmp_path / str(room), 2)


def test_a_start_offset_that_could_not_be_written_is_written_by_the_next_call(tmp_path: Path) -> None:
    """Else the next call would say that all is well, and after a kill the log would begin where it did before."""
    disk = FullDisk()
    with DataDirectory.open(tmp_path / "data", storage=disk) as data:
        data.create_topic("a", 1, CONFIG)
        log = data.log("a", 0)
        for number in range(60):
            append(log, number)
        disk.room = 0
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                log.delete_records_before(31)
        disk.room = None
        log.delete_records_before(31)
        start_offset = log.start_offset
        assert start_offset > 20
        shutil.copytree(tmp_path / "data", tmp_path / "killed", ignore=shutil.ignore_patterns(".lock"))
    with DataDirectory.open(tmp_path / "killed") as data:
        assert data.log("a", 0).start_offset == start_offset


def test_retention_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    """Nothing can be recorded, so segments go one by one: wherever it is killed, what is left has no hole."""
    disk = FullDisk()
    with DataDirectory.open(tmp_path / "data", storage=disk) as data:
        data.create_topic("a", 1, CONFIG | {"retention.bytes": "2000", "file.delete.delay.ms": "0"})
        log = data.log("a", 0)
        for number in range(60):
            append(log, number)
        images: list[Path] = []

        def killed_now(folder: Path) -> None:
            if threading.current_thread() is not threading.main_thread():
                return  # a flush of segments that have rolled
            images.append(tmp_path / f"killed-{len(images)}")
            shutil.copytree(tmp_path / "data", images[-1], ignore=shutil.ignore_patterns(".lock"))

        disk.room = 0
        disk.on_sync_folder = killed_now
        assert len(log.apply_retention()) == len(images) > 2
        disk.on_sync_folder = None
        start_offset = log.start_offset
        assert start_offset > 20
        assert keys(log) == list(range(start_offset, 60))
        assert log.delete_files() == len(images)
        disk.room = None
        append(log, 60)
    starts = []
    for image in images:
        with DataDirectory.open(image) as data:
            starts.append(data.log("a", 0).start_offset)
            assert keys(data.log("a", 0)) == list(range(starts[-1], 60))
    assert starts == sorted(set(starts))
    assert starts[-1] == start_offset


def _append_until_full(log: Log, count: int) -> int:
    """Append until the disk says that it is full; how many records the log has then."""
    while True:
        try:
            append(log, count)
        except OSError as error:
            _check_full(error)
            return count
        count += 1


def _check_full(error: OSError) -> None:
    assert error.errno == errno.ENOSPC, error


def _check(folder: Path, count: int) -> None:
    """A directory holds so many records, before and after it was closed once more."""
    for _ in range(2):
        with DataDirectory.open(folder, storage=FullDisk()) as data:  # which has room, and syncs nothing
            assert keys(data.log("a", 0)) == list(range(count))


# ------------------------------------------------------------------------------------------------ limits of the system

_UNTIL_FULL: Final = """
import sys
from pathlib import Path
from octavo.log import DataDirectory, Log
from tests.unit.log.directories import CONFIG, append, keys

config = CONFIG | {"internal.segment.bytes": "1000000"}
{before}
data = DataDirectory.open(Path(sys.argv[1]))
if "a" not in data.topics:
    data.create_topic("a", 1, config)
log = data.log("a", 0)
{limit}
count = log.end_offset
try:
    while True:
        append(log, count)
        count += 1
except OSError as error:
    print(error.errno, count, log.end_offset == count, keys(log) == list(range(count)))
{lift}
for number in range(count, count + 3):
    append(log, number)
assert keys(log) == list(range(count + 3))
data.close()
"""


def _run(folder: Path, before: str, limit: str, lift: str) -> tuple[int, int]:
    program = _UNTIL_FULL.replace("{before}", before).replace("{limit}", limit).replace("{lift}", lift)
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    number, count, same_end, same_content = done.stdout.split()
    assert (same_end, same_content) == ("True", "True")
    return int(number), int(count)


@pytest.mark.parametrize("size", [4000, 4096, 5001, 50_000])
def test_a_limit_of_the_size_of_files(tmp_path: Path, size: int) -> None:
    """The system's own way to refuse the rest of a write."""
    number, count = _run(
        tmp_path / "data",
        "import resource; _, most = resource.getrlimit(resource.RLIMIT_FSIZE)",
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, most))",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))",
    )
    assert number == errno.EFBIG
    _check(tmp_path / "data", count + 3)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_file_system_without_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(100 << 10))
    number, count = _run(
        small_disk / "data", f"from pathlib import Path; filler = Path({str(filler)!r})", "", "filler.unlink()"
    )
    assert number == errno.ENOSPC
    assert count > 100
    _check(small_disk / "data", count + 3)


def test_deleted_topics_make_room_though_a_new_one_can_neither_be_made_nor_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk()
    with DataDirectory.open(tmp_path, storage=disk) as data:
        data.create_topic("gone")
        data.delete_topic("gone")

        def fill(_: Path) -> None:
            disk.room = 0
            raise FULL

        with monkeypatch.context() as patched:
            patched.setattr(disk, "make_folder", fill)  # when the metadata know the topic
            with pytest.raises(OSError, match="No space"):
                data.create_topic("new")
        assert not data.topics
        with pytest.raises(OSError, match="No space"):
            data.create_topic("another")
        assert data.delete_files(2**60) == 1
        disk.room = None
        data.create_topic("another")
        assert list(data.topics) == ["another"]

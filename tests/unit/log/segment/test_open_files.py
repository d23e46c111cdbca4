"""Files that are opened on demand: how many are open, and which file a name leads to while it changes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from octavo.log import DataDirectory, Log, LogConfig
from octavo.log.names import INDEX, LOG, TIME_INDEX, TXN_INDEX
from octavo.log.segment import open_files
from octavo.log.segment.open_files import OPEN_FILES, LazyFile, OpenFiles, most_open
from octavo.log.segment.segment import Segment
from octavo.log.storage import DISK, File
from tests.crash.disk import Data, Names, Survival, write_image
from tests.crash.storage import CrashStorage, FastStorage
from tests.unit.log.failing import FailingDisk
from tests.unit.log.logs import SMALL, TIME_MS, keys, make_batch, open_log
from tests.unit.log.producer_state.test_states import batch_of, end
from tests.unit.log.test_interleavings import Interrupted

FEW = 24  # files

MANY_PARTITIONS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from octavo.log import DataDirectory
from tests.crash.storage import FastStorage
from tests.unit.log.logs import make_batch
batch = make_batch()
with DataDirectory.open(sys.argv[1], storage=FastStorage()) as data:
    data.create_topic("t", 500)
    logs = [data.log("t", number) for number in range(500)]
    for offset in range(2):
        assert all(log.append(batch).base_offset == offset for log in logs)
    with open(sys.argv[1] + "/something else", "w"):
        pass
    assert all(log.read(0, 1000).size for log in logs)
    for log in logs:
        log.roll()
        log.delete_oldest(1)
    assert all(log.append(batch).base_offset == 2 for log in logs)
with DataDirectory.open(sys.argv[1], storage=FastStorage()) as data:
    assert all(data.log("t", number).end_offset == 3 for number in range(500))
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only few files be open, and count none of those that other tests have left open."""
    monkeypatch.setattr(open_files, "OPEN_FILES", OpenFiles())
    monkeypatch.setattr(open_files, "most_open", lambda: FEW)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for many small files, which may take seconds on a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        yield Path(name)


def count_open() -> int:
    return sum(file is not None and file.is_open for file in {found() for found in open_files.OPEN_FILES._files})


def test_a_process_that_may_open_256_files_uses_500_partitions(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", MANY_PARTITIONS, str(folder)], check=True)


def test_half_of_what_a_process_may_open_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for allowed, most in ((1024, 512), (1 << 20, 4096), (-1, 4096), (20, 16)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, allowed=allowed: (allowed, allowed))
        assert most_open() == most


@pytest.mark.usefixtures("few")
def test_only_so_many_files_are_open_however_many_logs_are_written(folder: Path) -> None:
    with DataDirectory.open(folder, storage=FastStorage()) as data:
        data.create_topic("t", 30, SMALL)
        for number in range(300):
            data.log("t", number % 30).append(make_batch(first=number))
            assert count_open() <= FEW
        for number in range(30):
            assert keys(data.log("t", number)) == list(range(number, 300, 30))
            assert count_open() <= FEW


@pytest.mark.usefixtures("few")
def test_files_with_nothing_to_sync_are_closed_first(tmp_path: Path) -> None:
    files = []
    for number in range(FEW):
        (tmp_path / str(number)).write_bytes(b"x")
        files.append(LazyFile(DISK, tmp_path / str(number)))
    for file in files[:4]:
        file.to_write()
    for file in files[4:]:
        file.to_read()
    files[0].sync()
    last = LazyFile(DISK, tmp_path / "0")
    last.to_read()
    assert [file.is_open for file in files[:4]] == [False, True, True, True]


def test_what_was_written_to_a_file_that_was_closed_since_is_synced_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    storage = CrashStorage(tmp_path / "disk")
    with DataDirectory.open(storage.folder, storage=storage) as data:
        data.create_topic("t", 1, SMALL)
        log = data.log("t", 0)
        for number in range(8):
            log.append(make_batch(first=number))
        OPEN_FILES.close_all()
        log.flush()
        write_image(storage.disk().image(Survival(Names.NONE, Data.NONE), Random(0)), tmp_path / "image")
    with DataDirectory.open(tmp_path / "image") as data:
        assert keys(data.log("t", 0)) == list(range(8))


def test_when_the_process_can_open_no_more_files_others_are_closed(tmp_path: Path) -> None:
    disk = FailingDisk()
    with DataDirectory.open(tmp_path, storage=disk) as data:
        data.create_topic("t", 10, SMALL)
        logs = [data.log("t", number) for number in range(10)]
        disk.most_open = 12
        for number in range(100):
            logs[number % 10].append(make_batch(first=number))
        assert keys(logs[3]) == list(range(3, 100, 10))


# ------------------------------------------------------------------------------------------------------- names change


def look_up(segment: Segment) -> tuple[object, ...]:
    """All that readers ask of the files of a segment."""
    return (
        segment.file.read_at(segment.size, 0),
        segment.offset_index.last,
        [segment.offset_index.lookup(offset) for offset in range(4)],
        segment.time_index.last,
        [segment.time_index.lookup(TIME_MS + 10 * number) for number in range(4)],
        list(segment.txn_index.entries()),
    )


def forget_contents(segment: Segment) -> None:
    """Close the files, and know nothing any more of what is in them."""
    segment.forget()
    segment.refresh(segment.size)


def make_segment(log: Log) -> Segment:
    """A segment with entries in all of its indexes."""
    for number in range(3):
        log.append(make_batch(time_ms=TIME_MS + 10 * number))
    log.append(batch_of(1, 0, transactional=True))
    end(log, 1, commit=False)
    log.roll()
    assert log._view.segments[0].offset_index.count
    return log._view.segments[0]


def replace(segment: Segment) -> None:
    """What compaction does with a segment of which little stays."""
    segment.put_away()
    for suffix, entry in ((LOG, b""), (INDEX, b"\1" * 8), (TIME_INDEX, b"\1" * 12), (TXN_INDEX, b"")):
        segment.path.with_suffix(suffix).write_bytes(entry)


@pytest.mark.parametrize("suffix", [LOG, INDEX, TIME_INDEX, TXN_INDEX])
def test_a_reader_who_opens_a_file_while_compaction_replaces_it_reads_the_old_one(tmp_path: Path, suffix: str) -> None:
    disk = Interrupted()
    config = LogConfig.from_properties(SMALL)
    with Log.open(tmp_path / "t-0", config, clock=lambda: TIME_MS, storage=disk) as log:
        segment = make_segment(log)
        before = look_up(segment)
        forget_contents(segment)
        disk.before_open = suffix, lambda: replace(segment)
        for _ in range(2):
            assert look_up(segment) == before
            forget_contents(segment)
        assert disk.before_open is None


def test_a_segment_that_was_deleted_can_be_read_by_who_has_it_in_view(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        segment = make_segment(log)
        before = look_up(segment)
        segment.put_away()
        forget_contents(segment)
        assert look_up(segment) == before
        forget_contents(segment)
        segment.remove_deleted()
        assert not list(segment.path.parent.glob("*.deleted"))
        forget_contents(segment)
        OPEN_FILES.close_all()
        assert look_up(segment) == before


def test_a_deleted_file_is_not_taken_for_another_that_was_deleted_by_the_same_name(tmp_path: Path) -> None:
    name, deleted = tmp_path / "name", tmp_path / "name.deleted"
    older, newer = LazyFile(DISK, name), LazyFile(DISK, name)
    name.write_bytes(b"older")
    older.rename(deleted)
    name.write_bytes(b"newer")
    newer.rename(deleted)
    assert older.to_read().read_at(5, 0) == b"older"
    older.remove()
    assert newer.to_read().read_at(5, 0) == b"newer"
    assert deleted.exists()
    other = LazyFile(DISK, name)
    name.write_bytes(b"other")
    other.rename(deleted)
    newer.forget()
    with pytest.raises(FileNotFoundError):
        newer.to_read()


def test_a_file_that_was_missing_when_its_segment_was_deleted_stays_missing(tmp_path: Path) -> None:
    file = LazyFile(DISK, tmp_path / "name")
    (tmp_path / "name.deleted").write_bytes(b"of a segment that was here before")
    file.rename(tmp_path / "name.deleted")
    (tmp_path / "name").write_bytes(b"of a segment that came later")
    assert file.to_read_if_there() is None
    file.remove()
    assert (tmp_path / "name.deleted").exists()


def test_a_file_in_use_stays_open_when_others_need_room(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"content")
    lazy = LazyFile(DISK, tmp_path / "name")
    file: File = lazy.to_read()
    OPEN_FILES.close_all()
    assert not lazy.is_open
    assert file.read_at(7, 0) == b"content"


def test_the_age_of_a_deleted_segment_is_known_when_others_need_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = Segment.create(DISK, tmp_path, 0, created_ms=0)
    modified_ms = segment.modified_ms()
    segment.put_away()
    segment.file.size()
    status_of = os.fstat

    def status_late(descriptor: int) -> os.stat_result:
        OPEN_FILES.close_all()
        return status_of(descriptor)

    monkeypatch.setattr(os, "fstat", status_late)
    assert segment.modified_ms() == modified_ms

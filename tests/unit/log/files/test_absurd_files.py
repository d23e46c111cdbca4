"""Files that are no files, and files of absurd sizes: nothing waits for them, and nothing reads them through."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from octavo.errors import BadDirectory, CorruptFile, OctavoError
from octavo.log import DataDirectory, Isolation
from octavo.log.producer_state.snapshot import read_snapshot
from octavo.log.reading.readable_log import ReadableLog
from octavo.log.segment.index import OffsetIndex, TimeIndex
from octavo.log.storage import DISK
from octavo.spark.files import Root
from tests.crash.storage import FastStorage
from tests.unit.log.logs import SMALL, TIME_MS, keys, make_batch
from tests.unit.log.producer_state.test_states import batch_of, end

COUNT: Final = 12
TIB: Final = 1 << 40
NAMES: Final = (
    ".kafka_cleanshutdown",
    ".lock",
    "meta.properties",
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "__cluster_metadata-0/00000000000000000000.log",
    "t-0/leader-epoch-checkpoint",
    "t-0/partition.metadata",
    "t-0/00000000000000000000.index",
    "t-0/00000000000000000000.log",
    "t-0/00000000000000000000.timeindex",
    "t-0/00000000000000000000.txnindex",
    "t-0/00000000000000000099.snapshot",
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "data"
    folder.mkdir()
    with DataDirectory.open(folder, storage=FastStorage()) as data:
        data.create_topic("t", 1, SMALL)
        log = data.log("t", 0)
        for number in range(COUNT):
            log.append(make_batch(first=number))
        log.append(batch_of(1, 0, transactional=True))
        end(log, 1, commit=False)
        log.roll()
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "data")
    return tmp_path / "data"


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def open_to_write(folder: Path) -> None:
    with DataDirectory.open(folder, storage=FastStorage()) as data:
        read(data.log("t", 0))


def open_to_read(folder: Path) -> None:
    with DataDirectory.open(folder, read_only=True) as data:
        read(data.log("t", 0))


def read(log: ReadableLog) -> None:
    list(log.reader(isolation=Isolation.READ_COMMITTED).records())
    log.offset_for_timestamp(TIME_MS)


@pytest.mark.parametrize("make", [os.mkfifo, make_socket, make_device], ids=["pipe", "socket", "device"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("open_it", [open_to_write, open_to_read], ids=["to write", "to read"])
def test_nobody_waits_for_what_is_no_file(
    folder: Path, name: str, make: Callable[[Path], None], open_it: Callable[[Path], None]
) -> None:
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    with contextlib.suppress(OctavoError, OSError):
        open_it(folder)


@pytest.mark.parametrize("make", [os.mkfifo, make_socket, make_device, os.mkdir])
def test_only_regular_files_are_opened(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "name")
    for open_it in (DISK.open, Root(str(tmp_path)).storage().open):
        with pytest.raises(BadDirectory, match="this should be a file, and is a"):
            open_it(tmp_path / "name")


# --------------------------------------------------------------------------------------------------------- sparse files


def extend(path: Path, last: bytes) -> None:
    """Make it a terabyte large, with these bytes at the end; it takes no room."""
    with path.open("r+b") as file:
        file.truncate(TIB)
        file.seek(TIB - TIB % len(last) - len(last))
        file.write(last)
        file.truncate()


@pytest.fixture(params=["closed cleanly", "crashed"])
def sparse(request: pytest.FixtureRequest, folder: Path) -> Path:
    """A directory with indexes of a terabyte each."""
    for path in (folder / "t-0").glob("*.index"):
        extend(path, struct.pack(">ii", 7, 7))
    for path in (folder / "t-0").glob("*.timeindex"):
        extend(path, struct.pack(">qi", TIME_MS, 7))
    for path in (folder / "t-0").glob("*.txnindex"):
        extend(path, struct.pack(">hqqqq", 0, 1, 0, 1, 1))
    if request.param == "crashed":
        (folder / ".kafka_cleanshutdown").unlink()
    return folder


def test_indexes_of_a_terabyte_are_not_read_through(sparse: Path) -> None:
    with DataDirectory.open(sparse, read_only=True) as data:
        watched = data.log("t", 0)
        assert keys(watched) == [*range(COUNT), 0]
        for number in range(COUNT):
            found = watched.offset_for_timestamp(TIME_MS)
            assert found is not None
            assert watched.read(number, 1).size
    with DataDirectory.open(sparse, storage=FastStorage()) as data:
        log = data.log("t", 0)
        assert [r.offset for r in log.reader(isolation=Isolation.READ_COMMITTED).records()] == list(range(COUNT))
        log.append(make_batch(first=COUNT))
    with DataDirectory.open(sparse, storage=FastStorage()) as data:
        assert data.log("t", 0).end_offset == COUNT + 3


def test_a_last_segment_of_a_terabyte_is_not_searched_through(folder: Path) -> None:
    last = max((folder / "t-0").glob("*.log"))
    with DataDirectory.open(folder, read_only=True) as data:
        before = keys(data.log("t", 0))
    os.truncate(last, TIB)
    with DataDirectory.open(folder, read_only=True) as data:
        assert keys(data.log("t", 0)) == before


def test_an_index_with_more_entries_than_room_for_batches_is_made_anew(folder: Path) -> None:
    path = folder / "t-0" / f"{0:020d}.index"
    count = path.stat().st_size // 8
    path.write_bytes(b"".join(struct.pack(">ii", number, number) for number in range(1, 2000)))
    with DataDirectory.open(folder, storage=FastStorage()) as data:
        assert path.with_suffix(".log").name in data.log("t", 0).recovery.rebuilt
        assert data.log("t", 0)._view.segments[0].offset_index.count == count


@pytest.mark.parametrize("index", [OffsetIndex, TimeIndex])
def test_an_index_that_kafka_has_made_in_advance_for_an_empty_segment_has_no_entries(
    tmp_path: Path, index: type[OffsetIndex | TimeIndex]
) -> None:
    path = tmp_path / "index"
    path.write_bytes(bytes(10 * index.ENTRY_SIZE))
    assert index(DISK, path, 5, 0).count == 0


def test_a_snapshot_of_a_gigabyte_is_not_read_through(tmp_path: Path) -> None:
    path = tmp_path / "0.snapshot"
    path.touch()
    extend(path, b"\1")
    with pytest.raises(CorruptFile, match="version 0"):
        read_snapshot(DISK, path)

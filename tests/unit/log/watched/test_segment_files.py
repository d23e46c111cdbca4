"""Who watches a log while a compaction puts its output in the place of segments, or after it died doing so."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from octavo.log import Log, storage
from octavo.log.names import CLEANED, DELETED, INDEX, LOG, SWAP, TIME_INDEX, file_name
from octavo.log.reading.readable_log import ReadableLog
from octavo.log.storage import DISK, Storage
from octavo.records import read_batches
from tests.crash.disk import PROCESS_DIED, write_image
from tests.crash.storage import CrashStorage
from tests.unit.log.compaction import logs as compacted
from tests.unit.log.logs import keys, make_batch, open_log

COUNT = 30
REPLACED = 3  # segments


class Told(Storage):
    """A disk that tells when a name has changed."""

    def __init__(self) -> None:
        self.tell: Callable[[], object] = lambda: None

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.tell()


def last_values(log: ReadableLog) -> dict[bytes | None, bytes | None]:
    latest = {record.key: record.value for record in log.reader().records()}
    return {key: value for key, value in latest.items() if value is not None}


def fill(log: Log) -> dict[bytes | None, bytes | None]:
    for number in range(24):
        compacted.append(log, f"{number % 5}", f"k{number % 20}")
        if number % 6 == 5:
            log.roll()
    return last_values(log)


def test_a_watcher_misses_nothing_at_any_step_of_a_compaction(tmp_path: Path) -> None:
    disk = Told()
    looks = []
    with compacted.open_log(tmp_path, storage=disk) as log:
        expected = fill(log)
        before = Log.open(log.folder, read_only=True)

        def look() -> None:
            before.refresh()
            with Log.open(log.folder, read_only=True) as watched:
                looks.append({watched.path_of(segment.base_offset).suffix for segment in watched.segments})
                assert last_values(watched) == last_values(before) == expected
                assert (watched.start_offset, watched.end_offset, before.generation) == (0, 48, 0)

        disk.tell = look
        assert log.compact() is not None
        disk.tell = lambda: None
        before.close()
    assert {SWAP, LOG} in looks


def test_a_watcher_of_what_a_compaction_that_died_has_left_misses_nothing(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    with compacted.open_log(tmp_path / "disk") as log:
        expected = fill(log)
    disk = CrashStorage(tmp_path / "disk")
    with compacted.open_log(tmp_path / "disk", storage=disk) as log:
        assert log.compact() is not None
    for number, points in disk.crash_points():
        write_image(points.image(PROCESS_DIED, Random(1)), tmp_path / "image")
        with Log.open(tmp_path / "image" / "topic-0", read_only=True) as watched:
            assert last_values(watched) == expected, number
        shutil.rmtree(tmp_path / "image")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Output that has the even ones of the first segments' records, and the last, beside these segments."""
    with open_log(tmp_path) as log:
        for number in range(COUNT):
            log.append(make_batch(first=number))
        assert len(log.segments) > REPLACED
    batches = [batch for path in old_files(log.folder, LOG) for batch in read_batches(path.read_bytes())]
    kept = [batch for batch in batches if batch.base_offset % 2 == 0 or batch is batches[-1]]
    (log.folder / (file_name(0, LOG) + SWAP)).write_bytes(b"".join(batch.data for batch in kept))
    entry = struct.pack(">ii", kept[-1].last_offset, sum(batch.size for batch in kept[:-1]))
    (log.folder / (file_name(0, INDEX) + SWAP)).write_bytes(entry)
    (log.folder / (file_name(0, TIME_INDEX) + SWAP)).write_bytes(b"")
    return log.folder


def old_files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob("*" + suffix))[:REPLACED]


def put_away(folder: Path, count: int) -> None:
    for suffix in (LOG, INDEX, TIME_INDEX):
        for path in old_files(folder, suffix)[:count]:
            path.rename(path.with_name(path.name + DELETED))


def expected_keys(folder: Path) -> list[int]:
    """What is in the log when the output has taken its place."""
    last = [batch.last_offset for batch in read_batches((folder / (file_name(0, LOG) + SWAP)).read_bytes())][-1]
    return [*(key for key in range(last) if key % 2 == 0), last, *range(last + 1, COUNT)]


@pytest.mark.parametrize("gone", range(REPLACED + 1))
def test_output_is_read_in_place_of_what_it_replaces(folder: Path, gone: int) -> None:
    expected = expected_keys(folder)
    put_away(folder, gone)
    with Log.open(folder, read_only=True) as watched:
        assert keys(watched) == expected
        assert watched.start_offset == 0
        path = folder / (file_name(0, LOG) + SWAP)
        assert watched.path_of(0) == path == watched.view.segments[0].file.path
        assert watched.identity(0) == path.stat().st_ino == DISK.identity(watched.view.segments[0].file)
        assert watched.view.segments[0].offset_index.count == 1
        assert watched.view.segments[1].base_offset == watched.view.segments[0].end_offset()[0]


def test_output_that_is_not_finished_is_not_read(folder: Path) -> None:
    index = folder / (file_name(0, INDEX) + SWAP)
    index.rename(index.with_name(file_name(0, INDEX) + CLEANED))
    with Log.open(folder, read_only=True) as watched:
        assert keys(watched) == list(range(COUNT))
        assert watched.path_of(0) == folder / file_name(0, LOG)


def test_output_gets_its_name_while_it_is_watched(folder: Path) -> None:
    expected = expected_keys(folder)
    put_away(folder, REPLACED)
    with Log.open(folder, read_only=True) as watched, Log.open(folder, read_only=True) as looks_again:
        segment = looks_again.view.segments[0]
        (folder / (file_name(0, LOG) + SWAP)).rename(folder / file_name(0, LOG))
        with Log.open(folder, read_only=True) as late:  # the indexes have not got theirs yet
            assert late.view.segments[0].offset_index.count == 1
        for suffix in (INDEX, TIME_INDEX):
            (folder / (file_name(0, suffix) + SWAP)).rename(folder / file_name(0, suffix))
        assert keys(watched) == expected
        assert watched.view.segments[0].offset_index.count == 1
        assert not looks_again.refresh()
        assert looks_again.view.segments[0] is segment
        assert looks_again.path_of(0) == folder / file_name(0, LOG)
        assert keys(looks_again) == expected


def test_damaged_output_replaces_no_other_segment(folder: Path) -> None:
    (folder / (file_name(0, LOG) + SWAP)).write_bytes(bytes(100))
    (folder / (file_name(0, INDEX) + SWAP)).unlink()
    with Log.open(folder, read_only=True) as watched:
        second = watched.segments[1].base_offset
        assert keys(watched, second) == list(range(second, COUNT))


@pytest.mark.parametrize("number", [0, 1])
def test_a_file_that_a_listing_misses_is_in_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As one may that is renamed while the folder is listed."""
    expected = expected_keys(folder)
    put_away(folder, REPLACED)
    listed = storage._names
    listings = 0

    def misses_once(path: Path, suffix: str | tuple[str, ...]) -> list[str]:
        nonlocal listings
        listings += 1
        missed = file_name(0, LOG) + SWAP if listings == number + 1 else None
        return [name for name in listed(path, suffix) if name != missed]

    monkeypatch.setattr(storage, "_names", misses_once)
    with Log.open(folder, read_only=True) as watched:
        assert keys(watched) == expected
    assert listings == number + 3

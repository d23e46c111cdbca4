"""Where a log ends that is only watched: torn tails are not part of it, and damage before other batches is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octavo.errors import FormatError
from octavo.log import Log
from octavo.log.names import INDEX
from octavo.log.segment.damage import BatchSearch
from octavo.log.storage import DISK, File, Storage
from octavo.records import BatchBuilder, read_batches
from octavo.records.layout import BATCH_HEADER, LENGTH_AT
from tests.unit.log.logs import TIME_MS, keys, make_batch, open_log

COUNT = 10
CHECKPOINT = "replication-offset-checkpoint"


class Counted(Storage):
    """A disk that counts the bytes that are read from data."""

    def __init__(self) -> None:
        self.read = 0
        self.most = 0  # at once

    def open(self, path: Path) -> File:
        return CountedFile(path, self)


class CountedFile(File):
    __slots__ = ("_disk",)

    def __init__(self, path: Path, disk: Counted) -> None:
        super().__init__(path, 0)
        self._disk = disk

    def read_at(self, size: int, position: int) -> bytes:
        data = super().read_at(size, position)
        if self.path.suffix == ".log":
            self._disk.read += len(data)
            self._disk.most = max(self._disk.most, len(data))
        return data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The one segment of a log of `COUNT` batches, of a record each, and nothing in its index."""
    with open_log(tmp_path, internal_segment_bytes="100000", index_interval_bytes="100000") as log:
        for number in range(COUNT):
            log.append(make_batch(first=number))
    (tmp_path / CHECKPOINT).unlink()
    return log.segments[0].path


def batches(path: Path) -> list[bytes]:
    return [bytes(batch.data) for batch in read_batches(path.read_bytes())]


def damaged(batch: bytes, at: int = 70) -> bytes:
    return batch[:at] + bytes([batch[at] ^ 0x40]) + batch[at + 1 :]


def watch(path: Path, storage: Storage = DISK) -> tuple[int, int]:
    """The offset and the position at which a log ends."""
    with Log.open(path.parent, read_only=True, storage=storage) as watched:
        return watched.end_offset, watched.view.size


@pytest.mark.parametrize("at", [LENGTH_AT + 3, 16, 30, 70])
@pytest.mark.parametrize("numbers", [[3], [0], [3, 4], [3, 6], [0, 8]])
def test_a_log_goes_on_behind_damage_and_who_reads_meets_it(path: Path, numbers: list[int], at: int) -> None:
    good = batches(path)
    data = b"".join(damaged(batch, at) if number in numbers else batch for number, batch in enumerate(good))
    path.write_bytes(data)
    with Log.open(path.parent, read_only=True) as watched:
        assert (watched.end_offset, watched.view.size) == (COUNT, len(data))
        with pytest.raises(FormatError):
            keys(watched)
        assert not watched.refresh()


def test_damage_that_comes_later_does_not_end_a_log_either(path: Path) -> None:
    good = batches(path)
    path.write_bytes(b"".join(good[:3]))
    with Log.open(path.parent, read_only=True) as watched:
        assert watched.end_offset == 3
        path.write_bytes(b"".join((*good[:3], damaged(good[3]))))
        assert not watched.refresh()
        path.write_bytes(b"".join((*good[:3], damaged(good[3]), good[4][:-1])))
        assert not watched.refresh()
        path.write_bytes(b"".join((*good[:3], damaged(good[3]), good[4])))
        assert watched.refresh()
        assert (watched.end_offset, watched.generation) == (5, 0)
        path.write_bytes(b"".join((*good[:3], damaged(good[3]), *good[4:])))
        assert watched.refresh()
        assert (watched.end_offset, watched.generation) == (COUNT, 0)


@pytest.mark.parametrize("at", [16, 30, 70])
def test_the_last_batch_may_be_torn_whatever_it_looks_like(path: Path, at: int) -> None:
    good = batches(path)
    whole = b"".join(good[:-1])
    for tail in (damaged(good[-1], at), damaged(good[-1], at) + bytes(500), bytes(500), good[-1][:-1], good[-1][:20]):
        path.write_bytes(whole + tail)
        assert watch(path) == (COUNT - 1, len(whole))


def test_batches_in_a_batch_that_is_being_written_are_no_part_of_the_log(path: Path) -> None:
    """A record may hold any bytes; whether there is more behind it, only the recorded high watermark can tell."""
    good = batches(path)
    inside = bytearray(good[-1])
    inside[7] = 20  # its offset, which has no checksum
    header = bytearray(good[-1][:61])
    header[LENGTH_AT : LENGTH_AT + 4] = (1000).to_bytes(4, "big")
    whole = b"".join(good[:-1])
    path.write_bytes(whole + header + inside)
    assert watch(path) == (COUNT - 1, len(whole))
    (path.parents[1] / CHECKPOINT).write_text("0\n1\ntopic 0 9\n")
    assert watch(path) == (COUNT - 1, len(whole))


def test_a_length_that_reaches_over_the_end_is_damage_where_more_was_replicated(path: Path) -> None:
    good = batches(path)
    data = b"".join((*good[:3], damaged(good[3], LENGTH_AT + 1), *good[4:]))
    path.write_bytes(data)
    assert watch(path) == (3, len(b"".join(good[:3])))
    (path.parents[1] / CHECKPOINT).write_text(f"0\n1\ntopic 0 {COUNT}\n")
    assert watch(path) == (COUNT, len(data))


def test_batches_of_lower_offsets_behind_damage_are_no_part_of_the_log(path: Path) -> None:
    good = batches(path)
    whole = b"".join(good)
    path.write_bytes(whole + damaged(good[3]) + good[4])
    assert watch(path) == (COUNT, len(whole))


def test_what_is_behind_the_tail_is_searched_once(path: Path) -> None:
    room = 20 << 20
    data = path.read_bytes()
    path.write_bytes(data + bytes(room))
    disk = Counted()
    with Log.open(path.parent, read_only=True, storage=disk) as watched:
        assert watched.end_offset == COUNT
        assert disk.read > room
        assert disk.most <= 4 << 20
        disk.read = 0
        batch = bytearray(make_batch(first=COUNT))
        batch[7] = COUNT
        with path.open("r+b") as file:
            file.seek(len(data))
            file.write(batch)
        assert watched.refresh()
        assert watched.end_offset == COUNT + 1
        assert not watched.refresh()
        assert disk.read < room // 10


def test_a_look_checks_no_more_than_what_is_behind_the_last_index_entry(tmp_path: Path) -> None:
    disk = Counted()
    with open_log(tmp_path, internal_segment_bytes="10000000", index_interval_bytes="4096") as log:
        log.append(make_batch())
        with Log.open(log.folder, read_only=True, storage=disk) as watched:
            assert keys(watched) == [0]
            for number in range(1, 8000):
                log.append(make_batch(first=number))
            disk.read = 0
            assert watched.refresh()
            assert watched.end_offset == 8000
            assert disk.read < log.segments[0].size // 5
            assert keys(watched, 7990) == list(range(7990, 8000))


def test_an_index_that_lies_does_not_hide_what_is_new(tmp_path: Path) -> None:
    with (
        open_log(tmp_path, internal_segment_bytes="100000") as log,
        Log.open(log.folder, read_only=True) as watched,
    ):
        for number in range(10):
            log.append(make_batch(first=number))
        size = log.segments[0].size
        log.segments[0].path.with_suffix(INDEX).write_bytes((9).to_bytes(4, "big") + (size - 30).to_bytes(4, "big"))
        assert watched.refresh()
        assert watched.end_offset == 10


def test_the_next_batch_may_be_behind_any_number_of_zeros(tmp_path: Path) -> None:
    batch = make_batch()
    path = tmp_path / "data"
    for count in (1, 7, 100, (4 << 20) - 5, 4 << 20, 9 << 20):
        path.write_bytes(b"x" * 20 + bytes(count) + batch)
        file = DISK.open(path)
        for position in (0, 20):
            assert BatchSearch().next_batch(file, position, file.size()) == 20 + count
        assert BatchSearch().next_batch(file, 20 + count, file.size()) == file.size()
        assert BatchSearch().next_batch(file, 20, 20 + count) == 20 + count


def test_what_a_large_damaged_batch_holds_is_not_the_next(tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(b"key", make_batch() + bytes(5 << 20), timestamp_ms=TIME_MS)
    large = damaged(builder.build(), 5 << 20)
    path = tmp_path / "data"
    path.write_bytes(large + make_batch())
    file = DISK.open(path)
    assert BatchSearch().next_batch(file, 0, file.size()) == len(large)


def test_a_file_can_be_closed_twice(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x")
    file = DISK.open(tmp_path / "data")
    descriptor = file.descriptor
    file.close()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_much_damage_is_passed_over_without_reading_the_rest_again_for_each_place(tmp_path: Path) -> None:
    count = 600
    with open_log(tmp_path, internal_segment_bytes="10000000", index_interval_bytes="10000000") as log:
        for number in range(count):
            log.append(make_batch(first=number))
    path = log.segments[0].path
    good = batches(path)
    data = b"".join(damaged(batch, LENGTH_AT + 3) if number % 2 else batch for number, batch in enumerate(good[:-1]))
    path.write_bytes(data + good[-1])
    disk = Counted()
    with Log.open(path.parent, read_only=True, storage=disk) as watched:
        assert (watched.end_offset, watched.view.size) == (count, path.stat().st_size)
    assert disk.read < 20 * len(data)


def test_lengths_that_lead_far_away_do_not_have_everything_read_for_each_of_them(tmp_path: Path) -> None:
    """Headers one behind the other, each of which seems to lead to a batch that takes the rest of the file."""
    room = 6 << 20
    header = bytearray(make_batch()[: BATCH_HEADER.size] + b"x" * 2000)
    header[LENGTH_AT : LENGTH_AT + 4] = (5 << 20).to_bytes(4, "big")
    path = tmp_path / "x.log"
    path.write_bytes(bytes(header) * (room // len(header)))
    disk = Counted()
    file = disk.open(path)
    search = BatchSearch()
    for number in range(200):
        assert search.next_batch(file, number * len(header), file.size()) == file.size()
    assert disk.read < 8 * room

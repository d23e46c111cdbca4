"""A read says where to go on, and ends at a whole batch where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.errors import CorruptFile
from octavo.log import Isolation, Log, ReadableLog
from octavo.log.names import INDEX, LOG, file_name
from octavo.records import Batch, read_batches
from octavo.records.layout import BATCH_HEADER
from tests.unit.log.logs import make_batch, open_log

COUNT = 30


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log of batches of one to three records, with an index entry for every second batch or so."""
    with open_log(tmp_path, **{"index.interval.bytes": "200", "internal.segment.bytes": "1000000"}) as log:
        for number in range(COUNT):
            log.append(make_batch(1 + number % 3, first=10 * number))
        yield log


def batches_of(log: ReadableLog) -> list[Batch]:
    return list(read_batches(log.read(0, 1 << 20).records))


def judge(log: ReadableLog, offset: int, max_bytes: int, isolation: Isolation = Isolation.HIGH_WATERMARK) -> None:
    """Compare a read with the batches that are there."""
    bound = log.read(0, 0, isolation=isolation).high_watermark
    there = [each for each in batches_of(log) if each.last_offset >= offset and each.last_offset < bound]
    sizes = [sum(each.size for each in there[: count + 1]) for count in range(len(there))]
    fit = [each for each, size in zip(there, sizes, strict=True) if size <= max_bytes]
    for at_least_one in (True, False):
        whole = fit or (there[:1] if at_least_one else [])
        next_offset = whole[-1].last_offset + 1 if whole else offset
        part = log.read(offset, max_bytes, isolation=isolation, at_least_one=at_least_one, whole_batches=True)
        assert part.next_offset == next_offset
        assert part.size == sum(each.size for each in whole)
        assert part.records == b"".join(each.data for each in whole)
        cut = log.read(offset, max_bytes, isolation=isolation, at_least_one=at_least_one)
        assert cut.next_offset == next_offset
        assert cut.records.startswith(part.records)


@pytest.mark.parametrize("offset", [0, 1, 2, 17, 58])
def test_reads_of_every_size_end_at_whole_batches(log: Log, offset: int) -> None:
    for max_bytes in range(0, 6_000, 53):
        judge(log, offset, max_bytes)


def test_a_read_at_the_end_goes_on_there(log: Log) -> None:
    part = log.read(log.end_offset, 1000, whole_batches=True)
    assert (part.size, part.records, part.next_offset) == (0, b"", log.end_offset)


def test_a_read_ends_before_what_is_not_visible(log: Log) -> None:
    log.advance_high_watermark(20)
    for max_bytes in (0, 200, 1 << 20):
        judge(log, 3, max_bytes)
    assert log.read(0, 1 << 20, whole_batches=True).next_offset <= 20


def test_nothing_is_read_twice_and_nothing_left_out(tmp_path: Path) -> None:
    with open_log(tmp_path, **{"internal.segment.bytes": "1500"}) as log:
        for number in range(COUNT):
            log.append(make_batch(1 + number % 3, first=10 * number))
        assert len(log.segments) > 2
        data, offset, segment = b"", 0, None
        while offset < log.end_offset:
            part = log.read(offset, 400, whole_batches=True, segment=segment)
            data += part.records
            offset, segment = part.next_offset, part.segment
        assert data == b"".join(each.path.read_bytes() for each in log.segments)


@pytest.mark.parametrize("garbage", [b"", b"\0" * 64, b"\xff" * 64, b"\0\0\0\1" * 32, bytes(range(128))])
def test_an_index_that_lies_changes_nothing(log: Log, garbage: bytes) -> None:
    log.flush()
    index = log.segments[0].path.with_name(file_name(0, INDEX))
    folder = log.segments[0].path.parent
    index.write_bytes(garbage)
    with Log.open(folder, read_only=True) as watched:
        for max_bytes in (0, 300, 1_000, 2_500):
            judge(watched, 5, max_bytes)


def test_a_read_ends_before_a_batch_whose_offset_is_wrong_and_the_next_one_says_so(log: Log) -> None:
    there = batches_of(log)
    wrong = there[20]
    log.flush()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[wrong.position : wrong.position + 8] = (wrong.base_offset + 3).to_bytes(8, "big")
    path.write_bytes(data)
    end = wrong.position + wrong.size
    part = log.read(0, end, whole_batches=True)
    assert part.next_offset == wrong.base_offset
    assert part.size == wrong.position
    with pytest.raises(CorruptFile, match="do not lie between"):
        log.read(part.next_offset, 1000, whole_batches=True)


def test_a_read_ends_before_damage_and_the_next_one_says_so(log: Log) -> None:
    wrong = batches_of(log)[20]
    log.flush()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[wrong.position : wrong.position + BATCH_HEADER.size] = b"\xff" * BATCH_HEADER.size
    path.write_bytes(data)
    part = log.read(0, wrong.position + wrong.size, whole_batches=True)
    assert (part.next_offset, part.size) == (wrong.base_offset, wrong.position)
    with pytest.raises(CorruptFile):
        log.read(part.next_offset, 1000, whole_batches=True)


def test_batches_with_gaps_between_them_are_read_once(log: Log, tmp_path: Path) -> None:
    there = batches_of(log)[::2]
    folder = tmp_path / "compacted-0"
    folder.mkdir()
    (folder / file_name(0, LOG)).write_bytes(b"".join(each.data for each in there))
    with Log.open(folder, read_only=True) as watched:
        for max_bytes in range(0, 3_000, 97):
            judge(watched, 0, max_bytes)


def test_what_is_truncated_meanwhile_is_not_the_next_offset(log: Log) -> None:
    part = log.read(0, 1 << 20)
    whole = log.read(0, 1 << 20, whole_batches=True)
    log.truncate_to(9)
    log.append(make_batch(2, first=1))
    assert part.next_offset == log.end_offset == 11
    assert whole.records == part.records == log.read(0, 1 << 20).records
    assert whole.next_offset == 11


def test_records_that_were_read_before_a_truncation_keep_their_next_offset(log: Log) -> None:
    part = log.read(0, 1 << 20)
    records, end = part.records, log.end_offset
    log.truncate_to(9)
    assert part.next_offset == end
    assert part.records == records

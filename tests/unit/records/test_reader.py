from __future__ import annotations

import mmap
from array import array
from itertools import pairwise

import pytest

from octavo.errors import BadLength, BadRecord, ChecksumMismatch, FormatError, InvalidInput, Unsupported
from octavo.records.builder import BatchBuilder
from octavo.records.checksum import crc32c
from octavo.records.layout import BATCH_HEADER, LENGTH_AT, MAGIC_AT, Codec
from octavo.records.reader import read_batches
from tests.batches import TIME_MS


def batch(base_offset: int = 0, *, magic: int = 2, count: int = 3, codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(magic, base_offset=base_offset, codec=codec)
    for number in range(count):
        builder.append(b"key", b"value %d" % number, timestamp_ms=TIME_MS + number)
    return builder.build()


def with_crc(data: bytes) -> bytes:
    """The batch of magic 2 with the checksum that its bytes give."""
    start, end = BATCH_HEADER.at("crc"), BATCH_HEADER.at("attributes")
    return data[:start] + crc32c(data[end:]).to_bytes(4, "big") + data[end:]


MIXED = [
    batch(0, magic=0, count=1),
    batch(1, magic=0, codec=Codec.GZIP),
    batch(4, magic=1, count=1),
    batch(5, magic=1, codec=Codec.LZ4),
    batch(8),
    batch(11, codec=Codec.ZSTD),
]


def test_a_buffer_of_all_magics_is_walked_batch_by_batch() -> None:
    reader = read_batches(b"".join(MIXED))
    batches = list(reader)
    assert [b.magic for b in batches] == [0, 0, 1, 1, 2, 2]
    assert [bytes(b.data) for b in batches] == MIXED
    assert [b.position for b in batches] == [sum(map(len, MIXED[:i])) for i in range(len(MIXED))]
    assert [r.offset for b in batches for r in b] == list(range(14))
    assert reader.position == sum(map(len, MIXED))
    assert reader.torn_tail is None
    assert reader.damage == []


def test_an_empty_buffer_holds_no_batch() -> None:
    reader = read_batches(b"")
    assert list(reader) == []
    assert reader.torn_tail is None


@pytest.mark.parametrize("resync", [False, True])
def test_every_cut_is_a_torn_tail_or_the_end(resync: bool) -> None:
    data = b"".join(MIXED)
    ends = [sum(map(len, MIXED[:i])) for i in range(len(MIXED) + 1)]
    for cut in range(len(data) + 1):
        reader = read_batches(data[:cut], resync=resync)
        batches = list(reader)
        last = max(end for end in ends if end <= cut)
        assert [b.position for b in batches] == [end for end in ends if end < last]
        assert reader.torn_tail == (None if cut == last else last)
        assert reader.position == last
        assert reader.damage == []


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: memoryview(array("b", data))])
def test_any_bytes_like_buffer_will_do(make: type[bytes]) -> None:
    assert [b.last_offset for b in read_batches(make(batch(7)))] == [9]


def test_a_mapped_buffer_will_do() -> None:
    with mmap.mmap(-1, 4096) as mapped:
        mapped.write(batch(7))
        reader = read_batches(mapped, end=mapped.tell())
        assert [r.offset for b in reader for r in b] == [7, 8, 9]
        del reader


def test_a_buffer_with_gaps_is_refused() -> None:
    with pytest.raises(InvalidInput):
        read_batches(memoryview(bytes(100))[::2])


def test_a_range_is_walked_alone() -> None:
    data = batch(0) + batch(3) + batch(6)
    size = len(batch(0))
    reader = read_batches(data, start=size, end=2 * size)
    assert [(b.position, b.base_offset) for b in reader] == [(size, 3)]
    reader = read_batches(data, start=size, end=2 * size + 20)
    assert [b.base_offset for b in reader] == [3]
    assert reader.torn_tail == 2 * size


@pytest.mark.parametrize(("start", "end"), [(-1, None), (0, 101), (50, 40), (101, None)])
def test_a_range_outside_the_buffer_is_refused(start: int, end: int | None) -> None:
    with pytest.raises(InvalidInput):
        read_batches(bytes(100), start=start, end=end)


def test_a_wrong_checksum_raises_with_its_position() -> None:
    data = bytearray(batch(0) + batch(3))
    data[-1] ^= 1
    reader = read_batches(data)
    next(reader)
    with pytest.raises(ChecksumMismatch) as caught:
        next(reader)
    assert caught.value.position == len(batch(0))
    assert caught.value.computed == crc32c(data[len(batch(0)) + BATCH_HEADER.at("attributes") :])


def test_a_wrong_checksum_is_passed_over_where_nobody_asks() -> None:
    data = bytearray(batch(0))
    data[-1] ^= 1
    (found,) = read_batches(data, verify=False)
    assert not found.is_valid
    with pytest.raises(ChecksumMismatch):
        found.verify()


@pytest.mark.parametrize(
    ("at", "byte", "kind"),
    [
        (LENGTH_AT + 3, 13, BadLength),  # below the smallest message
        (LENGTH_AT + 3, 48, BadLength),  # a batch of magic 2 below its header
        (LENGTH_AT, 0x80, BadLength),
        (MAGIC_AT, 3, Unsupported),
        (MAGIC_AT, 0xFF, Unsupported),
    ],
)
def test_a_header_that_cannot_be_raises(at: int, byte: int, kind: type[FormatError]) -> None:
    data = bytearray(batch(0) + batch(3))
    data[len(batch(0)) + at] = byte
    reader = read_batches(data, verify=False)
    next(reader)
    with pytest.raises(kind) as caught:
        next(reader)
    assert caught.value.position == len(batch(0))


def test_damage_is_told_again_when_asked_again() -> None:
    reader = read_batches(bytes(100))
    for _ in range(2):
        with pytest.raises(BadLength):
            next(reader)


def test_wrong_records_behind_a_right_checksum_raise_when_they_are_read() -> None:
    data = bytearray(batch(0))
    data[-1] = 2  # a header count where there is none
    (found,) = read_batches(with_crc(bytes(data)))
    records = iter(found)
    assert next(records).offset == 0
    with pytest.raises(BadLength) as caught:
        list(records)
    assert caught.value.position > BATCH_HEADER.size


def test_a_batch_longer_than_its_records_raises_when_they_are_read() -> None:
    data = bytearray(batch(0) + b"\0")
    data[LENGTH_AT + 3] += 1
    (found,) = read_batches(with_crc(bytes(data)))
    with pytest.raises(BadRecord, match="bytes are left"):
        list(found)


def test_a_torn_tail_is_no_error_and_a_position() -> None:
    reader = read_batches(batch(0) + batch(3)[:-1])
    assert [b.base_offset for b in reader] == [0]
    assert reader.torn_tail == reader.position == len(batch(0))


def test_batches_follow_one_another_without_a_gap() -> None:
    for before, after in pairwise(read_batches(b"".join(MIXED))):
        assert before.position + before.size == after.position
        assert before.next_offset == after.base_offset

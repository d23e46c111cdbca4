from __future__ import annotations

from random import Random

import pytest

from octavo.errors import BadLength, ChecksumMismatch, Truncated, Unsupported
from octavo.records import checksum
from octavo.records.builder import BatchBuilder, empty_batch
from octavo.records.layout import (
    BATCH_HEADER,
    LENGTH_AT,
    MAGIC_AT,
    MESSAGE_V0,
    BatchHeader,
    Codec,
    MessageV0,
)
from octavo.records.reader import BatchReader, read_batches
from tests.batches import TIME_MS


def batch(
    base_offset: int, *, magic: int = 2, codec: Codec = Codec.NONE, values: tuple[bytes, ...] = (b"one", b"two")
) -> bytes:
    builder = BatchBuilder(magic, base_offset=base_offset, codec=codec)
    for value in values:
        builder.append(b"key", value, timestamp_ms=TIME_MS)
    return builder.build()


def walk(data: bytes | bytearray) -> tuple[BatchReader, list[int]]:
    """The walk to its end, and the last offsets of the batches that it gave."""
    reader = read_batches(data, resync=True)
    return reader, [found.last_offset for found in reader]


def with_length(data: bytes | bytearray, length: int) -> bytes:
    return bytes(data[:LENGTH_AT]) + length.to_bytes(4, "big") + data[LENGTH_AT + 4 :]


KINDS = [(0, Codec.NONE), (0, Codec.GZIP), (1, Codec.NONE), (1, Codec.LZ4), (2, Codec.NONE), (2, Codec.ZSTD)]


@pytest.mark.parametrize(("magic", "codec"), KINDS)
def test_any_flipped_byte_loses_its_own_batch_only(magic: int, codec: Codec) -> None:
    one, two, three = (batch(offset, magic=magic, codec=codec, values=(b"value",)) for offset in (5, 6, 7))
    not_covered = set(range(LENGTH_AT))  # the offset
    if magic == 2:
        epoch = BATCH_HEADER.at("leader_epoch")
        not_covered |= set(range(epoch, epoch + 4))
    for at in range(len(two)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(two)
            damaged[at] ^= flip
            reader, offsets = walk(one + damaged + three)
            if at in not_covered:
                assert len(offsets) == 3
                assert reader.damage == []
            else:
                assert offsets == [5, 7], at
                ((position, size, error),) = reader.damage
                assert (position, size, error.position) == (len(one), len(two), len(one))
            assert reader.torn_tail is None
            assert reader.position == len(one + two + three)


@pytest.mark.parametrize("length", [0, 13, 20, 49, 60, 100, 2**20, 2**31 - 1, 2**32 - 1])
def test_a_wrong_length_loses_its_own_batch_only(length: int) -> None:
    one, two, three = batch(0), batch(2), batch(4)
    reader, offsets = walk(one + with_length(two, length) + three)
    assert offsets == [1, 5]
    assert [(d.position, d.size) for d in reader.damage] == [(len(one), len(two))]


def test_what_is_wrong_is_told() -> None:
    one, two = batch(0), bytearray(batch(2))
    two[-1] ^= 1
    assert isinstance(walk(one + two + one)[0].damage[0].error, ChecksumMismatch)
    assert isinstance(walk(one + with_length(two, 5) + batch(4))[0].damage[0].error, BadLength)
    assert isinstance(walk(one + with_length(two, 2**30) + batch(4))[0].damage[0].error, Truncated)
    two[MAGIC_AT] = 9
    assert isinstance(walk(one + two + batch(4))[0].damage[0].error, Unsupported)


@pytest.mark.parametrize(
    "garbage", [bytes(1000), b"\xff" * 1000, Random(1).randbytes(1000), b"text, " * 200, b"\0", b"\2"]
)
def test_garbage_is_passed_over_wherever_it_stands(garbage: bytes) -> None:
    one, two = batch(0), batch(2)
    reader, offsets = walk(garbage + one + two)
    assert offsets == [1, 3]
    assert [(d.position, d.size) for d in reader.damage] == [(0, len(garbage))]
    reader, offsets = walk(one + garbage + two)
    assert offsets == [1, 3]
    assert [(d.position, d.size) for d in reader.damage] == [(len(one), len(garbage))]


def test_garbage_at_the_end_is_damage_or_a_torn_tail() -> None:
    reader, offsets = walk(batch(0) + bytes(100))
    assert offsets == [1]
    assert [(d.position, d.size) for d in reader.damage] == [(len(batch(0)), 100)]
    assert reader.torn_tail is None
    reader, _ = walk(batch(0) + bytes(11))
    assert reader.damage == []
    assert reader.torn_tail == len(batch(0))


def test_a_damaged_last_batch_is_damage_and_no_torn_tail() -> None:
    data = bytearray(batch(0) + batch(2))
    data[-1] ^= 1
    reader, offsets = walk(data)
    assert offsets == [1]
    assert [(d.position, d.size) for d in reader.damage] == [(len(batch(0)), len(batch(2)))]
    assert reader.torn_tail is None


def test_a_torn_tail_behind_a_damaged_batch_is_found() -> None:
    one, two, three = batch(0), bytearray(batch(2)), batch(4)
    two[-1] ^= 1
    for cut in range(1, len(three)):
        reader, offsets = walk(one + two + three[:cut])
        assert offsets == [1]
        assert [(d.position, d.size) for d in reader.damage] == [(len(one), len(two))]
        assert reader.torn_tail == len(one) + len(two)


def test_several_damaged_batches_are_several_damages_or_one() -> None:
    batches = [bytearray(batch(2 * number)) for number in range(8)]
    for number in (1, 3, 4, 6):
        batches[number][-1] ^= 1
    size = len(batches[0])
    reader, offsets = walk(b"".join(batches))
    assert offsets == [1, 5, 11, 15]
    assert [(d.position // size, d.size // size) for d in reader.damage] == [(1, 1), (3, 2), (6, 1)]


@pytest.mark.parametrize("inner_offset", [0, 1_000_000])
def test_batches_in_values_are_not_taken_for_batches_of_the_log(inner_offset: int) -> None:
    inner = tuple(batch(inner_offset + 2 * number) for number in range(5))
    one, two, three = (batch(100 + 5 * number, values=inner) for number in range(3))
    reader, offsets = walk(one + with_length(two, 2**30) + three)
    assert offsets == [104, 114]
    assert [(d.position, d.size) for d in reader.damage] == [(len(one), len(two))]


def test_batches_in_values_are_not_taken_for_the_first_batch() -> None:
    one, two = batch(100, values=(batch(0), batch(5))), batch(102)
    _, offsets = walk(with_length(one, 2**30) + two)
    assert offsets == [103]


def test_batches_in_the_values_of_a_torn_tail_leave_it_a_torn_tail() -> None:
    one, two = batch(100), batch(102, values=(batch(0), batch(2), b"more"))
    reader, offsets = walk(one + two[:-5])
    assert offsets == [101]
    assert reader.damage == []
    assert reader.torn_tail == len(one)


def test_offsets_may_go_back_where_nothing_goes_forward() -> None:
    reader, offsets = walk(batch(1000) + bytes(50) + batch(0) + batch(2))
    assert offsets == [1001, 1, 3]
    assert [(d.position, d.size) for d in reader.damage] == [(len(batch(0)), 50)]


def test_a_gap_in_the_offsets_is_no_reason_to_pass_a_batch_over() -> None:
    _, offsets = walk(batch(0) + bytes(50) + batch(10**12) + batch(10**12 + 2))
    assert offsets == [1, 10**12 + 1, 10**12 + 3]


def test_without_checksums_only_impossible_headers_are_damage() -> None:
    data = bytearray(batch(0) + batch(2) + batch(4))
    size = len(batch(0))
    data[size - 1] ^= 1
    data[size + LENGTH_AT : size + LENGTH_AT + 4] = bytes(4)
    reader = read_batches(data, verify=False, resync=True)
    assert [found.last_offset for found in reader] == [1, 5]
    assert [(d.position, d.size) for d in reader.damage] == [(size, size)]


def test_an_empty_batch_and_a_large_one_are_found() -> None:
    large = batch(20, values=(Random(2).randbytes(300_000),))
    empty = empty_batch(base_offset=10, last_offset=14)
    reader, offsets = walk(batch(0) + b"\1" * 500_000 + empty + b"\2" * 500_000 + large)
    assert offsets == [1, 14, 20]
    assert [d.size for d in reader.damage] == [500_000, 500_000]


def false_headers(size: int) -> bytes:
    """A buffer of headers, each plausible, with a length of half the buffer and a wrong checksum."""
    v2 = BATCH_HEADER.write(BatchHeader(5, size // 2, -1, 2, 12345, 0, 0, TIME_MS, TIME_MS, -1, -1, -1, 1))
    v0 = MESSAGE_V0.write(MessageV0(7, size // 2, 12345, 0, 0)) + b"\xff" * 4 + (size // 2 - 14).to_bytes(4, "big")
    return (v2 + v0) * (size // (len(v2) + len(v0)))


def test_the_cost_of_false_headers_does_not_grow_with_their_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    summed = 0

    def count(data: bytes, value: int = 0) -> int:
        nonlocal summed
        summed += len(data)
        return checksum_of(data, value)

    checksum_of = checksum.crc32c
    monkeypatch.setattr(checksum, "crc32c", count)
    data = false_headers(1_000_000)
    headers = data.count(BATCH_HEADER.write(BatchHeader(5, 500_000, -1, 2, 12345, 0, 0, 0, 0, -1, -1, -1, 1))[:17])
    _, offsets = walk(data + batch(10))
    assert offsets == [11]
    assert headers > 10_000
    assert summed < len(data) + headers * 2 * checksum.RangeChecksum.BLOCK  # and not headers * 500,000


def test_a_message_of_magic_1_is_found_by_its_lengths() -> None:
    for key, value in ((None, None), (b"", b""), (b"k" * 300, None), (None, b"v" * 300)):
        builder = BatchBuilder(1, base_offset=9)
        builder.append(key, value, timestamp_ms=TIME_MS)
        reader, offsets = walk(b"\1\0" * 30 + builder.build())
        assert offsets == [9]
        assert reader.damage[0].size == 60

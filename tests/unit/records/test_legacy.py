from __future__ import annotations

from typing import Any

import pytest

from octavo.errors import (
    BadCompression,
    BadLength,
    BadRecord,
    ChecksumMismatch,
    FormatError,
    LimitExceeded,
    Unsupported,
)
from octavo.records.batch import Batch
from octavo.records.builder import BatchBuilder
from octavo.records.compression import compress
from octavo.records.layout import LENGTH_AT, MESSAGE_V1, Attributes, Codec, TimestampType
from octavo.records.legacy import write_message
from octavo.records.reader import read_batches
from octavo.records.record import Record
from tests.batches import TIME_MS

V0 = "0000000000000000000000101fecd70a0000000000016b0000000176"
V1 = "00000000000000000000001839268c3301000000018bcfe56800000000016b0000000176"

OLD_CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
APPEND_TIME = int(Attributes.LOG_APPEND_TIME)


def only(data: bytes, **options: Any) -> Batch:
    (found,) = read_batches(data, **options)
    return found


def wrapper(*inner: bytes, offset: int, magic: int = 1, codec: int = Codec.GZIP, attributes: int = 0) -> bytes:
    """A wrapper whose inner messages are as given."""
    body = compress(codec, b"".join(inner), magic=magic)
    return write_message(offset, magic, codec | attributes, TIME_MS + 500, None, body)


def message(offset: int, magic: int = 1, *, attributes: int = 0, value: bytes | None = b"v") -> bytes:
    return write_message(offset, magic, attributes, TIME_MS, b"k", value)


def test_a_message_of_magic_0_has_no_time() -> None:
    batch = only(bytes.fromhex(V0))
    assert list(batch) == [Record(0, -1, b"k", b"v")]
    assert (batch.magic, batch.size, batch.count, batch.crc) == (0, 28, 1, 0x1FECD70A)
    assert (batch.timestamp_type, batch.base_timestamp_ms, batch.max_timestamp_ms) == (TimestampType.NONE, -1, -1)


def test_a_message_of_magic_1_has_one() -> None:
    batch = only(bytes.fromhex(V1))
    assert list(batch) == [Record(0, TIME_MS, b"k", b"v")]
    assert (batch.timestamp_type, batch.max_timestamp_ms) == (TimestampType.CREATE_TIME, TIME_MS)


def test_an_old_message_has_nothing_of_what_magic_2_brought() -> None:
    batch = only(bytes.fromhex(V1))
    assert (batch.leader_epoch, batch.producer_id, batch.producer_epoch) == (-1, -1, -1)
    assert (batch.base_sequence, batch.last_sequence) == (-1, -1)
    assert (batch.is_transactional, batch.is_control, batch.delete_horizon_ms) == (False, False, None)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_null_and_empty_stay_apart(magic: int, key: bytes | None, value: bytes | None) -> None:
    (record,) = only(write_message(7, magic, 0, TIME_MS, key, value))
    assert (record.offset, record.key, record.value) == (7, key, value)


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_inner_offsets_are_absolute_in_magic_0(codec: Codec) -> None:
    batch = only(wrapper(message(5, 0), message(9, 0), offset=9, magic=0, codec=codec))
    assert [r.offset for r in batch] == [5, 9]
    assert (batch.base_offset, batch.last_offset, batch.count) == (5, 9, None)


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_inner_offsets_are_relative_in_magic_1(codec: Codec) -> None:
    batch = only(wrapper(message(0), message(3), offset=100, codec=codec))
    assert [r.offset for r in batch] == [97, 100]
    assert (batch.base_offset, batch.last_offset, batch.count) == (97, 100, None)


def test_a_wrapper_at_offset_0_counts_from_0() -> None:
    batch = only(wrapper(message(0), message(1), message(2), offset=0))
    assert [r.offset for r in batch] == [0, 1, 2]
    assert batch.last_offset == 0


def test_append_time_is_the_wrappers() -> None:
    batch = only(wrapper(message(0), message(1), offset=1, attributes=APPEND_TIME))
    assert [r.timestamp_ms for r in batch] == [TIME_MS + 500] * 2
    assert batch.timestamp_type == TimestampType.LOG_APPEND_TIME


def test_create_time_is_each_messages_own() -> None:
    batch = only(wrapper(message(0), message(1, attributes=APPEND_TIME), offset=1))
    assert [r.timestamp_ms for r in batch] == [TIME_MS] * 2
    assert batch.timestamp_type == TimestampType.CREATE_TIME


def test_inner_messages_of_another_magic_are_read() -> None:
    batch = only(wrapper(message(0, 0), message(1, 1), offset=1, attributes=APPEND_TIME))  # KAFKA-4298
    assert [(r.offset, r.timestamp_ms) for r in batch] == [(0, -1), (1, TIME_MS + 500)]


@pytest.mark.parametrize("cut", [1, 10, 13, 33])
def test_a_partial_last_message_in_a_wrapper_is_passed_over(cut: int) -> None:
    batch = only(wrapper(message(5, 0), message(6, 0)[:-1][:cut], offset=6, magic=0))
    assert [r.offset for r in batch] == [5]


@pytest.mark.parametrize(
    ("data", "kind", "rule"),
    [
        (wrapper(offset=5), BadRecord, "holds no message"),
        (wrapper(message(0)[:10], offset=5), BadRecord, "holds no message"),
        (wrapper(message(0, attributes=1), offset=5), BadRecord, "itself compressed"),
        (wrapper(message(6), offset=5), BadRecord, "below that of its last"),
        (write_message(5, 1, Codec.GZIP, TIME_MS, None, None), BadRecord, "no value"),
        (wrapper(message(0)[:LENGTH_AT] + bytes(20), offset=5), BadLength, "inner message's length"),
        (wrapper(message(0)[:16] + b"\2" + message(0)[17:], offset=5), BadRecord, "magic byte"),
        (write_message(5, 1, Codec.ZSTD, TIME_MS, None, b""), Unsupported, "zstd"),
        (write_message(5, 0, 7, TIME_MS, None, b""), Unsupported, "codec 7"),
        (write_message(5, 1, Codec.GZIP, TIME_MS, None, b"no gzip"), BadCompression, "gzip"),
    ],
)
def test_each_rule_of_a_wrapper_has_its_error(data: bytes, kind: type[FormatError], rule: str) -> None:
    good = bytes.fromhex(V0)
    _, batch = read_batches(good + data)
    assert batch.last_offset == 5
    for ask in (list, lambda wrapped: wrapped.base_offset):
        with pytest.raises(kind, match=rule) as caught:
            ask(batch)
        assert caught.value.position == len(good)


@pytest.mark.parametrize(
    ("at", "length", "rule"),
    [
        (MESSAGE_V1.size, 3, "key length"),
        (MESSAGE_V1.size, 2**31 - 1, "key length"),
        (MESSAGE_V1.size + 5, 2, "value length"),
        (MESSAGE_V1.size + 5, 2**31 - 1, "value length"),
    ],
)
def test_lengths_that_pass_the_end_are_refused(at: int, length: int, rule: str) -> None:
    data = bytearray(bytes.fromhex(V1))
    data[at : at + 4] = length.to_bytes(4, "big")
    (batch,) = read_batches(data, verify=False)
    with pytest.raises(BadLength, match=rule):
        list(batch)


def test_any_negative_length_is_null() -> None:
    data = bytearray(write_message(7, 1, 0, TIME_MS, None, b"v"))
    data[MESSAGE_V1.size : MESSAGE_V1.size + 4] = b"\x80\0\0\0"
    (batch,) = read_batches(data, verify=False)
    assert [(record.key, record.value) for record in batch] == [(None, b"v")]


def test_the_checksum_covers_everything_from_the_magic_byte_on() -> None:
    for stored in (V0, V1):
        for at in range(16, len(stored) // 2):
            data = bytearray(bytes.fromhex(stored))
            data[at] ^= 0x10
            with pytest.raises((ChecksumMismatch, Unsupported)):
                list(read_batches(data))


def test_a_message_of_magic_1_that_ends_before_its_lengths_is_refused() -> None:
    data = bytearray(bytes.fromhex(V1))[:30]
    data[LENGTH_AT : LENGTH_AT + 4] = (18).to_bytes(4, "big")
    (batch,) = read_batches(data, verify=False)
    with pytest.raises(BadLength):
        list(batch)


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_no_more_is_decompressed_than_the_caller_allows(codec: Codec) -> None:
    builder = BatchBuilder(1, codec=codec)
    builder.append(None, bytes(100_000), timestamp_ms=0)
    with pytest.raises(LimitExceeded):
        list(only(builder.build(), max_decompressed=50_000))


def test_asking_for_the_base_offset_twice_decompresses_once(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = only(wrapper(message(0), message(3), offset=100))
    assert batch.base_offset == 97
    monkeypatch.setattr("octavo.records.legacy.decompress", None)
    assert batch.base_offset == 97

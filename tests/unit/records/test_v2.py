from __future__ import annotations

from typing import Any

import pytest

from octavo.errors import BadLength, BadRecord, BadVarint, FormatError, LimitExceeded, Unsupported
from octavo.records.batch import Batch
from octavo.records.builder import BatchBuilder, empty_batch
from octavo.records.checksum import crc32c
from octavo.records.layout import BATCH_HEADER, Attributes, BatchHeader, Codec, TimestampType
from octavo.records.reader import read_batches
from octavo.records.record import Header, Record
from octavo.records.v2 import write_batch
from tests.batches import TIME_MS

ONE_RECORD = (  # offset 0, key "k", value "v", header "h" -> null
    "00000000000000000000003dffffffff02ecc46c110000000000000000018bcfe568000000018bcfe56800ffffffff"
    "ffffffffffffffffffff0000000116000000026b027602026801"
)
EMPTY = (  # offsets 10 to 14, all gone
    "000000000000000a000000310000000202b1bc9ec6000000000004ffffffffffffffff0000018bcfe5680000000000"
    "000003e800030000001400000000"
)
FROM_A_BROKER = (  # of Kafka 0.11
    "00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063cffffffff"
    "ffffffffffffffffffff0000000112000000010631323300"
)


def only(data: bytes, **options: Any) -> Batch:
    (found,) = read_batches(data, **options)
    return found


def header(**fields: int) -> BatchHeader:
    plain = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=0,
        base_timestamp_ms=TIME_MS,
        max_timestamp_ms=TIME_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )
    return plain._replace(**fields)


def test_one_record_with_a_header() -> None:
    batch = only(bytes.fromhex(ONE_RECORD))
    assert list(batch) == [Record(0, TIME_MS, b"k", b"v", (Header("h", None),))]
    assert (batch.size, batch.magic, batch.count, batch.crc) == (73, 2, 1, 0xECC46C11)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (0, 0, 1)
    assert (batch.codec, batch.timestamp_type) == (Codec.NONE, TimestampType.CREATE_TIME)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (TIME_MS, TIME_MS)
    assert (batch.leader_epoch, batch.producer_id, batch.producer_epoch) == (-1, -1, -1)
    assert (batch.base_sequence, batch.last_sequence) == (-1, -1)
    assert (batch.is_transactional, batch.is_control, batch.delete_horizon_ms) == (False, False, None)
    assert "magic 2, 73 bytes" in repr(batch)


def test_a_batch_that_compaction_emptied() -> None:
    batch = only(bytes.fromhex(EMPTY))
    assert list(batch) == []
    assert (batch.base_offset, batch.last_offset, batch.count) == (10, 14, 0)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (1000, 3, 20, 24)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (-1, TIME_MS)


def test_a_batch_that_a_broker_stored() -> None:
    batch = only(bytes.fromhex(FROM_A_BROKER))
    assert [(r.key, r.value) for r in batch] == [(None, b"123")]
    assert batch.leader_epoch == 1


def test_append_time_is_the_time_of_every_record() -> None:
    builder = BatchBuilder(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=TIME_MS + 99)
    for number in range(3):
        builder.append(None, b"", timestamp_ms=TIME_MS + number)
    batch = only(builder.build())
    assert [r.timestamp_ms for r in batch] == [TIME_MS + 99] * 3
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (TIME_MS, TIME_MS + 99)


def test_timestamps_stay_right_behind_a_delete_horizon() -> None:
    builder = BatchBuilder(delete_horizon_ms=TIME_MS + 86_400_000)
    builder.append(b"k", None, timestamp_ms=TIME_MS)
    batch = only(builder.build())
    assert [r.timestamp_ms for r in batch] == [TIME_MS]
    assert batch.delete_horizon_ms == TIME_MS + 86_400_000


def test_sequences_follow_the_offsets_and_wrap() -> None:
    builder = BatchBuilder(producer_id=1, producer_epoch=0, base_sequence=2**31 - 2, base_offset=50)
    for offset in (50, 51, 52, 55):
        builder.append(None, None, timestamp_ms=0, offset=offset)
    batch = only(builder.build())
    assert [r.sequence for r in batch] == [2**31 - 2, 2**31 - 1, 0, 3]
    assert batch.last_sequence == 3


def test_bits_that_nobody_uses_are_not_read() -> None:
    batch = only(write_batch(header(attributes=0x7F80), b"\x0c\0\0\0\1\1\0"))
    assert batch.attributes == 0x80
    assert [(r.key, r.value) for r in batch] == [(None, None)]


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_nobody_knows_is_told_when_records_are_asked_for(codec: int) -> None:
    batch = only(write_batch(header(attributes=codec), b"\x0c\0\0\0\1\1\0"))
    with pytest.raises(Unsupported):
        list(batch)
    with pytest.raises(Unsupported):
        _ = batch.codec


@pytest.mark.parametrize(
    ("records", "kind", "rule"),
    [
        ("0c000000010100", None, ""),
        ("0c000000010100" * 2, BadRecord, "bytes are left"),
        ("", BadLength, "count"),
        ("0a0000000101", BadLength, "count"),
        ("80808080800c000000010100", BadVarint, "goes on"),
        ("0b000000010100", BadLength, "record's length"),
        ("0e000000010100", BadLength, "record's length"),
        ("0a000000010100", BadLength, "record's length"),
        ("0e00000001010000", BadRecord, "before its length says"),
        ("0e0000000c6b0100", BadLength, "key's length"),
        ("0e000000010c7600", BadLength, "value's length"),
        ("0e00000001018001", BadLength, "count of headers"),
        ("0e00000001010100", BadLength, "count of headers"),
        ("0e00000001010400", BadLength, "count of headers"),
        ("0e00000001010201", BadLength, "header key's length"),
        ("0e00000001010204", BadLength, "header key's length"),
        ("100000000101020004", BadLength, "header value's length"),
        ("0e00000001010200", BadVarint, "ends inside"),
        ("12000000010102000000", BadRecord, "before its length says"),
        ("0e00ffffffffffff", BadVarint, "ends inside"),
        ("1800ffffffffffffffffffffff", BadVarint, "goes on"),
    ],
)
def test_each_rule_of_a_record_has_its_error(records: str, kind: type[FormatError] | None, rule: str) -> None:
    batch = only(write_batch(header(), bytes.fromhex(records)))
    if kind is None:
        assert len(list(batch)) == 1
        return
    with pytest.raises(kind, match=rule) as caught:
        list(batch)
    assert type(caught.value) is kind
    assert 0 <= caught.value.position <= batch.size


@pytest.mark.parametrize("count", [-1, -(2**31), 2, 2**31 - 1])
def test_a_count_that_cannot_be_is_refused_before_anything_is_read(count: int) -> None:
    batch = only(write_batch(header(record_count=count), b"\x0c\0\0\0\1\1\0"))
    with pytest.raises(BadLength, match="count of records"):
        next(iter(batch))


def test_any_negative_length_is_null() -> None:
    batch = only(write_batch(header(), bytes.fromhex("0c000000030500")))
    assert [(r.key, r.value) for r in batch] == [(None, None)]


def test_longer_varints_than_need_be_are_read() -> None:
    batch = only(write_batch(header(), bytes.fromhex("9000 00 8000 8000 01 01 00")))
    assert [(r.offset, r.timestamp_ms) for r in batch] == [(0, TIME_MS)]


def test_offsets_and_times_wrap_around_as_in_java() -> None:
    records = bytes.fromhex("0c000202010100")  # deltas of 1
    batch = only(write_batch(header(base_offset=2**63 - 1, base_timestamp_ms=2**63 - 1), records))
    assert [(r.offset, r.timestamp_ms) for r in batch] == [(-(2**63), -(2**63))]


def test_errors_count_their_position_from_the_start_of_the_buffer() -> None:
    good = bytes.fromhex(ONE_RECORD)
    bad = write_batch(header(record_count=2, last_offset_delta=1), bytes.fromhex("0c0000000101000e000000010100"))
    _, batch = read_batches(good + bad)
    with pytest.raises(BadLength) as caught:
        list(batch)
    assert caught.value.position == len(good) + BATCH_HEADER.size + 7


def test_inside_a_compressed_stream_the_position_is_that_of_the_batch() -> None:
    builder = BatchBuilder(codec=Codec.GZIP)
    builder.append(None, b"x", timestamp_ms=0)
    data = bytearray(builder.build())  # and now a count of 2
    count_at = BATCH_HEADER.at("record_count")
    data[count_at : count_at + 4] = (2).to_bytes(4, "big")
    crc_at = BATCH_HEADER.at("crc")
    data[crc_at : crc_at + 4] = crc32c(data[crc_at + 4 :]).to_bytes(4, "big")
    _, batch = read_batches(bytes.fromhex(ONE_RECORD) + data)
    with pytest.raises(BadLength) as caught:
        list(batch)
    assert caught.value.position == 73


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_no_more_is_decompressed_than_the_caller_allows(codec: Codec) -> None:
    builder = BatchBuilder(codec=codec)
    builder.append(None, bytes(100_000), timestamp_ms=0)
    with pytest.raises(LimitExceeded):
        list(only(builder.build(), max_decompressed=50_000))
    assert len(list(only(builder.build(), max_decompressed=200_000))) == 1


def test_records_are_their_own_bytes() -> None:
    data = bytearray(bytes.fromhex(ONE_RECORD))
    (record,) = only(bytes(data))
    assert type(record) is Record
    assert type(record.key) is type(record.value) is bytes


def test_a_control_batch_is_told_from_others() -> None:
    batch = only(
        empty_batch(base_offset=0, last_offset=0, producer_id=1, producer_epoch=0, transactional=True, control=True)
    )
    assert batch.is_control
    assert batch.is_transactional
    assert batch.attributes == Attributes.CONTROL | Attributes.TRANSACTIONAL

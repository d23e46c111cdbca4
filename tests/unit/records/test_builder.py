from __future__ import annotations

import mmap
from array import array
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from octavo.errors import InvalidInput
from octavo.records.builder import BatchBuilder, empty_batch
from octavo.records.layout import Codec, TimestampType
from octavo.records.reader import read_batches
from octavo.records.record import Header, Record
from octavo.records.v2 import HeaderLike
from tests.batches import TIME_MS, build, generate

INT64 = 2**63 - 1


def filled(builder: BatchBuilder, count: int = 3) -> BatchBuilder:
    for number in range(count):
        builder.append(b"key %d" % number, b"value", timestamp_ms=TIME_MS + number)
    return builder


@pytest.mark.parametrize(
    ("magic", "headers", "stored"),
    [
        (0, (), "0000000000000000000000101fecd70a0000000000016b0000000176"),
        (1, (), "00000000000000000000001839268c3301000000018bcfe56800000000016b0000000176"),
        (
            2,
            (("h", None),),
            "00000000000000000000003dffffffff02ecc46c110000000000000000018bcfe568000000018bcfe56800ffffffff"
            "ffffffffffffffffffff0000000116000000026b027602026801",
        ),
    ],
)
def test_one_record_gives_the_known_bytes(magic: int, headers: tuple[HeaderLike, ...], stored: str) -> None:
    builder = BatchBuilder(magic)
    assert builder.append(b"k", b"v", timestamp_ms=TIME_MS, headers=headers) == 0
    assert builder.build().hex() == stored
    assert builder.size == len(stored) // 2


def test_the_empty_batch_of_compaction_gives_the_known_bytes() -> None:
    data = empty_batch(
        base_offset=10,
        last_offset=14,
        max_timestamp_ms=TIME_MS,
        producer_id=1000,
        producer_epoch=3,
        base_sequence=20,
        leader_epoch=2,
    )
    assert data.hex() == (
        "000000000000000a000000310000000202b1bc9ec6000000000004ffffffffffffffff0000018bcfe5680000000000"
        "000003e800030000001400000000"
    )


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_without_records_there_are_no_bytes(magic: int, codec: Codec) -> None:
    builder = BatchBuilder(magic, codec=codec)
    assert builder.build() == b""
    assert (builder.size, builder.count, builder.next_offset) == (0, 0, 0)


def test_the_size_is_known_beforehand() -> None:
    for spec, _ in generate(7, 220):
        builder = BatchBuilder(spec.magic, codec=Codec[spec.codec.upper()], base_offset=spec.base_offset)
        for record in spec.records:
            fields: dict[str, Any] = {"timestamp_ms": record.timestamp_ms, "headers": record.headers}
            expected = builder.size_with(record.key, record.value, **fields, offset=record.offset)
            builder.append(record.key, record.value, **fields, offset=record.offset)
            assert builder.size == expected
        size = len(builder.build())
        assert size == builder.size if spec.codec == "none" else size <= builder.size


@pytest.mark.parametrize("codec", list(Codec))
def test_the_size_is_never_below_the_truth_for_what_does_not_compress(codec: Codec) -> None:
    for size in (0, 1, 100, 5000, 70_000, 1_000_000):
        builder = BatchBuilder(codec=codec)
        builder.append(None, Random(size).randbytes(size), timestamp_ms=0)
        assert len(builder.build()) <= builder.size


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_records_fit_until_the_size_is_reached(magic: int) -> None:
    whole = filled(BatchBuilder(magic), 3)
    builder = filled(BatchBuilder(magic, max_size=whole.size), 3)
    assert builder.count == 3
    assert builder.build() == whole.build()
    assert builder.append(b"", b"", timestamp_ms=TIME_MS) is None
    assert not builder.has_room_for(None, None, timestamp_ms=TIME_MS)
    builder = filled(BatchBuilder(magic, max_size=whole.size - 1), 3)
    assert builder.count == 2
    assert builder.has_room_for(None, None, timestamp_ms=TIME_MS)


def test_records_fit_until_the_count_is_reached() -> None:
    builder = filled(BatchBuilder(max_count=2), 3)
    assert builder.count == 2


@pytest.mark.parametrize("options", [{"max_size": 0}, {"max_size": 10}, {"max_count": 0}])
def test_the_first_record_always_fits(options: dict[str, Any]) -> None:
    builder = filled(BatchBuilder(**options), 2)
    assert builder.count == 1
    assert [r.key for batch in read_batches(builder.build()) for r in batch] == [b"key 0"]


def test_a_full_batch_stays_as_it_is() -> None:
    builder = filled(BatchBuilder(max_count=2), 2)
    before = builder.build()
    assert builder.append(None, None, timestamp_ms=TIME_MS + 999) is None
    assert builder.build() == before


def test_building_does_not_end_the_batch() -> None:
    builder = filled(BatchBuilder(), 1)
    builder.build()
    builder.append(b"key 1", b"value", timestamp_ms=TIME_MS + 1)
    assert builder.build() == filled(BatchBuilder(), 2).build()


def test_offsets_count_on_from_the_last() -> None:
    builder = BatchBuilder(base_offset=10)
    assert builder.append(None, None, timestamp_ms=0) == 10
    assert builder.append(None, None, timestamp_ms=0, offset=15) == 15
    assert builder.append(None, None, timestamp_ms=0) == 16
    assert builder.next_offset == 17


def test_the_last_offset_may_be_kept_from_before_compaction() -> None:
    builder = filled(BatchBuilder(producer_id=1, producer_epoch=0, base_sequence=5), 2)
    (batch,) = read_batches(builder.build(last_offset=9))
    assert (batch.last_offset, batch.last_sequence, batch.count) == (9, 14, 2)
    for last_offset in (0, 2**31):
        with pytest.raises(InvalidInput):
            builder.build(last_offset=last_offset)
    with pytest.raises(InvalidInput):
        filled(BatchBuilder(1)).build(last_offset=9)


def test_keys_and_values_may_be_any_bytes_like() -> None:
    builder = BatchBuilder()
    builder.append(bytearray(b"k"), memoryview(b"v"), timestamp_ms=0, headers=[("h", memoryview(b"x"))])
    plain = BatchBuilder()
    plain.append(b"k", b"v", timestamp_ms=0, headers=[("h", b"x")])
    assert builder.build() == plain.build()


@pytest.mark.parametrize(
    "of",
    [
        lambda data: memoryview(data).cast("I"),
        lambda data: memoryview(data).cast("B", (2, 2, len(data) // 4)),
        lambda data: memoryview(bytes(byte for pair in zip(data, data, strict=True) for byte in pair))[::2],
        lambda data: np.frombuffer(data, ">i4"),
        lambda data: array("h", np.frombuffer(data, np.int16).tolist()),
    ],
    ids=["words", "many-dimensions", "every-other", "big-endian", "array"],
)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_content_is_measured_in_bytes_whatever_its_items_are(magic: int, of: Callable[[bytes], Any]) -> None:
    data = b"octavo notebooks"
    headers = [("h", data)] if magic == 2 else []
    plain, other = BatchBuilder(magic), BatchBuilder(magic)
    size = plain.size_with(data, data, timestamp_ms=0, headers=headers)
    assert other.size_with(of(data), of(data), timestamp_ms=0, headers=[(k, of(v)) for k, v in headers]) == size
    for _ in range(2):
        plain.append(data, data, timestamp_ms=0, headers=headers)
        other.append(of(data), of(data), timestamp_ms=0, headers=[(key, of(value)) for key, value in headers])
    assert other.build() == plain.build()
    assert [len(record.value or b"") for batch in read_batches(other.build()) for record in batch] == [16, 16]


def test_content_without_items_is_empty_and_not_null() -> None:
    builder = BatchBuilder()
    key: Any = np.empty((0, 3))  # buffers of other kinds than the types name, which Python lets through
    header: Any = np.empty((3, 0))
    value: Any = array("i")
    builder.append(key, value, timestamp_ms=0, headers=[("h", header)])
    (batch,) = read_batches(builder.build())
    assert [(record.key, record.value, record.headers) for record in batch] == [(b"", b"", (Header("h", b""),))]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("content", ["text", 5, 1.5, ["a"], object()])
def test_content_that_is_not_bytes_is_refused_in_a_sentence(magic: int, content: Any) -> None:
    builder = BatchBuilder(magic)
    kind = type(content).__name__
    for ask in (builder.append, builder.has_room_for, builder.size_with):
        with pytest.raises(InvalidInput, match=f"a record's key must be bytes or None, not {kind}"):
            ask(content, b"v", timestamp_ms=0)
        with pytest.raises(InvalidInput, match=f"a record's value must be bytes or None, not {kind}"):
            ask(b"k", content, timestamp_ms=0)
        if magic == 2:
            with pytest.raises(InvalidInput, match=f"a header's value must be bytes or None, not {kind}"):
                ask(b"k", b"v", timestamp_ms=0, headers=[("h", content)])
    with pytest.raises(InvalidInput, match="key must be bytes"):
        builder.append_record(Record(key=content))
    assert builder.count == 0


@pytest.mark.parametrize("key", [None, b"", b"\0\0", b"\xff\xff\0\0", b"\0\0\0\x63", "abcd"])
def test_whoever_asks_beforehand_is_told_about_control_keys_too(key: Any) -> None:
    builder = BatchBuilder(control=True)
    for ask in (builder.append, builder.has_room_for, builder.size_with):
        with pytest.raises(InvalidInput):
            ask(key, b"", timestamp_ms=0)
    assert builder.has_room_for(memoryview(b"\0\0\0\0").cast("I"), b"", timestamp_ms=0)


@pytest.mark.parametrize("magic", [1, 2])  # of magic 0 the times are gone
def test_records_that_were_read_can_be_written_again(magic: int) -> None:
    for spec, _ in generate(11, 220):
        if spec.magic != magic or spec.codec != "none" or spec.timestamp_type == "LogAppendTime":
            continue
        data = build(spec)
        again = b""
        for batch in read_batches(data):
            builder = BatchBuilder(
                batch.magic,
                base_offset=batch.base_offset,
                leader_epoch=batch.leader_epoch,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
                transactional=batch.is_transactional,
                control=batch.is_control,
                delete_horizon_ms=batch.delete_horizon_ms,
            )
            for record in batch:
                assert builder.append_record(record) == record.offset
            again += builder.build(last_offset=batch.last_offset if magic == 2 else None)
        assert again == data


def test_a_record_without_an_offset_gets_the_next() -> None:
    builder = BatchBuilder(base_offset=5)
    assert builder.append_record(Record(key=b"k", timestamp_ms=TIME_MS, headers=(Header("h", None),))) == 5


def test_a_control_record_of_an_unknown_type_can_be_rewritten_but_not_made() -> None:
    builder = BatchBuilder(control=True)
    with pytest.raises(InvalidInput, match="type 99"):
        builder.append(b"\0\0\0\x63", b"", timestamp_ms=0)
    assert builder.append_record(Record(key=b"\0\0\0\x63", timestamp_ms=0)) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"magic": 3},
        {"magic": -1},
        {"magic": 1, "timestamp_type": TimestampType.NONE},
        {"magic": 2, "timestamp_type": TimestampType.NONE},
        {"magic": 1, "codec": Codec.ZSTD},
        {"magic": 0, "leader_epoch": 1},
        {"magic": 1, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0},
        {"magic": 1, "control": True},
        {"magic": 1, "delete_horizon_ms": 0},
        {"delete_horizon_ms": -1},
        {"transactional": True},
        {"producer_id": 1, "base_sequence": 0},
        {"producer_id": 1, "producer_epoch": 0},
        {"producer_id": -2},
        {"producer_id": INT64 + 1, "producer_epoch": 0, "base_sequence": 0},
        {"producer_id": 1, "producer_epoch": 2**15, "base_sequence": 0},
        {"producer_id": 1, "producer_epoch": 0, "base_sequence": 2**31},
        {"leader_epoch": 2**31},
        {"leader_epoch": -2},
        {"base_offset": -1},
        {"base_offset": INT64 + 1},
        {"log_append_time_ms": -2},
        {"log_append_time_ms": INT64 + 1},
        {"level": 5},
        {"codec": Codec.GZIP, "level": 10},
        {"codec": Codec.SNAPPY, "level": 1},
    ],
)
def test_what_the_format_cannot_express_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        BatchBuilder(**options)


@pytest.mark.parametrize(
    ("magic", "fields"),
    [
        (2, {"timestamp_ms": -2}),
        (2, {"timestamp_ms": INT64 + 1}),
        (2, {"offset": 10}),
        (2, {"offset": 9}),
        (2, {"offset": 10 + 2**31}),
        (1, {"offset": 10 + 2**31}),
        (1, {"headers": [("h", b"")]}),
        (0, {"headers": [("h", b"")]}),
        (2, {"headers": [(None, b"")]}),
        (2, {"headers": [(b"h", b"")]}),
        (2, {"headers": [("\ud800", b"")]}),
    ],
)
def test_a_record_that_cannot_be_is_refused_and_leaves_the_batch_as_it_was(magic: int, fields: dict[str, Any]) -> None:
    builder = BatchBuilder(magic, base_offset=10)
    builder.append(b"k", b"v", timestamp_ms=TIME_MS)
    before = builder.build()
    for ask in (builder.append, builder.has_room_for, builder.size_with):
        with pytest.raises(InvalidInput):
            ask(b"k", b"v", **{"timestamp_ms": TIME_MS, **fields})
    assert builder.build() == before
    assert builder.count == 1


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_sizes_of_2_gib_and_more_are_refused_before_memory_is_taken(magic: int) -> None:
    with mmap.mmap(-1, 2**31) as mapped, memoryview(mapped) as huge:  # pages that nobody touches
        builder = BatchBuilder(magic)
        with pytest.raises(InvalidInput, match="does not fit"):
            builder.append(None, huge[: 2**31 - 60], timestamp_ms=0)
        builder.append(None, bytes(200), timestamp_ms=0)
        assert builder.append(None, huge[: 2**31 - 150], timestamp_ms=0) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 5, "last_offset": 4},
        {"base_offset": 0, "last_offset": 2**31},
        {"base_offset": -1, "last_offset": 0},
        {"transactional": True},
        {"producer_id": 5},
        {"timestamp_type": TimestampType.NONE},
    ],
)
def test_an_empty_batch_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        empty_batch(**{"base_offset": 0, "last_offset": 0, **fields})

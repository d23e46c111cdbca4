"""`from_arrow`: how rows become batches, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.records import (
    BatchBuilder,
    Codec,
    Header,
    Record,
    TimestampType,
    end_transaction_marker,
    from_arrow,
    read_batches,
    to_arrow,
)
from octavo.records.arrow import output_memory
from octavo.records.arrow.schema import ALL_COLUMNS
from octavo.records.layout import Buffer
from tests.batches import build, generate
from tests.columns import table_of

pytestmark = pytest.mark.usefixtures("each_kind_of_kernel")


def table(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def records(data: Buffer) -> list[Record]:
    return [record for batch in read_batches(data) for record in batch]


keys = pa.array([b"a", None, b"", b"d"], pa.binary())


def test_only_a_value_is_enough() -> None:
    assert records(from_arrow(table(value=keys), base_offset=7)) == [
        Record(7, -1, None, b"a"),
        Record(8, -1, None, None),
        Record(9, -1, None, b""),
        Record(10, -1, None, b"d"),
    ]


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string(), pa.binary_view()])
def test_any_kind_of_bytes_or_text_will_do(kind: pa.DataType) -> None:
    data = from_arrow(table(key=keys.cast(pa.string()).cast(kind)))
    assert [record.key for record in records(data)] == [b"a", None, b"", b"d"]


def test_a_slice_is_written_as_the_rows_it_shows() -> None:
    whole = next(to_arrow(b"".join(build(spec) for spec, _ in generate(3, 200) if spec.magic == 2)))
    part = whole.slice(17, 40)
    copied = pa.RecordBatch.from_pylist(part.to_pylist(), schema=part.schema)
    assert from_arrow(part, codec=Codec.NONE) == from_arrow(copied, codec=Codec.NONE)


def test_what_was_read_with_all_columns_is_written_to_the_same_bytes() -> None:
    specs = [spec for spec, _ in generate(5, 400) if spec.magic == 2 and spec.codec == "none"]
    kept = [spec for spec in specs if spec.last_offset is None and spec.delete_horizon_ms == -1]
    offset = 0
    data = b""
    for spec in kept:
        one = bytearray(build(spec))
        one[:8] = offset.to_bytes(8, "big")
        offset += len(spec.records)
        if spec.timestamp_type != "LogAppendTime":  # their records read as the append time, whatever they were
            data += one
    written = b"".join(from_arrow(chunk) for chunk in to_arrow(data, columns=ALL_COLUMNS, whole_batches=True))
    assert written == data


def test_batches_end_at_their_largest_size_and_count() -> None:
    rows = table(value=pa.array([b"x" * 100] * 1000))
    assert {batch.count for batch in read_batches(from_arrow(rows, max_count=100))} == {100}
    batches = list(read_batches(from_arrow(rows, max_size=1000)))
    assert max(batch.size for batch in batches) <= 1000
    assert sum(batch.count or 0 for batch in batches) == 1000
    assert min(batch.size for batch in batches[:-1]) > 1000 - 110


def test_one_record_larger_than_a_batch_gets_a_batch_of_its_own() -> None:
    data = from_arrow(table(value=pa.array([b"a", b"b" * 1000, b"c"])), max_size=200)
    assert [batch.count for batch in read_batches(data)] == [1, 1, 1]


def test_a_new_batch_begins_where_something_that_a_batch_says_once_changes() -> None:
    rows = table(
        value=pa.array([b"x"] * 6),
        producerId=pa.array([1, 1, 2, 2, 2, 2]),
        producerEpoch=pa.array([0] * 6, pa.int16()),
        sequence=pa.array([0, 1, 5, 6, 9, 10], pa.int32()),
    )
    batches = list(read_batches(from_arrow(rows)))
    assert [(b.producer_id, b.base_sequence, b.count) for b in batches] == [(1, 0, 2), (2, 5, 2), (2, 9, 2)]


def test_sequences_wrap_around_within_a_batch() -> None:
    last = 2**31 - 1
    rows = table(value=pa.array([b"x"] * 3), sequence=pa.array([last - 1, last, 0], pa.int32()))
    (batch,) = read_batches(from_arrow(rows, producer_id=1, producer_epoch=0))
    assert [record.sequence for record in batch] == [last - 1, last, 0]


def test_a_group_cut_by_size_goes_on_with_the_right_sequence() -> None:
    rows = table(value=pa.array([b"x"] * 5))
    data = from_arrow(rows, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2, max_count=2)
    assert [batch.base_sequence for batch in read_batches(data)] == [2**31 - 2, 0, 2]


def test_offsets_further_apart_than_a_delta_reaches_begin_a_new_batch() -> None:
    rows = table(offset=pa.array([0, 2**31 - 1, 2**31, 2**40]), value=pa.array([b"x"] * 4))
    batches = list(read_batches(from_arrow(rows)))
    assert [(batch.base_offset, batch.last_offset) for batch in batches] == [
        (0, 2**31 - 1),
        (2**31, 2**31),
        (2**40, 2**40),
    ]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_any_unit_are_rounded_down_to_milliseconds(unit: str) -> None:
    times = pa.array([datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), None], pa.timestamp(unit, tz="UTC"))
    assert [record.timestamp_ms for record in records(from_arrow(table(timestamp=times)))] == [1_700_000_000_000, -1]
    if unit in ("us", "ns"):
        odd = pa.array([1999, 0], pa.int64()).cast(pa.timestamp("us")).cast(pa.timestamp(unit))
        assert [record.timestamp_ms for record in records(from_arrow(table(timestamp=odd)))] == [1, 0]


def test_append_times_become_that_of_the_batch() -> None:
    data = from_arrow(
        table(timestampMs=pa.array([1, 2]), value=keys[:2]),
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time_ms=99,
    )
    assert [record.timestamp_ms for record in records(data)] == [99, 99]


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ({"offset": pa.array([1, 1])}, {}, "offsets must grow"),
        ({"offset": pa.array([-5, 1])}, {}, "offset -5 is negative"),
        ({"offset": pa.array([1, None])}, {}, "'offset' holds nulls"),
        ({"offset": pa.array([1.5, 2.5])}, {}, "not a whole number"),
        ({"timestampMs": pa.array([-2, 1])}, {}, "timestamp -2 ms is negative"),
        ({"timestamp": pa.array([1, 2])}, {}, "not a timestamp"),
        ({"value": pa.array([[1], [2]])}, {}, "cannot be bytes"),
        ({"headers": pa.array([1, 2])}, {}, "not a list of"),
        ({"headers": pa.array([[{"key": None, "value": b""}], []])}, {}, "key that is null"),
        ({"compression": pa.array(["lzma", "lzma"])}, {}, "no codec 'lzma'"),
        ({"value": keys[:2]}, {"magic": 3}, "no magic 3"),
        ({"value": keys[:2]}, {"magic": 1, "codec": Codec.ZSTD}, "no place for zstd"),
        ({"value": keys[:2]}, {"magic": 1, "producer_id": 1}, "no place for a producer"),
        ({"headers": pa.array([[{"key": "a", "value": b""}], []])}, {"magic": 0}, "no place for headers"),
        ({"value": keys[:2]}, {"transactional": True}, "needs a producer id"),
        ({"value": keys[:2]}, {"producer_id": 1}, "needs a producer epoch"),
        ({"value": keys[:2]}, {"producer_id": 1, "producer_epoch": 1}, "need a sequence"),
        ({"value": keys[:2]}, {"max_count": 0}, "max_count is 0, it must lie between 1 and"),
        ({"value": keys[:2]}, {"max_count": 2**70}, "max_count"),
        ({"value": keys[:2]}, {"max_size": 2**31}, "max_size"),
        ({"value": keys[:2]}, {"producer_epoch": 70_000}, "producer_epoch is 70000"),
        ({"value": keys[:2]}, {"leader_epoch": 2**40}, "leader_epoch"),
        ({"value": keys[:2]}, {"base_sequence": 2**31}, "base_sequence"),
        ({"value": keys[:2]}, {"producer_id": -7}, "producer_id is -7"),
        ({"value": keys[:2]}, {"delete_horizon_ms": -5}, "delete_horizon_ms is -5"),
        ({"value": keys[:2]}, {"log_append_time_ms": -9}, "log_append_time_ms is -9"),
        ({"value": keys[:2]}, {"base_offset": -1}, "base_offset is -1"),
        ({"value": keys[:2]}, {"base_offset": 2**63 - 1}, "base_offset"),
        ({"value": keys[:2]}, {"timestamp_type": TimestampType.NONE}, "needs a timestamp type"),
        ({"value": keys[:2]}, {"codec": 9}, "codec cannot be 9"),
        ({"value": keys[:2]}, {"level": 3}, "no levels"),
        ({"value": keys[:2]}, {"codec": Codec.GZIP, "level": 30}, "30 was asked for"),
        ({"value": keys[:2]}, {"magic": 1, "leader_epoch": 3}, "no place for a leader epoch"),
        (
            {"value": keys[:2]},
            {"magic": 0, "timestamp_type": TimestampType.LOG_APPEND_TIME},
            "no place for append times",
        ),
        ({"sequence": pa.array([0, 2**33])}, {}, "column 'sequence' is 8589934592"),
        ({"timestampType": pa.array([7, 7])}, {}, "column 'timestampType' is 7"),
        ({"offset": pa.array([0, 2**63], pa.uint64())}, {}, "too large"),
        ({"offset": pa.array([2**63 - 1, -(2**63)])}, {}, "is negative"),
        ({"timestamp": pa.array([2**60, 0], pa.timestamp("s"))}, {}, "too far away"),
        ({"compression": pa.array([1, 2])}, {}, "not the names of codecs"),
        ({"compression": pa.array(["gzip", None])}, {}, "holds nulls"),
    ],
)
def test_what_the_format_cannot_express_is_refused(
    columns: dict[str, pa.Array], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        from_arrow(table(**columns), **options)


def test_no_rows_give_no_bytes() -> None:
    assert bytes(from_arrow(table(value=keys).slice(0, 0))) == b""
    with pytest.raises(InvalidInput, match="no magic 9"):
        from_arrow(table(value=keys).slice(0, 0), magic=9)


def test_a_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match="RecordBatch is wanted, not Table"):
        from_arrow(pa.table({"value": keys}))


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = pa.RecordBatch.from_arrays([keys, keys], names=["key", "key"])
    with pytest.raises(InvalidInput, match="several columns 'key'"):
        from_arrow(twice)


@pytest.mark.parametrize("limits", [[0, 1000, 2], [0, 3, 1]])
def test_arrow_arrays_that_point_outside_their_data_are_refused(limits: list[int]) -> None:
    ends = pa.py_buffer(np.array(limits, np.int32))
    lying = pa.Array.from_buffers(pa.binary(), 2, [None, ends, pa.py_buffer(b"abcde")])
    with pytest.raises(InvalidInput, match="no valid Arrow array"):
        from_arrow(table(value=lying))
    structs = pa.array([{"key": "a", "value": b"b"}] * 3)
    lists = pa.Array.from_buffers(pa.list_(structs.type), 2, [None, ends], children=[structs])
    with pytest.raises(InvalidInput, match="no valid Arrow array"):
        from_arrow(table(headers=lists))


def test_arrow_buffers_at_odd_addresses_are_read() -> None:
    odd = pa.py_buffer(b"x" + np.array([0, 1, 3], np.int32).tobytes()).slice(1)
    values = pa.Array.from_buffers(pa.binary(), 2, [None, odd, pa.py_buffer(b"abc")])
    numbers = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(b"x" + np.array([5, 6]).tobytes()).slice(1)])
    assert [(r.offset, r.value) for r in records(from_arrow(table(offset=numbers, value=values)))] == [
        (5, b"a"),
        (6, b"bc"),
    ]


def test_headers_outside_a_slice_do_not_count() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": None, "value": b""}], [None], [{"key": "a", "value": None}], None], kind)
    part = table(headers=headers).slice(2)
    assert [record.headers for record in records(from_arrow(part))] == [(Header("a", None),), ()]


def test_offsets_must_grow_within_a_batch_only() -> None:
    rows = table(offset=pa.array([5, 6, 5, 6]), position=pa.array([0, 0, 99, 99]))
    assert [record.offset for record in records(from_arrow(rows))] == [5, 6, 5, 6]
    with pytest.raises(InvalidInput, match="grow from row to row"):
        from_arrow(rows.select(["offset"]))
    with pytest.raises(InvalidInput, match="grow from row to row"):
        from_arrow(rows.select(["offset"]), max_count=2)


def test_each_marker_of_a_transaction_is_a_batch_of_its_own() -> None:
    marker = end_transaction_marker(True, timestamp_ms=7, producer_id=1, producer_epoch=0, coordinator_epoch=3)
    both = marker + marker[:7] + bytes([1]) + marker[8:]
    (chunk,) = to_arrow(both, columns=[name for name in ALL_COLUMNS if name != "position"])
    assert from_arrow(chunk) == both


@pytest.mark.parametrize("max_size", [1, 61, 62, 92, 100])
def test_there_is_room_for_batches_of_any_size(max_size: int) -> None:
    """Far offsets, deltas of ten bytes and tiny limits, which make the most batches of the fewest bytes."""
    offsets = [0, 2**31, 2**32 + 5, 2**40, 2**40 + 1, 2**62, 2**62 + 1]
    rows = table(
        offset=pa.array(offsets), timestampMs=pa.array([2**62] * 7), value=pa.array([b"", b"x" * 40] * 3 + [b""])
    )
    data = from_arrow(rows, max_size=max_size, delete_horizon_ms=0)
    assert [record.offset for record in records(data)] == offsets


# Lengths and deltas at which a varint takes one byte more, or the kernel copies in another way.
_LENGTHS = [-1, 0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 111, 127, 128, 129, 255, 2047, 2048, 4096, 8200]
_DELTAS = [0, 1, -1, 63, -64, 64, -65, 8191, -8192, 8192, -8193, 2**20, 2**27, 2**40]


def _built(rows: list[Record]) -> bytes:
    builder = BatchBuilder(base_offset=rows[0].offset, max_size=1 << 30)
    for record in rows:
        builder.append_record(record)
    return builder.build()


@pytest.mark.parametrize("headers", [(), (Header("trace", b"\1"), Header("", None))])
def test_every_length_and_delta_is_written_as_the_builder_does(headers: tuple[Header, ...]) -> None:
    """Each value is also the last one, after which its column ends."""
    text = bytes(range(256)) * 33
    offset = 5
    rows: list[Record] = []
    for turn, length in enumerate(_LENGTHS):
        for delta in _DELTAS:
            key = None if length < 0 else text[turn : turn + length]
            other = _LENGTHS[-1 - turn]
            value = None if other < 0 else text[-other:] if other else b""
            kept = headers if turn % 2 else ()
            rows.append(Record(offset, 2**41 + delta if rows else 2**41, key, value, kept))
            offset += 1 + abs(delta) % 1000
    assert from_arrow(table_of(rows)) == _built(rows)
    for record in rows:
        assert from_arrow(table_of([record])) == _built([record])


def test_nulls_are_found_wherever_a_slice_begins() -> None:
    values = [None if number % 3 == 0 else b"%d" % number for number in range(40)]
    whole = table(key=pa.array(values, pa.binary()), value=pa.array(values[::-1], pa.binary()))
    for start in range(20):
        part = records(from_arrow(whole.slice(start, 17)))
        assert [record.key for record in part] == values[start : start + 17]
        assert [record.value for record in part] == values[::-1][start : start + 17]


def test_columns_of_nulls_are_like_none() -> None:
    nulls = table(
        key=pa.nulls(3), value=pa.nulls(3, pa.binary()), headers=pa.nulls(3), timestamp=pa.nulls(3, pa.timestamp("us"))
    )
    assert from_arrow(nulls) == from_arrow(table(value=pa.nulls(3)))


def test_the_result_is_a_buffer_like_bytes() -> None:
    data = from_arrow(table(value=keys))
    assert bytes(data[:8]) == bytes(8)
    assert data.readonly
    assert data.format == "B"
    assert data.contiguous
    assert b"".join([data, data]) == bytes(data) * 2
    kept = bytes(data)
    again = [from_arrow(table(value=keys), base_offset=9) for _ in range(3)]  # takes memory of its own
    assert data == kept != again[0]


def test_memory_is_used_again_only_when_nothing_refers_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def address(data: memoryview) -> int:
        return np.frombuffer(data, np.uint8).ctypes.data

    monkeypatch.setattr(output_memory, "_spare", [])
    rows, others = (table(value=pa.array([letter * 1000] * 2000)) for letter in (b"x", b"y"))
    first = from_arrow(rows)
    part, expected, used = first[1000:2000], bytes(first), address(first)
    del first
    kept = [from_arrow(others) for _ in range(3)]
    assert len({used, *map(address, kept)}) == 4
    assert part == expected[1000:2000]
    del part
    again = from_arrow(rows)
    assert address(again) == used
    assert again == expected


def test_spare_memory_is_bounded() -> None:
    for size in (1 << 20, 3 << 20, 1 << 21, 40 << 20):
        memory = output_memory.take_memory(size)
        assert len(memory) >= size
        other = output_memory.take_memory(size)
        assert not np.shares_memory(memory, other)
        del memory, other
        assert sum(spare.size for spare in output_memory._spare) <= 32 << 20
    assert len(output_memory.take_memory(100)) == 100

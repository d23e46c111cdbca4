"""`to_arrow`: what is decoded, what is passed over, and where it stops."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from octavo.errors import BadLength, BadRecord, ChecksumMismatch, InvalidInput, LimitExceeded, Unsupported
from octavo.records import BatchBuilder, Codec, Header, TimestampType, empty_batch, read_batches, to_arrow
from octavo.records.arrow.schema import ALL_COLUMNS, COLUMNS
from octavo.records.layout import BATCH_HEADER
from tests.columns import records_of, rows_of

pytestmark = pytest.mark.usefixtures("each_kind_of_kernel")

TIME_MS = 1_700_000_000_000


def batch(first: int, count: int = 10, *, codec: Codec = Codec.NONE, magic: int = 2, size: int = 20) -> bytes:
    """Records `first` to `first + count - 1`; each is a millisecond after the one before."""
    builder = BatchBuilder(magic, base_offset=first, codec=codec)
    for offset in range(first, first + count):
        builder.append(b"key %d" % offset, bytes([offset & 0xFF]) * size, timestamp_ms=TIME_MS + offset)
    return builder.build()


def offsets_of(data: bytes, **options: object) -> list[int]:
    return [row["offset"] for row in rows_of(data, **options)]


ten_batches = b"".join(batch(first) for first in range(0, 100, 10))


def test_default_columns_are_those_of_sparks_connector_for_one_partition() -> None:
    reader = to_arrow(ten_batches)
    assert reader.schema.names == list(COLUMNS)
    assert reader.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert sum(chunk.num_rows for chunk in reader) == 100


def test_columns_come_in_the_order_asked_for() -> None:
    (chunk,) = to_arrow(ten_batches, columns=("value", "position", "offset"))
    assert chunk.schema.names == ["value", "position", "offset"]
    chunk.validate(full=True)


@pytest.mark.parametrize("name", ALL_COLUMNS)
def test_each_column_alone_is_what_it_is_among_all(name: str) -> None:
    data = ten_batches + batch(100, magic=1) + batch(110, magic=0, codec=Codec.GZIP) + batch(120, codec=Codec.LZ4)
    alone = pa.Table.from_batches(to_arrow(data, columns=(name,)))[name]
    among = pa.Table.from_batches(to_arrow(data, columns=ALL_COLUMNS))[name]
    assert alone.to_pylist() == among.to_pylist()


def test_an_unknown_column_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="no column 'offsets'; there are offset, timestamp"):
        to_arrow(b"", columns=("offsets",))


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
@pytest.mark.parametrize(
    ("wanted", "first", "last"), [((25, 31), 25, 30), ((None, 3), 0, 2), ((97, None), 97, 99), ((50, 50), 0, -1)]
)
def test_a_range_of_offsets_is_half_open(
    magic: int, codec: Codec, wanted: tuple[int, int], first: int, last: int
) -> None:
    data = b"".join(batch(start, magic=magic, codec=codec) for start in range(0, 100, 10))
    assert offsets_of(data, offsets=wanted) == list(range(first, last + 1))


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_range_of_timestamps_is_half_open(magic: int, codec: Codec) -> None:
    data = b"".join(batch(start, magic=magic, codec=codec) for start in range(0, 100, 10))
    assert offsets_of(data, timestamps=(TIME_MS + 25, TIME_MS + 31)) == list(range(25, 31))


def damaged(data: bytes) -> bytes:
    """A batch whose records are garbage and whose checksum is wrong; its header is good."""
    return data[: BATCH_HEADER.size] + b"\xff" * (len(data) - BATCH_HEADER.size)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_batches_outside_a_range_of_offsets_are_not_read_where_their_neighbours_agree(codec: Codec) -> None:
    data = damaged(batch(0, codec=codec)) + batch(10) + damaged(batch(20, codec=codec))
    assert offsets_of(data, offsets=(10, 20)) == list(range(10, 20))
    with pytest.raises(ChecksumMismatch):
        offsets_of(data)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_batch_whose_offsets_leave_a_gap_is_verified_before_it_is_left_out(codec: Codec) -> None:
    data = damaged(batch(0, codec=codec)) + batch(20)
    with pytest.raises(ChecksumMismatch):
        offsets_of(data, offsets=(15, None))
    assert offsets_of(data, offsets=(15, None), verify=False) == list(range(20, 30))


def test_a_batch_is_verified_before_it_is_left_out_for_its_timestamps() -> None:
    data = damaged(batch(0)) + batch(10)
    with pytest.raises(ChecksumMismatch):
        offsets_of(data, timestamps=(TIME_MS + 1_000_000, None))


def test_batches_of_a_log_must_go_forward() -> None:
    assert offsets_of(batch(0) + batch(30) + batch(40), follows=-1) == [*range(10), *range(30, 50)]
    for data in (batch(0) + batch(5), batch(0) + batch(30) + batch(10)):
        with pytest.raises(BadRecord, match="do not lie between"):
            offsets_of(data, follows=-1)
    assert offsets_of(batch(0) + batch(5)) == [*range(10), *range(5, 15)]  # it may be no log


def test_append_times_exclude_a_batch_from_both_ends() -> None:
    builder = BatchBuilder(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=TIME_MS)
    builder.append(None, b"x", timestamp_ms=5)
    data = builder.build()
    assert offsets_of(data, timestamps=(TIME_MS + 1, None)) == []
    assert offsets_of(data, timestamps=(None, TIME_MS)) == []


def test_a_backward_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ends at 1, before it begins at 2"):
        to_arrow(b"", offsets=(2, 1))


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("limit", [{"max_rows": 1}, {"max_rows": 3}, {"max_bytes": 1}, {"max_bytes": 100}])
def test_chunks_of_any_size_hold_the_same_records(codec: Codec, limit: dict[str, int]) -> None:
    builder = BatchBuilder(codec=codec)
    for number in range(30):
        headers = [Header(f"header {n}", b"x" * n) for n in range(number % 4)]
        builder.append(None if number % 3 else b"k", b"v" * number, timestamp_ms=number, headers=headers)
    data = builder.build() + batch(30, codec=codec)
    assert records_of(data, **limit) == [record for batch in read_batches(data) for record in batch]


def test_chunks_respect_their_limits() -> None:
    data = b"".join(batch(start, size=1000) for start in range(0, 1000, 10))
    chunks = list(to_arrow(data, max_rows=64, max_bytes=1 << 20))
    assert {chunk.num_rows for chunk in chunks[:-1]} == {64}
    chunks = list(to_arrow(data, max_bytes=5000))
    assert max(chunk.column(4).nbytes for chunk in chunks) < 6000
    assert sum(chunk.num_rows for chunk in chunks) == 1000


def test_memory_that_an_earlier_chunk_has_left_does_not_make_a_chunk_larger() -> None:
    builder = BatchBuilder()
    for _ in range(50):
        builder.append(b"k" * 1000, b"v", timestamp_ms=TIME_MS)
    (wide,) = to_arrow(builder.build())  # before it is read, its values could take 50,000 bytes
    assert wide.column("value").nbytes < 1000
    chunks = list(to_arrow(b"".join(batch(start, size=1000) for start in range(0, 100, 10)), max_bytes=5000))
    assert max(chunk.column("value").nbytes for chunk in chunks) < 6000


def test_whole_batches_are_never_cut() -> None:
    data = b"".join(batch(start, count=30) for start in range(0, 300, 30))
    chunks = list(to_arrow(data, columns=("position",), max_rows=1, max_bytes=1, whole_batches=True))
    assert [chunk.num_rows for chunk in chunks] == [30] * 10


def test_one_record_larger_than_a_chunk_gets_a_chunk_of_its_own() -> None:
    data = batch(0) + batch(10, count=1, size=100_000) + batch(11)
    sizes = [chunk.num_rows for chunk in to_arrow(data, max_bytes=1000)]
    assert sum(sizes) == 21
    assert 1 in sizes


def test_many_headers_on_one_record() -> None:
    builder = BatchBuilder()
    headers = [Header(str(number), None) for number in range(5000)]
    builder.append(None, None, timestamp_ms=0, headers=headers)
    builder.append(None, None, timestamp_ms=0, headers=headers)
    data = builder.build()
    assert records_of(data) == [record for batch in read_batches(data) for record in batch]


def test_many_headers_before_damage() -> None:
    """More headers than a chunk has room for, when the scan has already seen the damage behind them."""
    builder = BatchBuilder()
    builder.append(None, None, timestamp_ms=0, headers=[Header(str(number), None) for number in range(5000)])
    reader = to_arrow(builder.build() + bytes(40))
    assert next(reader).num_rows == 1
    with pytest.raises(BadLength):
        next(reader)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": ()}, "no columns"),
        ({"max_rows": 0}, "max_rows is 0"),
        ({"max_bytes": 2**31}, "max_bytes is 2147483648"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_at_once(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        to_arrow(b"", **options)


def test_a_buffer_with_gaps_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        to_arrow(memoryview(bytes(100))[::2])


def test_ranges_beyond_64_bits_are_as_good_as_open() -> None:
    assert offsets_of(batch(0), offsets=(-(2**80), 2**80), timestamps=(-(2**80), 2**80)) == list(range(10))
    assert offsets_of(batch(0), offsets=(None, -(2**63))) == []
    assert offsets_of(batch(0), offsets=(2**70, None)) == []


def test_a_torn_tail_ends_the_reading_and_is_told() -> None:
    reader = to_arrow(ten_batches + ten_batches[:50])
    assert sum(chunk.num_rows for chunk in reader) == 100
    assert reader.torn_tail == reader.position == len(ten_batches)


def test_a_whole_buffer_has_no_torn_tail() -> None:
    reader = to_arrow(ten_batches)
    list(reader)
    assert reader.torn_tail is None
    assert reader.position == len(ten_batches)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_all_records_before_damage_come_first(codec: Codec) -> None:
    good, bad = batch(0, codec=codec), damaged(batch(10, codec=codec))
    reader = to_arrow(good + bad + good)
    assert next(reader).num_rows == 10
    with pytest.raises(ChecksumMismatch) as caught:
        next(reader)
    assert caught.value.position == reader.position == len(good)


def test_without_verifying_a_wrong_checksum_passes() -> None:
    data = bytearray(batch(0))
    data[BATCH_HEADER.at("crc")] ^= 0xFF
    with pytest.raises(ChecksumMismatch):
        list(to_arrow(data))
    assert len(records_of(bytes(data), verify=False)) == 10


def test_an_empty_batch_gives_no_rows_but_is_verified() -> None:
    empty = empty_batch(base_offset=0, last_offset=4)
    assert records_of(empty + batch(5)) == records_of(batch(5))
    with pytest.raises(ChecksumMismatch):
        records_of(empty[:30] + bytes([empty[30] ^ 1]) + empty[31:])


def test_a_stream_larger_than_the_limit_is_refused() -> None:
    data = batch(0, count=100, size=1000, codec=Codec.ZSTD)
    with pytest.raises(LimitExceeded):
        list(to_arrow(data, max_decompressed=50_000))


def test_a_codec_that_does_not_exist_is_unsupported() -> None:
    data = bytearray(batch(0))
    data[BATCH_HEADER.at("attributes") + 1] = 7
    with pytest.raises(Unsupported, match="7"):
        list(to_arrow(data, verify=False))


def test_timestamps_that_microseconds_cannot_hold_are_null() -> None:
    builder = BatchBuilder()
    largest = (2**63 - 1) // 1000
    for timestamp_ms in (0, largest, largest + 1, 2**63 - 1, -1):
        builder.append(None, None, timestamp_ms=timestamp_ms)
    (chunk,) = to_arrow(builder.build(), columns=("timestamp", "timestampMs"))
    micros = chunk["timestamp"].cast(pa.int64()).to_pylist()
    assert micros == [0, largest * 1000, None, None, -1000]
    assert chunk["timestampMs"].to_pylist() == [0, largest, largest + 1, 2**63 - 1, -1]


def test_header_keys_that_are_not_utf8_read_as_java_reads_them() -> None:
    builder = BatchBuilder()
    builder.append(None, None, timestamp_ms=0, headers=[Header("abc", b"1"), Header("fine", b"2")])
    data = builder.build().replace(b"abc", b"\xed\xa0\x80")
    (row,) = rows_of(data, verify=False)
    assert [header["key"] for header in row["headers"]] == ["\ufffd", "fine"]


@pytest.mark.parametrize("of", [bytes, bytearray, memoryview, lambda data: pa.py_buffer(data)])
def test_any_buffer_will_do(of: Callable[[bytes], bytes]) -> None:
    assert records_of(of(ten_batches)) == records_of(ten_batches)


def test_a_mapped_file_is_read_in_place(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(ten_batches)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(chunk.num_rows for chunk in to_arrow(mapped)) == 100  # and no view of it is left to keep it open


def test_part_of_a_buffer() -> None:
    start = len(batch(0))
    end = start + 2 * len(batch(10))
    assert offsets_of(ten_batches, start=start, end=end) == list(range(10, 30))
    with pytest.raises(InvalidInput, match="do not lie in a buffer"):
        to_arrow(ten_batches, start=5, end=3)


def test_nothing_gives_nothing() -> None:
    assert list(to_arrow(b"")) == []

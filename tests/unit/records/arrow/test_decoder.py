"""`ArrowDecoder`: one buffer after another, with memory that is used again, reads as if each were read alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pytest

from octavo.errors import ChecksumMismatch, InvalidInput
from octavo.records import ArrowDecoder, BatchBuilder, Codec, Header, to_arrow
from octavo.records.arrow.schema import ALL_COLUMNS

pytestmark = pytest.mark.usefixtures("each_kind_of_kernel")


def batch(first: int, count: int, *, codec: Codec = Codec.NONE, magic: int = 2, nulls: int = 0) -> bytes:
    """A batch in which every record that `nulls` divides has nulls, and headers if its magic has them."""
    builder = BatchBuilder(magic, base_offset=first, codec=codec)
    for offset in range(first, first + count):
        is_null = nulls > 0 and offset % nulls == 0
        headers = [Header("name", None if is_null else b"%d" % offset)] * (offset % 3) if nulls and magic == 2 else []
        key = None if is_null else b"key %d" % offset
        value = None if is_null else bytes([offset & 0xFF]) * (offset % 50)
        builder.append(key, value, timestamp_ms=1_700_000_000_000 + offset, headers=headers)
    return builder.build()


BUFFERS = [
    batch(0, 50) + batch(50, 3),
    batch(100, 5, nulls=2),
    batch(200, 70),
    b"",
    batch(300, 40, codec=Codec.LZ4) + batch(340, 4, codec=Codec.ZSTD, nulls=3),
    batch(400, 1),
    batch(500, 20, magic=1) + batch(520, 20, magic=0, codec=Codec.GZIP),
    batch(600, 200, nulls=1),
    batch(1000, 10, codec=Codec.SNAPPY),
]


def rows_of(chunks: list[pa.RecordBatch]) -> list[dict[str, object]]:
    for chunk in chunks:
        chunk.validate(full=True)
    return [row for chunk in chunks for row in chunk.to_pylist()]


@pytest.mark.parametrize("limit", [{}, {"max_rows": 7}, {"max_bytes": 100}, {"whole_batches": True}])
def test_buffers_read_as_if_each_were_read_alone(limit: dict[str, Any]) -> None:
    decoder = ArrowDecoder(columns=ALL_COLUMNS, **limit)
    # All chunks are kept, so that memory which is wrongly used twice shows.
    chunks = [list(decoder.read(buffer)) for buffer in BUFFERS + BUFFERS]
    for buffer, found in zip(BUFFERS + BUFFERS, chunks, strict=True):
        assert rows_of(found) == rows_of(list(to_arrow(buffer, columns=ALL_COLUMNS, **limit)))


def test_headers_with_null_values_leave_no_memory_that_is_too_small() -> None:
    """The bitmap of a chunk is handed out while the rest of its memory is kept, because it fills less than half."""
    builder = BatchBuilder()
    for _ in range(2047):
        builder.append(None, None, timestamp_ms=0, headers=[Header("", None)])
    buffer = builder.build()
    chunks = [list(to_arrow(buffer, columns=["headers"])) for _ in range(3)]
    for found in chunks:
        assert rows_of(found) == [{"headers": [{"key": "", "value": None}]}] * 2047


def test_readers_at_the_same_time_do_not_disturb_each_other() -> None:
    decoder = ArrowDecoder(columns=ALL_COLUMNS, max_rows=3)
    readers = [decoder.read(buffer) for buffer in BUFFERS]
    found: list[list[pa.RecordBatch]] = [[] for _ in BUFFERS]
    for turn in zip_longest(*readers):
        for chunks, chunk in zip(found, turn, strict=True):
            chunks += [] if chunk is None else [chunk]
    for buffer, chunks in zip(BUFFERS, found, strict=True):
        assert rows_of(chunks) == rows_of(list(to_arrow(buffer, columns=ALL_COLUMNS)))


def test_threads_may_share_a_decoder() -> None:
    decoder = ArrowDecoder(columns=ALL_COLUMNS, max_rows=11)
    right = [rows_of(list(to_arrow(buffer, columns=ALL_COLUMNS))) for buffer in BUFFERS]

    def read(number: int) -> bool:
        at = number % len(BUFFERS)
        return rows_of(list(decoder.read(BUFFERS[at]))) == right[at]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(8 * len(BUFFERS))))


def test_a_reader_that_was_given_up_or_met_damage_leaves_nothing_behind() -> None:
    decoder = ArrowDecoder(max_rows=4)
    damaged = bytearray(batch(0, 10) + batch(10, 10, nulls=2))
    damaged[-1] ^= 1
    for _ in range(3):
        assert next(decoder.read(BUFFERS[0])).num_rows == 4
        reader = decoder.read(damaged)
        assert sum(next(reader).num_rows for _ in range(3)) == 10
        with pytest.raises(ChecksumMismatch) as caught:
            next(reader)
        assert reader.position == caught.value.position == len(batch(0, 10))
        assert rows_of(list(decoder.read(BUFFERS[1]))) == rows_of(list(to_arrow(BUFFERS[1])))
        with pytest.raises(ChecksumMismatch):
            next(reader)


def test_a_reader_knows_its_end_also_when_the_next_one_reads() -> None:
    decoder = ArrowDecoder()
    whole = batch(0, 10)
    first = decoder.read(whole + batch(10, 10)[:-1])
    assert sum(chunk.num_rows for chunk in first) == 10
    second = decoder.read(batch(100, 7, codec=Codec.LZ4) + batch(107, 7))
    assert next(second).num_rows == 14
    assert (first.position, first.torn_tail, first.last_offset) == (len(whole), len(whole), 9)
    assert list(first) == []


def test_where_chunks_of_to_arrow_end_does_not_depend_on_calls_before() -> None:
    builder = BatchBuilder()
    for _ in range(1000):
        builder.append(bytes(200), None, timestamp_ms=0)
    keys = builder.build()
    values = b"".join(batch(first, 100) for first in range(0, 1000, 100))
    alone = [chunk.num_rows for chunk in to_arrow(keys)]
    for _ in range(3):
        assert sum(chunk.num_rows for chunk in to_arrow(values)) == 1000
        assert [chunk.num_rows for chunk in to_arrow(keys)] == alone == [1000]


def test_memory_of_an_unusually_large_batch_is_given_back() -> None:
    builder = BatchBuilder(codec=Codec.GZIP)
    builder.append(bytes(20 << 20), bytes(20 << 20), timestamp_ms=0)
    before = pa.total_allocated_bytes()
    decoder = ArrowDecoder()
    assert sum(chunk.num_rows for chunk in decoder.read(builder.build())) == 1
    assert pa.total_allocated_bytes() - before < 20 << 20
    work = decoder._settings.workspaces.take()
    assert len(work.inflater.reserve(0)) < 20 << 20


def test_arguments_that_make_no_sense_are_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="no columns"):
        ArrowDecoder(columns=())
    with pytest.raises(InvalidInput, match="max_rows"):
        ArrowDecoder(max_rows=0)
    with pytest.raises(InvalidInput, match="start 5 and end 3"):
        ArrowDecoder().read(bytes(10), start=5, end=3)

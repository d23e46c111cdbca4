"""Read the records of a buffer as Arrow columns, in chunks of bounded size.

One pass over the headers selects the batches. Those are checked and decompressed; then one kernel call decodes many
of them. No Python object is created for a record. A batch costs a few Python calls, and only if it is compressed or
large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from mmap import mmap
from typing import Final

import numpy as np
import pyarrow as pa

from octavo.errors import FormatError, InvalidInput
from octavo.records.arrow.batch_columns import batch_column
from octavo.records.arrow.ranges import closed
from octavo.records.arrow.schema import COLUMNS, schema_for
from octavo.records.arrow.selection import BatchSelection, Keep
from octavo.records.arrow.sink import Chunk, Int64s, Room
from octavo.records.compression import DEFAULT_LIMIT, Inflater
from octavo.records.fields import check_range
from octavo.records.kernels import decode, kernels, rules, scan
from octavo.records.kernels.batch_checksums import checksum_tables, mismatch
from octavo.records.kernels.batch_inflation import BatchInflation, has_stream
from octavo.records.kernels.message import walk_message
from octavo.records.kernels.record import MIN_RECORD_SIZE, walk_record
from octavo.records.layout import MAX_SIZE, MIN_SIZE, Buffer

MAX_ROWS: Final = 1 << 17
MAX_BYTES: Final = 8 << 20

_TABLE_ROWS = 8192
_TILE = 512 << 10  # bytes that are decompressed before they are decoded


class ArrowReader(Iterator[pa.RecordBatch]):
    """An iterator over chunks of records; `to_arrow` creates it.

    `schema` is the schema of every chunk. After the last chunk, `position` is where the reading ended. If an incomplete
    batch begins there, `torn_tail` is the same position, otherwise None. At damage, the iterator first returns all
    records before the damage, and then raises a `FormatError`.
    """

    def __init__(
        self,
        buffer: Buffer | mmap,
        *,
        columns: Sequence[str],
        offsets: tuple[int | None, int | None] | None,
        timestamps: tuple[int | None, int | None] | None,
        max_rows: int,
        max_bytes: int,
        verify: bool,
        max_decompressed: int,
        whole_batches: bool,
        keep: Keep | None,
        follows: int | None,
        start: int,
        end: int | None,
    ) -> None:
        check_range("max_rows", max_rows, 1, MAX_SIZE)
        check_range("max_bytes", max_bytes, 1, MAX_SIZE)
        if not columns:
            raise InvalidInput("no columns are asked for")
        self.schema: Final = schema_for(columns)
        try:
            self._view: Final = memoryview(buffer).cast("B")
        except TypeError as error:
            raise InvalidInput(f"the buffer cannot be read: {error}") from None
        end = len(self._view) if end is None else end
        if not 0 <= start <= end <= len(self._view):
            raise InvalidInput(f"start {start} and end {end} do not lie in a buffer of {len(self._view)} bytes")
        self._columns: Final = frozenset(columns)
        self._max_rows: Final = max_rows
        self._max_bytes: Final = max_bytes
        self._whole_batches: Final = whole_batches
        self._kernels: Final = kernels(end - start)
        self._inflater: Final = Inflater(limit=max_decompressed)
        self._headers_room = 1024
        self._key_share = self._value_share = 1.0  # share of keys and of values in the last chunk's bytes
        self._table: Final = np.empty((_TABLE_ROWS, scan.COLUMNS), np.int64)
        self._loaded = 0  # number of rows that are checked and decompressed
        self._cursor: Final = np.zeros(decode.CURSOR_SIZE, np.int64)  # the decoder's place in the loaded rows
        within = closed("offsets", offsets), closed("timestamps", timestamps)
        self._selection: Final = BatchSelection(
            self._kernels,
            self._view,
            self._table,
            start=start,
            end=end,
            offsets=within[0],
            timestamps=within[1],
            verify=verify,
            keep=keep,
            follows=follows,
        )
        self._wanted: Final = decode.Wanted(
            int("offset" in self._columns),
            int("timestamp" in self._columns),
            int("key" in self._columns),
            int("value" in self._columns),
            int("headers" in self._columns),
            int(self._selection.decoder_verifies),
            *within[0],
            *within[1],
        )

    @property
    def position(self) -> int:
        """The start of the first batch that is not completely returned yet."""
        batch = int(self._cursor[decode.BATCH])
        return int(self._table[batch, scan.POSITION]) if batch < self._selection.rows else self._selection.position

    @property
    def torn_tail(self) -> int | None:
        """The position of the incomplete batch at the end, or None."""
        return self._selection.torn_tail

    @property
    def last_offset(self) -> int:
        """The last offset of the batch before `position`; valid once all records before `position` are returned."""
        return self._selection.last_offset

    def __next__(self) -> pa.RecordBatch:
        while True:
            if self._cursor[decode.BATCH] < self._loaded:
                chunk = self._decode()
                if chunk is not None:
                    return chunk
            elif self._loaded < self._selection.rows:
                self._load()
            elif self._selection.error is not None:
                raise self._selection.error
            elif self._selection.is_over:
                raise StopIteration
            else:
                self._scan()

    def _scan(self) -> None:
        self._selection.scan(self._max_bytes)
        self._loaded = 0
        self._cursor[decode.BATCH] = self._cursor[decode.RECORD] = 0

    def _load(self) -> None:
        """Decompress the next batches of the table: a few, so that they are decoded from the processor's cache."""
        first = self._loaded
        if first == 0 or self._whole_batches:
            self._inflation = self._new_inflation(first)
        self._inflater.clear()
        self._inflation.go_on(self._max_bytes if self._whole_batches else min(self._max_bytes, _TILE))
        row = self._inflation.next_row
        last = self._selection.rows if row is None else row
        if self._inflation.error is not None:
            self._selection.give_up_at(last, self._inflation.error)
        self._loaded = self._within_limits(first, last)

    def _new_inflation(self, first: int) -> BatchInflation:
        table = self._table[: self._selection.rows]
        rows = first + np.flatnonzero(has_stream(table[first:]))
        return BatchInflation(self._kernels, self._inflater, self._selection.data, table, rows)

    def _within_limits(self, first: int, last: int) -> int:
        """Return the end of the batches that fit into one chunk; the offsets of an Arrow array are limited to 2 GiB."""
        sizes = self._table[first:last, scan.END] - self._table[first:last, scan.START]
        if not self._whole_batches or sizes.sum() <= MAX_SIZE:
            return last
        return first + max(1, int(np.searchsorted(np.cumsum(sizes), MAX_SIZE, side="right")))

    def _decode(self) -> pa.RecordBatch | None:
        """Decode one chunk from the loaded batches; None if the ranges exclude all their records."""
        chunk = self._new_chunk(self._room())
        done = self._fill(chunk)
        while not self._whole_batches and self._cursor[decode.BATCH] == self._loaded < self._selection.rows:
            self._load()
            done += self._fill(chunk)
        if self._cursor[decode.ROWS] == 0 and self._cursor[decode.BATCH] < self._loaded:
            # The very next record, or its headers, is larger than a chunk should be, so it gets a chunk of its own.
            chunk = self._new_chunk(self._room_for_next())
            done += self._fill(chunk)
        self._headers_room = max(self._headers_room, 2 * int(self._cursor[decode.HEADERS]))
        self._key_share = int(self._cursor[decode.KEY_BYTES]) / max(1, done)
        self._value_share = int(self._cursor[decode.VALUE_BYTES]) / max(1, done)
        rows = int(self._cursor[decode.ROWS])
        return self._record_batch(chunk, rows) if rows else None

    def _new_chunk(self, room: Room) -> Chunk:
        self._cursor[decode.ROWS :] = 0
        return Chunk(self._columns, room, self._selection.rows)

    def _fill(self, chunk: Chunk) -> int:
        """Decode loaded batches until the chunk is full. Returns how many bytes of theirs are done."""
        before = self._loaded_bytes()
        inflated = np.frombuffer(self._inflater.buffer, np.uint8)
        good = self._kernels.decode(
            checksum_tables(),
            self._selection.data,
            inflated,
            self._table,
            self._loaded,
            self._cursor,
            self._wanted,
            chunk.sink,
        )
        if not good:
            batch = int(self._cursor[decode.BATCH])
            self._selection.give_up_at(batch, self._broken(self._table[batch]))
            self._loaded = batch
        return before - self._loaded_bytes()

    def _broken(self, row: Int64s) -> FormatError:
        """Return the error for the rule that the kernel found broken in the batch of `row`."""
        rule = int(self._cursor[decode.RULE])
        if rule == rules.CHECKSUM:
            return mismatch(self._selection.data, row)
        # Inside a compressed stream, the position of its batch is the most exact position there is.
        where = row[scan.POSITION] if row[scan.INFLATED] else self._cursor[decode.WHERE]
        return rules.broken(rule, int(where))

    def _room_for_next(self) -> Room:
        """Return the room that the very next record takes; the kernel has just found it to be complete."""
        row = self._table[int(self._cursor[decode.BATCH])]
        data = self._inflater.buffer if row[scan.INFLATED] else self._view
        at = int(self._cursor[decode.AT])
        if row[scan.MAGIC] < 2:
            _, _, _, _, key_length, _, value_length = walk_message(data, at, int(row[scan.END]))
            return Room(1, max(0, key_length), max(0, value_length), 0, 0)
        next_at, _, _, _, key_length, _, value_length, headers_at, count = walk_record(data, at, int(row[scan.END]))
        return Room(1, max(0, key_length), max(0, value_length), count, next_at - headers_at)

    def _loaded_bytes(self) -> int:
        rest = self._table[int(self._cursor[decode.BATCH]) : self._loaded]
        return int((rest[:, scan.END] - rest[:, scan.START]).sum())

    def _room(self) -> Room:
        """Return the most that the batches of the table can need, within the limits of a chunk."""
        rest = self._table[int(self._cursor[decode.BATCH]) : self._selection.rows]
        loaded = self._loaded - int(self._cursor[decode.BATCH])
        sizes = rest[:loaded, scan.END] - rest[:loaded, scan.START]
        smallest = np.where(rest[:loaded, scan.MAGIC] == 2, MIN_RECORD_SIZE, MIN_SIZE)
        most = sizes // smallest
        counted = (rest[:loaded, scan.COUNT] >= 0) & (rest[:loaded, scan.COUNT] < most)
        total = int(np.where(counted, rest[:loaded, scan.COUNT], most).sum())
        size = int(sizes.sum())
        if self._whole_batches:
            return Room(total, size, size, size // 2 + 1, size)
        if loaded < len(rest):  # these are like the rest, as far as anybody can tell before it is decompressed
            share = 1.1 * float(rest[:, scan.SIZE].sum()) / max(1, int(rest[:loaded, scan.SIZE].sum()))
            total, size = int(share * total) + 1, int(share * size) + 1
        rows = min(total, self._max_rows)
        allowed = min(size, self._max_bytes)
        likely = 1.25 * size * rows / max(1, total)  # if these records are like those of the last chunk
        return Room(
            rows,
            min(allowed, int(self._key_share * likely) + 4096),
            min(allowed, int(self._value_share * likely) + 4096),
            self._headers_room,
            allowed,
        )

    def _record_batch(self, chunk: Chunk, rows: int) -> pa.RecordBatch:
        stored = chunk.record_columns(self._cursor)
        counts = chunk.batch_rows
        batches = self._table[: len(counts)], counts, chunk.offsets.array[:rows]
        arrays = []
        for name in self.schema.names:
            make = stored.get(name)
            arrays.append(make() if make is not None else batch_column(name, *batches))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def to_arrow(
    buffer: Buffer | mmap,
    *,
    columns: Sequence[str] = COLUMNS,
    offsets: tuple[int | None, int | None] | None = None,
    timestamps: tuple[int | None, int | None] | None = None,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    verify: bool = True,
    max_decompressed: int = DEFAULT_LIMIT,
    whole_batches: bool = False,
    keep: Keep | None = None,
    follows: int | None = None,
    start: int = 0,
    end: int | None = None,
) -> ArrowReader:
    """Read the records of `buffer[start:end]`, of any mix of magics, as chunks of Arrow columns.

    columns: the columns to decode, from those in `octavo.records.arrow.schema`
    offsets, timestamps (in milliseconds): half-open ranges, `None` for an open end. Batches that cannot hold such a
        record are neither decompressed nor decoded. Their checksums are verified only where headers alone may mislead:
        for timestamps, and next to gaps in the offsets
    max_rows, max_bytes: a chunk has at most `max_rows` records and about `max_bytes` each of keys and of values, or one
        larger record
    whole_batches: end a chunk only where a batch ends; `max_bytes` is then the approximate size of its batches
    keep: takes a table of headers (`octavo.records.kernels.scan`), and returns for each batch whether to read it
    follows: check that the offsets increase as in a log, from batch to batch, and begin after this offset

    Control records are returned like other records, and marked in `isControl`.

    Raises `InvalidInput` at once for arguments that make no sense. At damage, the iteration returns all records before
    it, and then raises a `FormatError`. A torn tail just ends the iteration.
    """
    return ArrowReader(
        buffer,
        columns=columns,
        offsets=offsets,
        timestamps=timestamps,
        max_rows=max_rows,
        max_bytes=max_bytes,
        verify=verify,
        max_decompressed=max_decompressed,
        whole_batches=whole_batches,
        keep=keep,
        follows=follows,
        start=start,
        end=end,
    )

"""Read the records of a buffer as Arrow columns, in chunks of bounded size.

One pass over the headers selects the batches. Those are checked and decompressed; then one kernel call decodes many
of them. No Python object is created for a record. A batch costs a few Python calls, and only if it is compressed or
large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from mmap import mmap
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.errors import FormatError, InvalidInput
from octavo.records.arrow.schema import COLUMNS, FIELDS, schema_for
from octavo.records.arrow.sink import Chunk, Int64s, Room
from octavo.records.compression import DEFAULT_LIMIT, Inflater
from octavo.records.fields import check_range
from octavo.records.kernels import decode, kernels, rules, scan
from octavo.records.kernels.batch_checksums import checksum_tables, first_mismatch, mismatch
from octavo.records.kernels.batch_inflation import BatchInflation, has_stream
from octavo.records.kernels.message import walk_message
from octavo.records.kernels.record import MIN_RECORD_SIZE, walk_record
from octavo.records.layout import (
    MAX_INT64,
    MAX_SEQUENCE,
    MAX_SIZE,
    MIN_INT64,
    MIN_SIZE,
    NO_SEQUENCE,
    Attributes,
    Buffer,
    Codec,
    TimestampType,
)
from octavo.records.offset_order import base_offset_at, first_misplaced, misplaced

MAX_ROWS: Final = 1 << 17
MAX_BYTES: Final = 8 << 20

Keep = Callable[[Int64s], npt.NDArray[np.bool_]]  # takes a table of batches (`kernels.scan`), returns which to read

_TABLE_ROWS = 8192
_TILE = 512 << 10  # bytes that are decompressed before they are decoded
_EVERYTHING = (MIN_INT64, MAX_INT64)  # range of all offsets or of all timestamps
_CODEC = int(Attributes.CODEC)


class _Range(NamedTuple):
    """A range of numbers, both ends included."""

    first: int
    last: int


def _closed(name: str, half_open: tuple[int | None, int | None] | None) -> _Range:
    start, stop = half_open or (None, None)
    if start is not None and stop is not None and stop < start:
        raise InvalidInput(f"the range of {name} ends at {stop}, before it begins at {start}")
    first = MIN_INT64 if start is None else max(start, MIN_INT64)
    last = MAX_INT64 if stop is None else min(stop - 1, MAX_INT64)
    return _Range(first, last) if first <= last else _Range(1, 0)


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
        self.torn_tail: int | None = None
        try:
            self._view = memoryview(buffer).cast("B")
        except TypeError as error:
            raise InvalidInput(f"the buffer cannot be read: {error}") from None
        self._end = len(self._view) if end is None else end
        if not 0 <= start <= self._end <= len(self._view):
            raise InvalidInput(f"start {start} and end {self._end} do not lie in a buffer of {len(self._view)} bytes")
        self._data = np.frombuffer(self._view, np.uint8)
        self._columns: Final = frozenset(columns)
        self._offsets: Final = _closed("offsets", offsets)
        self._timestamps: Final = _closed("timestamps", timestamps)
        self._max_rows: Final = max_rows
        self._max_bytes: Final = max_bytes
        self._verify: Final = verify
        self._whole_batches: Final = whole_batches
        self._keep: Final = keep
        self._is_log: Final = follows is not None
        self._last_offset = MIN_INT64 if follows is None else follows  # last offset of the last batch scanned
        self._last_before = self._last_offset  # the same, before the table was last filled
        self._kernels: Final = kernels(self._end - start)
        self._inflater: Final = Inflater(limit=max_decompressed)
        self._headers_room = 1024
        self._key_share = self._value_share = 1.0  # share of keys and of values in the last chunk's bytes
        self._scanned_to = start
        self._scan_is_over = False
        self._error: FormatError | None = None  # the error found after the last row of the table
        self._table: Final = np.empty((_TABLE_ROWS, scan.COLUMNS), np.int64)
        self._rows = 0  # filled rows of the table
        self._loaded = 0  # number of rows that are checked and decompressed
        self._cursor: Final = np.zeros(decode.CURSOR_SIZE, np.int64)  # the decoder's place in the loaded rows
        self._wanted: Final = decode.Wanted(
            int("offset" in self._columns),
            int("timestamp" in self._columns),
            int("key" in self._columns),
            int("value" in self._columns),
            int("headers" in self._columns),
            int(verify and keep is None and self._kernels.checks_fast),
            *self._offsets,
            *self._timestamps,
        )

    @property
    def position(self) -> int:
        """The start of the first batch that is not completely returned yet."""
        batch = int(self._cursor[decode.BATCH])
        return int(self._table[batch, scan.POSITION]) if batch < self._rows else self._scanned_to

    @property
    def last_offset(self) -> int:
        """The last offset of the batch before `position`; valid once all records before `position` are returned."""
        return self._last_offset

    def __next__(self) -> pa.RecordBatch:
        while True:
            if self._cursor[decode.BATCH] < self._loaded:
                chunk = self._decode()
                if chunk is not None:
                    return chunk
            elif self._loaded < self._rows:
                self._load()
            elif self._error is not None:
                raise self._error
            elif self._scan_is_over:
                raise StopIteration
            else:
                self._scan()

    def _scan(self) -> None:
        """Fill the table with the next batches, and check them."""
        begin = self._scanned_to
        is_limited = (self._offsets, self._timestamps) != (_EVERYTHING, _EVERYTHING)
        looks_at_all = self._verify or self._is_log
        ranges = (*_EVERYTHING, *_EVERYTHING) if looks_at_all else (*self._offsets, *self._timestamps)
        self._scanned_to, self._rows, outcome, rule = self._kernels.scan(
            self._data, begin, self._end, self._table, self._max_bytes, *ranges
        )
        self._loaded = 0
        self._cursor[decode.BATCH] = self._cursor[decode.RECORD] = 0
        self._scan_is_over = outcome != scan.MORE
        if outcome == scan.TORN:
            self.torn_tail = self._scanned_to
        elif outcome == scan.BROKEN:
            self._error = rules.broken(rule, self._scanned_to)
        behind = self._base_offset_behind()
        self._last_before = self._last_offset
        if self._is_log:
            wrong = first_misplaced(self._table[: self._rows], self._last_offset, behind)
            if wrong is not None:
                self._give_up_at(wrong, misplaced(int(self._table[wrong, scan.POSITION])))
        if self._verify and self._keep is not None:
            self._check(np.arange(self._rows))
        if self._rows:
            self._last_offset = int(self._table[self._rows - 1, scan.LAST_OFFSET])
        if is_limited and looks_at_all:
            self._leave_out_of_range(begin, behind)
        if self._keep is not None and self._rows:
            self._leave_out(self._keep(self._table[: self._rows]))
        elif self._verify:
            # A fast kernel verifies uncompressed batches just before it decodes them.
            compressed = np.flatnonzero(self._table[: self._rows, scan.ATTRIBUTES] & Attributes.CODEC)
            self._check(compressed if self._wanted.verify else np.arange(self._rows))

    def _base_offset_behind(self) -> int | None:
        """Return the base offset of the batch after those of the table, if there is one; it may be beyond `end`."""
        return base_offset_at(self._view, self._scanned_to)

    def _leave_out_of_range(self, begin: int, behind: int | None) -> None:
        """Drop the batches of the table that are outside the ranges.

        A header's offsets are believed if the batches around it agree with them: the next batch begins where this one
        ends, or this batch is after the range and begins where the previous one ends. Otherwise its checksum is
        verified first. A batch that is dropped because of its timestamps is always verified.
        """
        table = self._table[: self._rows]
        if not len(table):
            return
        inside = np.empty((len(table), scan.COLUMNS), np.int64)
        end = int(table[-1, scan.POSITION] + table[-1, scan.SIZE])
        _, rows, _, _ = self._kernels.scan(self._data, begin, end, inside, MAX_INT64, *self._offsets, *self._timestamps)
        if rows == len(table):
            return
        kept = np.zeros(len(table), bool)
        kept[np.searchsorted(table[:, scan.POSITION], inside[:rows, scan.POSITION])] = True
        if self._verify and self._keep is None:
            self._check(np.flatnonzero(~kept & ~self._is_agreed_on(table, behind)))
        self._leave_out(kept[: self._rows])

    def _is_agreed_on(self, table: Int64s, behind: int | None) -> npt.NDArray[np.bool_]:
        """Return for each batch whether the batches around it agree that it is outside the offset range."""
        if self._timestamps != _EVERYTHING:
            return np.zeros(len(table), bool)
        bases, ends = table[:, scan.BASE_OFFSET], table[:, scan.LAST_OFFSET] + 1
        goes_on = bases[1:] == ends[:-1]
        begins_behind = np.insert(goes_on, 0, False) & (bases > self._offsets.last)
        return np.append(goes_on, behind == int(ends[-1])) | begins_behind

    def _leave_out(self, kept: npt.NDArray[np.bool_]) -> None:
        """Keep only the wanted batches in the table."""
        rows = int(np.count_nonzero(kept))
        if rows < self._rows:
            self._table[:rows] = self._table[: self._rows][kept]
            self._rows = rows

    def _check(self, rows: Int64s) -> None:
        """Verify these batches of the table, and end the table before the first damaged one."""
        if not len(rows):
            return
        wrong = first_mismatch(self._kernels, self._data, self._table[rows])
        if wrong is not None:
            row = int(rows[wrong])
            self._give_up_at(row, mismatch(self._data, self._table[row]))

    def _load(self) -> None:
        """Decompress the next batches of the table: a few, so that they are decoded from the processor's cache."""
        first = self._loaded
        if first == 0 or self._whole_batches:
            self._inflation = self._new_inflation(first)
        self._inflater.clear()
        self._inflation.go_on(self._max_bytes if self._whole_batches else min(self._max_bytes, _TILE))
        row = self._inflation.next_row
        last = self._rows if row is None else row
        if self._inflation.error is not None:
            self._give_up_at(last, self._inflation.error)
        self._loaded = self._within_limits(first, last)

    def _new_inflation(self, first: int) -> BatchInflation:
        table = self._table[: self._rows]
        rows = first + np.flatnonzero(has_stream(table[first:]))
        return BatchInflation(self._kernels, self._inflater, self._data, table, rows)

    def _within_limits(self, first: int, last: int) -> int:
        """Return the end of the batches that fit into one chunk; the offsets of an Arrow array are limited to 2 GiB."""
        sizes = self._table[first:last, scan.END] - self._table[first:last, scan.START]
        if not self._whole_batches or sizes.sum() <= MAX_SIZE:
            return last
        return first + max(1, int(np.searchsorted(np.cumsum(sizes), MAX_SIZE, side="right")))

    def _give_up_at(self, row: int, error: FormatError) -> None:
        self._rows = row
        self._last_offset = int(self._table[row - 1, scan.LAST_OFFSET]) if row else self._last_before
        self._error = error
        self.torn_tail = None
        self._scanned_to = int(self._table[row, scan.POSITION])

    def _decode(self) -> pa.RecordBatch | None:
        """Decode one chunk from the loaded batches; None if the ranges exclude all their records."""
        chunk = self._new_chunk(self._room())
        done = self._fill(chunk)
        while not self._whole_batches and self._cursor[decode.BATCH] == self._loaded < self._rows:
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
        return Chunk(self._columns, room, self._rows)

    def _fill(self, chunk: Chunk) -> int:
        """Decode loaded batches until the chunk is full. Returns how many bytes of theirs are done."""
        before = self._loaded_bytes()
        inflated = np.frombuffer(self._inflater.buffer, np.uint8)
        good = self._kernels.decode(
            checksum_tables(),
            self._data,
            inflated,
            self._table,
            self._loaded,
            self._cursor,
            self._wanted,
            chunk.sink,
        )
        if not good:
            batch = int(self._cursor[decode.BATCH])
            self._give_up_at(batch, self._broken(self._table[batch]))
            self._loaded = batch
        return before - self._loaded_bytes()

    def _broken(self, row: Int64s) -> FormatError:
        """Return the error for the rule that the kernel found broken in the batch of `row`."""
        rule = int(self._cursor[decode.RULE])
        if rule == rules.CHECKSUM:
            return mismatch(self._data, row)
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
        rest = self._table[int(self._cursor[decode.BATCH]) : self._rows]
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
        arrays = []
        for name in self.schema.names:
            make = stored.get(name)
            arrays.append(make() if make is not None else self._batch_column(name, chunk, rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _batch_column(self, name: str, chunk: Chunk, rows: int) -> pa.Array:
        """Return a column that has one value for all records of a batch, or is computed from such values."""
        counts = chunk.batch_rows
        table = self._table[: len(counts)]

        def spread(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            if len(values) and (values == values[0]).all():
                return np.full(rows, values[0])
            return np.repeat(values, counts)

        attributes = table[:, scan.ATTRIBUTES]
        flags = attributes & _V2_ONLY[table[:, scan.MAGIC]]
        match name:
            case "timestampType":
                kinds = np.where(table[:, scan.MAGIC] == 0, int(TimestampType.NONE), attributes >> 3 & 1)
                return _array(spread(kinds.astype(np.int32)), pa.int32())
            case "sequence":
                base = spread(table[:, scan.BASE_SEQUENCE])
                delta = chunk.offsets.array[:rows] - spread(table[:, scan.BASE_OFFSET])
                # 0 follows the largest sequence. No writer writes a negative delta; Java's 32 bits give this result.
                after = np.where(delta < 0, base + delta + 2**31, (base + delta) & MAX_SEQUENCE)
                return _array(np.where(base < 0, NO_SEQUENCE, after).astype(np.int32), pa.int32())
            case "isTransactional":
                return _truths(spread((flags & Attributes.TRANSACTIONAL) != 0))
            case "isControl":
                return _truths(spread((flags & Attributes.CONTROL) != 0))
            case "compression":
                codes = _array(spread((attributes & Attributes.CODEC).astype(np.int8)), pa.int8())
                return pa.DictionaryArray.from_arrays(codes, _codec_names()).dictionary_decode()
            case _:
                kind = FIELDS[name].type
                return _array(spread(table[:, _TABLE_COLUMNS[name]].astype(f"i{kind.bit_width // 8}")), kind)


# `pa.array` is avoided: it imports pandas, if installed, to check whether its argument is a pandas object.


def _array(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _truths(values: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


@cache
def _codec_names() -> pa.Array:
    return pa.array([codec.name.lower() for codec in Codec], pa.string())


_V2_ONLY = np.array([0, 0, 0xFF], np.int64)  # mask by magic: those flags exist in magic 2 only

_TABLE_COLUMNS: Final = {
    "leaderEpoch": scan.LEADER_EPOCH,
    "producerId": scan.PRODUCER_ID,
    "producerEpoch": scan.PRODUCER_EPOCH,
    "magic": scan.MAGIC,
    "position": scan.POSITION,
}


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

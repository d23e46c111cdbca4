"""Read the records of a buffer as Arrow columns, in chunks of bounded size.

One pass over the headers selects the batches. Those are checked and decompressed; then one kernel call decodes many
of them. No Python object is created for a record. A batch costs a few Python calls, and only if it is compressed or
large.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from octavo.errors import FormatError, InvalidInput
from octavo.records.arrow.ranges import closed
from octavo.records.arrow.room import Forecast
from octavo.records.arrow.selection import BatchSelection, Keep
from octavo.records.arrow.sink import Int64s, Room
from octavo.records.arrow.workspace import Workspace, Workspaces
from octavo.records.kernels import decode, kernels, rules, scan
from octavo.records.kernels.batch_checksums import checksum_tables, mismatch
from octavo.records.kernels.batch_inflation import BatchInflation, has_stream
from octavo.records.kernels.message import walk_message
from octavo.records.kernels.record import walk_record
from octavo.records.layout import MAX_SIZE, Buffer

_TILE: Final = 1 << 20  # bytes that are decompressed before they are decoded
_ROWS_MEANWHILE: Final = 1 << 14  # rows of a chunk while kernels are being compiled: a fraction of a second's work
_NOTHING: Final = np.empty(0, np.uint8)


class Settings(NamedTuple):
    """What is the same for all buffers that a decoder reads."""

    workspaces: Workspaces
    max_rows: int
    max_bytes: int
    verify: bool
    whole_batches: bool
    learns: bool  # whether the sizes of one buffer's records decide how much memory is taken for the next buffer


class ArrowReader(Iterator[pa.RecordBatch]):
    """An iterator over chunks of records; `to_arrow` and `ArrowDecoder.read` create it.

    `schema` is the schema of every chunk. After the last chunk, `position` is where the reading ended. If an incomplete
    batch begins there, `torn_tail` is the same position, otherwise None. At damage, the iterator first returns all
    records before the damage, and then raises a `FormatError`.
    """

    def __init__(
        self,
        settings: Settings,
        buffer: Buffer | mmap,
        *,
        offsets: tuple[int | None, int | None] | None,
        timestamps: tuple[int | None, int | None] | None,
        keep: Keep | None,
        follows: int | None,
        start: int,
        end: int | None,
    ) -> None:
        self.schema: Final[pa.Schema] = settings.workspaces.schema
        try:
            view = memoryview(buffer).cast("B")
        except TypeError as error:
            raise InvalidInput(f"the buffer cannot be read: {error}") from None
        end = len(view) if end is None else end
        if not 0 <= start <= end <= len(view):
            raise InvalidInput(f"start {start} and end {end} do not lie in a buffer of {len(view)} bytes")
        within = closed("offsets", offsets), closed("timestamps", timestamps)
        self._settings: Final = settings
        self._view: Final = view
        self._kernels: Final = kernels(end - start)
        self._loaded = 0  # number of rows of the table that are checked and decompressed
        self._inflation: BatchInflation | None = None
        self._work: Workspace | None = settings.workspaces.take()  # None when nothing is left to decode
        if not settings.learns:
            self._work.forecast = Forecast()
        self._work.cursor[decode.BATCH] = self._work.cursor[decode.RECORD] = 0
        self._selection: Final = BatchSelection(
            self._kernels,
            view,
            self._work.table,
            start=start,
            end=end,
            offsets=within[0],
            timestamps=within[1],
            verify=settings.verify,
            keep=keep,
            follows=follows,
        )
        self._wanted: Final = decode.Wanted(
            *settings.workspaces.wanted, int(self._selection.decoder_verifies), *within[0], *within[1]
        )

    @property
    def position(self) -> int:
        """The start of the first batch that is not completely returned yet."""
        if self._work is not None:
            batch = int(self._work.cursor[decode.BATCH])
            if batch < self._selection.rows:
                return int(self._work.table[batch, scan.POSITION])
        return self._selection.position

    @property
    def torn_tail(self) -> int | None:
        """The position of the incomplete batch at the end, or None."""
        return self._selection.torn_tail

    @property
    def last_offset(self) -> int:
        """The last offset of the batch before `position`; valid once all records before `position` are returned."""
        return self._selection.last_offset

    def __next__(self) -> pa.RecordBatch:
        while self._work is not None:
            if self._work.cursor[decode.BATCH] < self._loaded:
                chunk = self._decode(self._work)
                if chunk is not None:
                    self._end_if_over(self._work)
                    return chunk
            elif self._loaded < self._selection.rows:
                self._load(self._work)
            elif self._selection.error is None and not self._selection.is_over:
                self._scan(self._work)
            self._end_if_over(self._work)
        if self._selection.error is not None:
            raise self._selection.error
        raise StopIteration

    def _end_if_over(self, work: Workspace) -> None:
        """If no record is left, let other readers use the workspace."""
        selection = self._selection
        is_last = selection.is_over or selection.error is not None
        if is_last and self._loaded == selection.rows and work.cursor[decode.BATCH] >= self._loaded:
            self._inflation = self._work = None
            self._settings.workspaces.give_back(work)

    def _scan(self, work: Workspace) -> None:
        self._selection.scan(self._settings.max_bytes)
        self._loaded = 0
        work.cursor[decode.BATCH] = work.cursor[decode.RECORD] = 0

    def _load(self, work: Workspace) -> None:
        """Decompress the next batches of the table: a few, so that they are decoded from the processor's cache."""
        first, last = self._loaded, self._selection.rows
        if first == 0 or self._settings.whole_batches:
            self._inflation = self._new_inflation(work, first)
        if self._inflation is not None:
            last = self._inflate(work, self._inflation)
        self._loaded = self._within_limits(work, first, last)

    def _new_inflation(self, work: Workspace, first: int) -> BatchInflation | None:
        """Return what decompresses the rest of the table; None if none of it is compressed."""
        if not self._selection.has_compressed:
            return None
        table = work.table[: self._selection.rows]
        rows = first + np.flatnonzero(has_stream(table[first:]))
        return BatchInflation(self._kernels, work.inflater, self._selection.data, table, rows)

    def _inflate(self, work: Workspace, inflation: BatchInflation) -> int:
        """Decompress some batches. Returns the row up to which no batch is compressed any more."""
        max_bytes = self._settings.max_bytes
        work.inflater.clear()
        inflation.go_on(max_bytes if self._settings.whole_batches else min(max_bytes, _TILE))
        row = inflation.next_row
        last = self._selection.rows if row is None else row
        if inflation.error is not None:
            self._selection.give_up_at(last, inflation.error)
        return last

    def _within_limits(self, work: Workspace, first: int, last: int) -> int:
        """Return the end of the batches that fit into one chunk; the offsets of an Arrow array are limited to 2 GiB."""
        if not self._settings.whole_batches:
            return last
        sizes = work.table[first:last, scan.END] - work.table[first:last, scan.START]
        if sizes.sum() <= MAX_SIZE:
            return last
        return first + max(1, int(np.searchsorted(np.cumsum(sizes), MAX_SIZE, side="right")))

    def _decode(self, work: Workspace) -> pa.RecordBatch | None:
        """Decode one chunk from the loaded batches; None if the ranges exclude all their records."""
        first = int(work.cursor[decode.BATCH])
        sink = self._new_chunk(work, self._room(work, first))
        cursor, last = self._fill(work, sink)
        while not self._settings.whole_batches and cursor[decode.BATCH] == self._loaded < self._selection.rows:
            self._load(work)
            cursor, last = self._fill(work, sink)
        if cursor[decode.ROWS] == 0 and cursor[decode.BATCH] < self._loaded:
            # The very next record, or its headers, is larger than a chunk should be, so it gets a chunk of its own.
            room = self._room_for_next(work, cursor[decode.BATCH], cursor[decode.AT])
            cursor, last = self._fill(work, self._new_chunk(work, room))
        work.forecast.learn(cursor)
        return work.record_batch(cursor, first, last) if cursor[decode.ROWS] else None

    def _room(self, work: Workspace, first: int) -> Room:
        loaded = work.table[first : self._loaded]
        if self._settings.whole_batches:
            return work.forecast.room_for_all(loaded)
        rest = work.table[first : self._selection.rows]
        max_rows = self._settings.max_rows
        if self._kernels.is_waiting:
            max_rows = min(max_rows, _ROWS_MEANWHILE)
        return work.forecast.room(loaded, rest, max_rows, self._settings.max_bytes)

    def _new_chunk(self, work: Workspace, room: Room) -> decode.Sink:
        work.cursor[decode.ROWS :] = 0
        return work.chunk.reserve(room)

    def _fill(self, work: Workspace, sink: decode.Sink) -> tuple[list[int], int]:
        """Decode loaded batches until the chunk is full. Returns the cursor, and the end of the rows it has visited."""
        inflated = _NOTHING if self._inflation is None else np.frombuffer(work.inflater.buffer, np.uint8)
        good = self._kernels.decode(
            checksum_tables(),
            self._selection.data,
            inflated,
            work.table,
            self._loaded,
            work.cursor,
            self._wanted,
            sink,
        )
        cursor: list[int] = work.cursor.tolist()
        batch = cursor[decode.BATCH]
        last = batch + (batch < self._loaded)
        if not good:
            self._selection.give_up_at(batch, self._broken(cursor, work.table[batch]))
            self._loaded = batch
        return cursor, last

    def _broken(self, cursor: list[int], row: Int64s) -> FormatError:
        """Return the error for the rule that the kernel found broken in the batch of `row`."""
        rule = cursor[decode.RULE]
        if rule == rules.CHECKSUM:
            return mismatch(self._selection.data, row)
        # Inside a compressed stream, the position of its batch is the most exact position there is.
        where = row[scan.POSITION] if row[scan.INFLATED] else cursor[decode.WHERE]
        return rules.broken(rule, int(where))

    def _room_for_next(self, work: Workspace, batch: int, at: int) -> Room:
        """Return the room that the very next record takes; the kernel has just found it to be complete."""
        row = work.table[batch]
        data = work.inflater.buffer if row[scan.INFLATED] else self._view
        if row[scan.MAGIC] < 2:
            _, _, _, _, key_length, _, value_length = walk_message(data, at, int(row[scan.END]))
            return Room(1, max(0, key_length), max(0, value_length), 0, 0)
        next_at, _, _, _, key_length, _, value_length, headers_at, count = walk_record(data, at, int(row[scan.END]))
        return Room(1, max(0, key_length), max(0, value_length), count, next_at - headers_at)

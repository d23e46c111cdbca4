"""Iterate over the batches or records of a log: `LogReader`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octavo.errors import LimitExceeded
from octavo.log.producer_state.aborted import AbortedRanges
from octavo.log.reading.read_view import ReadResult
from octavo.log.view import Isolation
from octavo.records import Batch, Record, read_batches
from octavo.records.offset_order import base_offset_at, is_misplaced

if TYPE_CHECKING:
    from octavo.log.reading.readable_log import ReadableLog


class LogReader(Iterator[Batch]):
    """Iterate over batches from an offset to the present end of the log. Iterate again later to go on from there.

    A read is at most as large as the buffer. If a batch does not fit, the buffer is doubled, up to its maximum. Batches
    are returned as they are stored; with `READ_COMMITTED`, `records` leaves out aborted ones. Each segment is read to
    its end before the next, as described in `portions`, whatever the size of the buffer.
    """

    def __init__(
        self, log: ReadableLog, offset: int, *, isolation: Isolation, buffer_size: int, max_buffer_size: int
    ) -> None:
        self.offset = offset  # of the next record
        self.buffer_size = buffer_size
        self._log = log
        self._isolation = isolation
        self._max_buffer_size = max_buffer_size
        self._segment: int | None = None  # base offset of the segment that was read last
        self._data = b""
        self._batches: Iterator[Batch] = iter(())
        self._aborted = AbortedRanges()

    def __next__(self) -> Batch:
        """Return the next batch. Raises `OffsetOutOfRange`, `FormatError`, and `LimitExceeded`.

        `LimitExceeded` is for a batch that is larger than the largest buffer.
        """
        while True:
            for batch in self._batches:
                if batch.position and not self._is_next(batch):
                    break  # the next read begins with this batch, and finds out what is wrong
                self.offset = batch.last_offset + 1
                return batch
            part = self._read()
            if not part.size:
                raise StopIteration
            self._segment = part.segment
            self._data = part.records
            self._batches = read_batches(self._data)
            self._aborted = part.aborted_ranges

    def _is_next(self, batch: Batch) -> bool:
        """Return whether a batch is in its place: right after the last one, or after a plausible gap."""
        base_offset = batch.last_offset if batch.count is None else batch.base_offset
        if base_offset == self.offset:
            return True
        behind = base_offset_at(self._data, batch.position + batch.size)
        return behind is not None and not is_misplaced(base_offset, batch.last_offset, self.offset - 1, behind)

    def records(self) -> Iterator[Record]:
        """Yield the records from the offset on, without control batches and aborted batches."""
        first = self.offset
        for batch in self:
            if self._aborted.shows(batch):
                yield from (record for record in batch if record.offset >= first)

    def _read(self) -> ReadResult:
        """Read at least one complete batch, or nothing at the end of the log."""
        while True:
            part = self._log.read(
                self.offset,
                self.buffer_size,
                isolation=self._isolation,
                at_least_one=False,
                segment=self._segment,
            )
            if not part.size or next(iter(read_batches(part.records, verify=False)), None) is not None:
                return part
            if self.buffer_size >= self._max_buffer_size:
                raise LimitExceeded(0, f"the batch at offset {self.offset}", None, self._max_buffer_size)
            self.buffer_size = min(2 * self.buffer_size, self._max_buffer_size)

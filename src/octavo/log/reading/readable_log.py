"""The reading side of a log. It is the same for logs that are open for writing and for watched ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from octavo.errors import FormatError, InvalidInput
from octavo.log.closing import ClosedByWith
from octavo.log.reading.log_reader import LogReader
from octavo.log.reading.read_view import ReadResult, indexed_aborts, read_view
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.log.view import Isolation, SegmentInfo, View, isolation_of

T = TypeVar("T")


class TimestampOffset(NamedTuple):
    """A record that was found by its timestamp."""

    offset: int
    timestamp_ms: int
    leader_epoch: int  # -1 if it has none


class ReadableLog(ClosedByWith):
    """A log to read from. Any thread may read at any time, while another thread changes the log."""

    @property
    @abstractmethod
    def _view(self) -> View:
        """The present view of the log."""

    @abstractmethod
    def close(self) -> None:
        """Close the files. Reads that have begun may finish."""

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self._view.start_offset

    @property
    def end_offset(self) -> int:
        """The offset of the next record that will be appended."""
        return self._view.end_offset

    @property
    def high_watermark(self) -> int:
        """The offset before which consumers may read."""
        return self._view.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset before which consumers of committed data may read: no transaction is open before it."""
        return self._view.last_stable_offset

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the first transaction that is open, or whose end is not visible yet; None if there is none."""
        view = self._view
        return None if view.first_unstable_offset < 0 else max(view.first_unstable_offset, view.start_offset)

    @property
    def generation(self) -> int:
        """A number that changes whenever a truncation has removed bytes."""
        return self._view.generation

    @property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """The segments as they are now, from the oldest to the active one."""
        view = self._view
        return tuple(
            SegmentInfo(segment.base_offset, view.segment_size(number), segment.path)
            for number, segment in enumerate(view.segments)
        )

    @property
    def size(self) -> int:
        """The number of bytes of all segments."""
        return sum(segment.size for segment in self._view.segments)

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: Isolation | str = Isolation.HIGH_WATERMARK,
        at_least_one: bool = True,
        whole_batches: bool = False,
        segment: int | None = None,
    ) -> ReadResult:
        """Read up to `max_bytes` of batches of one segment, from the batch that contains `offset` on.

        at_least_one: return the first batch complete, however large it is. Without this, any batch may be cut by
            `max_bytes`; with it, only later ones
        isolation: or Kafka's word for it, read_uncommitted or read_committed
        whole_batches: leave out a batch that would be cut, so that nothing is read twice if the next read begins at
            `ReadResult.next_offset`
        segment: the `ReadResult.segment` of the previous read, to go on in that segment as long as it has more. Without
            it, the read begins in the last segment that begins at or before `offset`, as in Kafka; this makes a
            difference only if segments overlap

        Raises `OffsetOutOfRange`, with the available range, and `FormatError` if the file is damaged.
        """
        if max_bytes < 0:
            raise InvalidInput(f"max_bytes cannot be {max_bytes}")
        seen = self._isolated(isolation)
        return self._in_view(
            lambda view: read_view(self, view, offset, max_bytes, seen, at_least_one, whole_batches, segment)
        )

    def _isolated(self, given: Isolation | str) -> Isolation:
        """Return the isolation that a caller means, once the view can be read with it. Raises `InvalidInput`."""
        return isolation_of(given)

    def _in_view(self, ask: Callable[[View], T]) -> T:
        """Call `ask` with the present view. If it fails and the log was truncated meanwhile, call it again."""
        while True:
            view = self._view
            try:
                return ask(view)
            except FormatError:
                if self._view.generation == view.generation:
                    raise

    def _aborted(self, view: View, number: int, offset: int, end: int) -> list[AbortedEntry]:
        """Return the aborted transactions for a read from `offset` to position `end` of the segment `number`."""
        return indexed_aborts(view, number, offset, end)

    def reader(
        self,
        offset: int | None = None,
        *,
        isolation: Isolation | str = Isolation.HIGH_WATERMARK,
        buffer_size: int = 64 << 10,
        max_buffer_size: int = 64 << 20,
    ) -> LogReader:
        """Return an iterator over batches or records, from `offset` or from the start of the log."""
        start = self.start_offset if offset is None else offset
        seen = self._isolated(isolation)
        return LogReader(self, start, isolation=seen, buffer_size=buffer_size, max_buffer_size=max_buffer_size)

    def offset_for_timestamp(
        self, timestamp_ms: int, *, isolation: Isolation | str = Isolation.HIGH_WATERMARK
    ) -> TimestampOffset | None:
        """Return the first record whose timestamp is `timestamp_ms` or larger.

        Returns None if there is none, or if it is not visible. As in Kafka, only the first segment with such a
        timestamp is searched.
        """
        seen = self._isolated(isolation)
        return self._in_view(lambda view: _find_timestamp(view, timestamp_ms, seen))

    def max_timestamp_offset(self, *, isolation: Isolation | str = Isolation.HIGH_WATERMARK) -> TimestampOffset | None:
        """Return the first record with the largest timestamp of the log; None if it is not visible yet."""
        seen = self._isolated(isolation)
        return self._in_view(lambda view: _find_largest_timestamp(view, seen))


def _find_timestamp(view: View, timestamp_ms: int, isolation: Isolation) -> TimestampOffset | None:
    for segment in view.segments:
        if segment.largest_timestamp_ms() >= timestamp_ms:
            return _visible(view, segment.find_timestamp(timestamp_ms, view.start_offset), isolation)
    return None


def _find_largest_timestamp(view: View, isolation: Isolation) -> TimestampOffset | None:
    newest = max(view.segments, key=lambda segment: segment.largest.timestamp_ms)
    return _visible(view, newest.find_largest_timestamp(), isolation)


def _visible(view: View, found: tuple[int, int, int] | None, isolation: Isolation) -> TimestampOffset | None:
    return None if found is None or found[0] >= view.bound(isolation) else TimestampOffset(*found)

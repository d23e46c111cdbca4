"""The reading side of a log, the same for one that is open to be written and for one that is only watched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from octavo.errors import FormatError, InvalidInput
from octavo.log.closing import keeping
from octavo.log.reading import Isolation, LogReader, ReadResult, View, indexed_aborts, read_view
from octavo.log.segment import Segment
from octavo.log.txn_index import AbortedEntry

T = TypeVar("T")


class TimestampOffset(NamedTuple):
    """A record that was looked for by its timestamp."""

    offset: int
    timestamp_ms: int
    leader_epoch: int  # -1 where it has none


class ReadableLog(ABC):
    """What can be asked of a log at any time by any thread, while another one changes it."""

    _view: View

    @abstractmethod
    def close(self) -> None:
        """Close the files. Who has begun to read may finish."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it. Where the body has raised, what fails now becomes a note of that error."""
        with keeping(error):
            self.close()

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
        """The offset behind the last that consumers may see."""
        return self._view.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset behind the last that consumers of committed data may see: no transaction before it is open."""
        return self._view.last_stable_offset

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the first transaction begins that is not decided, or whose end consumers may not see; None for none."""
        view = self._view
        return None if view.first_unstable_offset < 0 else max(view.first_unstable_offset, view.start_offset)

    @property
    def generation(self) -> int:
        """Another number whenever a truncation has taken bytes away."""
        return self._view.generation

    @property
    def segments(self) -> tuple[Segment, ...]:
        """From the oldest to the active one."""
        return self._view.segments

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self._view.segments)

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        at_least_one: bool = True,
        segment: int | None = None,
    ) -> ReadResult:
        """Batches from the one that holds `offset` on, of one segment, up to `max_bytes`.

        `at_least_one`: the first batch comes whole, however large. Else, and behind it, the last may be cut.
        `segment`: the `ReadResult.segment` of the read before, to go on in that one as long as it has more. Without
        it, as in Kafka, the segment is the last that begins at or before `offset`; this makes a difference only where
        segments overlap. Raises `OffsetOutOfRange`, with the range that there is; `FormatError` where the file is
        damaged.
        """
        if max_bytes < 0:
            raise InvalidInput(f"max_bytes cannot be {max_bytes}")
        return self._in_view(lambda view: read_view(self, view, offset, max_bytes, isolation, at_least_one, segment))

    def _in_view(self, ask: Callable[[View], T]) -> T:
        """What the log as it is at one moment answers; asked again where a truncation came between."""
        while True:
            view = self._view
            try:
                return ask(view)
            except FormatError:
                if self._view.generation == view.generation:
                    raise

    def _aborted(self, view: View, number: int, offset: int, end: int) -> list[AbortedEntry]:
        """What was aborted of a read from `offset` on that ends at the position `end` of the segment `number`."""
        return indexed_aborts(view, number, offset, end)

    def reader(
        self,
        offset: int | None = None,
        *,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        buffer_size: int = 64 << 10,
        max_buffer_size: int = 64 << 20,
    ) -> LogReader:
        """Batches and records one after the other, from `offset` or the start on."""
        start = self.start_offset if offset is None else offset
        return LogReader(self, start, isolation=isolation, buffer_size=buffer_size, max_buffer_size=max_buffer_size)

    def offset_for_timestamp(
        self, timestamp_ms: int, *, isolation: Isolation = Isolation.HIGH_WATERMARK
    ) -> TimestampOffset | None:
        """The first record whose timestamp is `timestamp_ms` or larger; None where there is none, or it is not visible.

        As in Kafka, only the first segment is searched that has so large a timestamp.
        """
        return self._in_view(lambda view: _find_timestamp(view, timestamp_ms, isolation))

    def max_timestamp_offset(self, *, isolation: Isolation = Isolation.HIGH_WATERMARK) -> TimestampOffset | None:
        """The first record that has the largest timestamp of the log; None where consumers may not see one yet."""
        return self._in_view(lambda view: _find_largest_timestamp(view, isolation))


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

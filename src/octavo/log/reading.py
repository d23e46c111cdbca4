"""What readers of a log see: one moment of it, what a read gives back, and a reader that goes on by itself.

Readers take no lock. They look at a `View`, which the writer replaces as a whole when something has changed, and read
files at positions. A segment that is deleted meanwhile stays readable to who has it in view. Only a truncation can pull
bytes from under a reader, to write others in their place: it changes the view's generation, by which the reader
notices, and reads again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import LimitExceeded, OffsetOutOfRange
from octavo.log.committed import AbortedRanges, AbortedTransaction
from octavo.log.segment import Segment
from octavo.log.small_file import CorruptFile
from octavo.log.storage import File
from octavo.log.txn_index import AbortedEntry
from octavo.log.walk import check
from octavo.records import Batch, Record, read_batches
from octavo.records.layout import NO_OFFSET
from octavo.records.order import RULE, base_offset_at, is_misplaced

if TYPE_CHECKING:
    from octavo.log.readable import ReadableLog


class Isolation(Enum):
    """Up to where a reader may see."""

    LOG_END = "log end"  # everything: replicas
    HIGH_WATERMARK = "high watermark"  # what is on enough replicas: consumers
    READ_COMMITTED = "read committed"  # of that, up to the first transaction that is not decided


class View(NamedTuple):
    """A log at one moment. The segments may have grown since; `size` says how far the last of them goes here."""

    segments: tuple[Segment, ...]
    bases: tuple[int, ...]
    size: int
    start_offset: int
    end_offset: int
    high_watermark: int
    generation: int  # changes when bytes are taken away that somebody may be reading
    first_unstable_offset: int = NO_OFFSET  # of the first transaction that is not decided, -1 where all are

    @property
    def last_stable_offset(self) -> int:
        """The offset behind the last that is decided, and may be seen."""
        if self.first_unstable_offset < 0:
            return self.high_watermark
        return min(max(self.first_unstable_offset, self.start_offset), self.high_watermark)

    def bound(self, isolation: Isolation) -> int:
        """The offset behind the last that may be seen."""
        if isolation is Isolation.HIGH_WATERMARK:
            return self.high_watermark
        return self.end_offset if isolation is Isolation.LOG_END else self.last_stable_offset

    def segment_size(self, number: int) -> int:
        """How far the segment of that number goes."""
        return self.size if number == len(self.segments) - 1 else self.segments[number].size


class FileSlice(NamedTuple):
    """Bytes of an open file, for `sendfile`. They stay readable as long as this is held."""

    file: File
    position: int
    size: int

    @property
    def descriptor(self) -> int:
        """Of the file."""
        return self.file.descriptor


class ReadResult:
    """What a read found: whole batches from the one that holds the offset on, the last of them perhaps cut."""

    __slots__ = (
        "_again",
        "_generation",
        "_records",
        "aborted",
        "file_slice",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "segment",
    )

    def __init__(
        self,
        view: View,
        file_slice: FileSlice | None,
        again: _Again | None,
        aborted: list[AbortedEntry] | None = None,
        segment: int | None = None,
    ) -> None:
        self.segment: Final = segment  # the base offset of the segment that the records are from
        self.file_slice: Final = file_slice  # None where there is nothing
        self.high_watermark: Final = view.high_watermark
        self.last_stable_offset: Final = view.last_stable_offset
        self.log_start_offset: Final = view.start_offset
        self.aborted = aborted  # by what has to be left out; None unless only committed data were asked for
        self._generation = view.generation
        self._again = again
        self._records: bytes | None = None

    @property
    def size(self) -> int:
        """Of the records."""
        return 0 if self.file_slice is None else self.file_slice.size

    @property
    def aborted_transactions(self) -> list[AbortedTransaction] | None:
        """What a fetch tells a consumer to leave out; None unless only committed data were asked for."""
        if self.aborted is None:
            return None
        return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in self.aborted]

    @property
    def aborted_ranges(self) -> AbortedRanges:
        """By which to tell what is aborted among the batches."""
        return AbortedRanges(entry[:3] for entry in self.aborted or ())

    @property
    def records(self) -> bytes:
        """The bytes; read when first asked for. Raises `OffsetOutOfRange` where they were truncated away meanwhile.

        Where others are in their place, `aborted` is of these from then on: ask for it afterwards.
        """
        if self._records is None:
            self._records = self._read()
        return self._records

    def _read(self) -> bytes:
        if self.file_slice is None or self._again is None:
            return b""
        file, position, size = self.file_slice
        data = file.read_at(size, position)
        if self._again.log.generation == self._generation:
            return data
        again = self._again.read()
        records = again.records
        self.aborted = again.aborted  # other data have others
        return records


class _Again(NamedTuple):
    """A read, to be done anew."""

    log: ReadableLog
    offset: int
    max_bytes: int
    isolation: Isolation
    at_least_one: bool
    segment: int | None

    def read(self) -> ReadResult:
        return self.log.read(
            self.offset,
            self.max_bytes,
            isolation=self.isolation,
            at_least_one=self.at_least_one,
            segment=self.segment,
        )


def read_view(
    log: ReadableLog,
    view: View,
    offset: int,
    max_bytes: int,
    isolation: Isolation,
    at_least_one: bool,
    segment: int | None,
) -> ReadResult:
    """Find what `Log.read` promises, in one moment of the log."""
    bound = view.bound(isolation)
    if not view.start_offset <= offset <= view.end_offset:
        raise OffsetOutOfRange(offset, view.start_offset, view.end_offset)
    nothing: list[AbortedEntry] | None = [] if isolation is Isolation.READ_COMMITTED else None
    if offset >= bound:
        return ReadResult(view, None, None, nothing)
    for at in _candidates(view, offset, segment):
        candidate = view.segments[at]
        end = view.segment_size(at)
        damaged = None
        if bound < view.end_offset:
            end, damaged = _end_before(view, at, end, bound)
        found = candidate.find(offset, end)
        if found is None:
            if damaged is not None:
                raise damaged
            continue
        if found.base_offset >= view.end_offset:
            raise CorruptFile(candidate.path, found.position, RULE)
        size = max(max_bytes, found.size) if at_least_one else max_bytes
        size = min(size, end - found.position)
        if size <= 0:
            break
        again = _Again(log, offset, max_bytes, isolation, at_least_one, segment)
        aborted = None if nothing is None else log._aborted(view, at, offset, found.position + size)
        file_slice = FileSlice(candidate.file, found.position, size)
        return ReadResult(view, file_slice, again, aborted, candidate.base_offset)
    return ReadResult(view, None, None, nothing)


def _candidates(view: View, offset: int, segment: int | None) -> Iterable[int]:
    """The numbers of the segments in which to look for an offset, in this order; `segment`: see `Log.read`."""
    first = max(0, bisect_right(view.bases, offset) - 1)
    candidates = range(first, len(view.bases))
    if segment is None:
        return candidates
    last = bisect_left(view.bases, segment)
    return (last, *candidates) if last < first and view.bases[last] == segment else candidates


def indexed_aborts(view: View, number: int, offset: int, end: int) -> list[AbortedEntry]:
    """The aborted transactions, by the indexes, of a read from `offset` on that ends at `end` in that segment."""
    bound = abort_bound(view, number, end)
    found: list[AbortedEntry] = []
    for segment in view.segments[number:]:
        if segment.txn_index.collect(offset, bound, found):
            break
    return found


def abort_bound(view: View, number: int, end: int) -> int:
    """An offset behind what is before the position `end` of that segment: the next in the index, as Kafka has it."""
    segment = view.segments[number]
    behind = segment.offset_index.behind(end)
    if behind is not None and segment.has_batch_at(behind):  # or something that was aborted might be missed
        return behind.offset
    return view.bases[number + 1] if number + 1 < len(view.bases) else view.end_offset


def _end_before(view: View, number: int, end: int, bound: int) -> tuple[int, CorruptFile | None]:
    """How far a segment may be read so that nothing at or behind `bound` is; and the damage that it ends at, if any."""
    if view.bases[number] >= bound:
        return 0, None
    if number + 1 < len(view.bases) and view.bases[number + 1] <= bound:
        return end, None
    segment = view.segments[number]
    try:
        behind = segment.find(bound, end)
        if behind is not None and behind.base_offset < bound:
            check(segment.file, behind)  # it is left out because its header says that it reaches over the bound
    except CorruptFile as damaged:
        return damaged.position, damaged
    return end if behind is None else behind.position, None


class LogReader(Iterator[Batch]):
    """Batches from an offset on, to where the log ends now; iterating again later goes on from there.

    Reads as much as its buffer holds. For a batch that does not fit the buffer is doubled, up to its maximum. Batches
    come as they are; with `READ_COMMITTED`, `records` leaves out what was aborted. Each segment is read to its end
    before the next, as `portions` has it, whatever the size of the buffer.
    """

    def __init__(
        self, log: ReadableLog, offset: int, *, isolation: Isolation, buffer_size: int, max_buffer_size: int
    ) -> None:
        self.offset = offset  # of the next record
        self.buffer_size = buffer_size
        self._log = log
        self._isolation = isolation
        self._max_buffer_size = max_buffer_size
        self._segment: int | None = None  # that was read last
        self._data = b""
        self._batches: Iterator[Batch] = iter(())
        self._aborted = AbortedRanges()

    def __next__(self) -> Batch:
        """Raises `OffsetOutOfRange`, `FormatError`, and `LimitExceeded` for a batch larger than the largest buffer."""
        while True:
            for batch in self._batches:
                if batch.position and not self._is_next(batch):
                    break  # the next read begins with it, and finds out what is wrong
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
        """Whether a batch is known to be in its place: right behind the last, or behind a gap that can be believed."""
        base_offset = batch.last_offset if batch.count is None else batch.base_offset
        if base_offset == self.offset:
            return True
        behind = base_offset_at(self._data, batch.position + batch.size)
        return behind is not None and not is_misplaced(base_offset, batch.last_offset, self.offset - 1, behind)

    def records(self) -> Iterator[Record]:
        """The records of the batches, from the offset on; without those of control batches, and aborted ones."""
        first = self.offset
        for batch in self:
            if self._aborted.shows(batch):
                yield from (record for record in batch if record.offset >= first)

    def _read(self) -> ReadResult:
        """At least one whole batch; nothing at the end."""
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

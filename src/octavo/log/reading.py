"""Reading a log: a snapshot of it (`View`), the result of one read (`ReadResult`), and a `LogReader` that goes on.

Readers take no lock. They look at a `View`, which the writer replaces as a whole when something has changed, and read
files at positions. A segment that is deleted meanwhile stays readable for everybody who has a view with it. Only a
truncation can remove bytes that somebody is reading, and write others in their place. It changes the view's generation:
by that the reader notices, and reads again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import LimitExceeded, OffsetOutOfRange
from octavo.log.files.corrupt_file import CorruptFile
from octavo.log.producer_state.aborted import AbortedRanges, AbortedTransaction
from octavo.log.segment.batch_walk import check
from octavo.log.segment.segment import Segment
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.log.storage import File
from octavo.records import Batch, Record, read_batches
from octavo.records.layout import NO_OFFSET
from octavo.records.offset_order import RULE, base_offset_at, is_misplaced

if TYPE_CHECKING:
    from octavo.log.readable_log import ReadableLog


class Isolation(Enum):
    """How far a reader may read."""

    LOG_END = "log end"  # everything; for replicas
    HIGH_WATERMARK = "high watermark"  # what is on enough replicas; for consumers
    READ_COMMITTED = "read committed"  # of that, what is before the first open transaction


class View(NamedTuple):
    """A snapshot of a log. The segments may have grown since: `size` is the end of the last one in this view."""

    segments: tuple[Segment, ...]
    bases: tuple[int, ...]
    size: int
    start_offset: int
    end_offset: int
    high_watermark: int
    generation: int  # changes when bytes are removed that somebody may be reading
    first_unstable_offset: int = NO_OFFSET  # of the first undecided transaction; -1 if there is none

    @property
    def last_stable_offset(self) -> int:
        """The end of what consumers of committed data may read: before it, all transactions are decided."""
        if self.first_unstable_offset < 0:
            return self.high_watermark
        return min(max(self.first_unstable_offset, self.start_offset), self.high_watermark)

    def bound(self, isolation: Isolation) -> int:
        """Return the offset before which a reader of this isolation may read."""
        if isolation is Isolation.HIGH_WATERMARK:
            return self.high_watermark
        return self.end_offset if isolation is Isolation.LOG_END else self.last_stable_offset

    def segment_size(self, number: int) -> int:
        """Return the size of the segment of that number in this view."""
        return self.size if number == len(self.segments) - 1 else self.segments[number].size


class FileSlice(NamedTuple):
    """A range of bytes of an open file, for `sendfile`. They stay readable as long as this object is held."""

    file: File
    position: int
    size: int

    @property
    def descriptor(self) -> int:
        """The descriptor of the file."""
        return self.file.descriptor


class ReadResult:
    """The result of a read: batches, from the one that contains the offset on. The last of them may be cut."""

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
        self.file_slice: Final = file_slice  # None if there is nothing to read
        self.high_watermark: Final = view.high_watermark
        self.last_stable_offset: Final = view.last_stable_offset
        self.log_start_offset: Final = view.start_offset
        self.aborted = aborted  # transactions to leave out; None unless only committed data were requested
        self._generation = view.generation
        self._again = again
        self._records: bytes | None = None

    @property
    def size(self) -> int:
        """The number of bytes of the records."""
        return 0 if self.file_slice is None else self.file_slice.size

    @property
    def aborted_transactions(self) -> list[AbortedTransaction] | None:
        """What a fetch tells a consumer to leave out; None unless only committed data were requested."""
        if self.aborted is None:
            return None
        return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in self.aborted]

    @property
    def aborted_ranges(self) -> AbortedRanges:
        """The ranges by which aborted batches are recognized."""
        return AbortedRanges(entry[:3] for entry in self.aborted or ())

    @property
    def records(self) -> bytes:
        """The bytes, read on first access. Raises `OffsetOutOfRange` if they were truncated away meanwhile.

        If other records have taken their place, `aborted` changes to match these. So ask for `aborted` afterwards.
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
        self.aborted = again.aborted  # other data have other aborted transactions
        return records


class _Again(NamedTuple):
    """The arguments of a read, to repeat it."""

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
    """Do what `Log.read` promises, for one view of the log."""
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
    """Return the numbers of the segments in which to look for an offset, in order. `segment`: see `Log.read`."""
    first = max(0, bisect_right(view.bases, offset) - 1)
    candidates = range(first, len(view.bases))
    if segment is None:
        return candidates
    last = bisect_left(view.bases, segment)
    return (last, *candidates) if last < first and view.bases[last] == segment else candidates


def indexed_aborts(view: View, number: int, offset: int, end: int) -> list[AbortedEntry]:
    """Return the aborted transactions for a read from `offset` to position `end` of a segment, from the indexes."""
    bound = abort_bound(view, number, end)
    found: list[AbortedEntry] = []
    for segment in view.segments[number:]:
        if segment.txn_index.collect(offset, bound, found):
            break
    return found


def abort_bound(view: View, number: int, end: int) -> int:
    """Return an offset above all that come before position `end` of a segment: the next in the index, as in Kafka."""
    segment = view.segments[number]
    behind = segment.offset_index.behind(end)
    if behind is not None and segment.has_batch_at(behind):  # otherwise an aborted transaction might be missed
        return behind.offset
    return view.bases[number + 1] if number + 1 < len(view.bases) else view.end_offset


def _end_before(view: View, number: int, end: int, bound: int) -> tuple[int, CorruptFile | None]:
    """Return the position up to which a segment has only offsets below `bound`, and the damage found there, if any."""
    if view.bases[number] >= bound:
        return 0, None
    if number + 1 < len(view.bases) and view.bases[number + 1] <= bound:
        return end, None
    segment = view.segments[number]
    try:
        behind = segment.find(bound, end)
        if behind is not None and behind.base_offset < bound:
            check(segment.file, behind)  # it is left out only because its header says that it crosses the bound
    except CorruptFile as damaged:
        return damaged.position, damaged
    return end if behind is None else behind.position, None


class LogReader(Iterator[Batch]):
    """Iterate over batches from an offset to the present end of the log. Iterating again later goes on from there.

    Each read fills at most the buffer. If a batch does not fit, the buffer is doubled, up to its maximum. Batches are
    returned as they are stored; with `READ_COMMITTED`, `records` leaves out aborted ones. Each segment is read to its
    end before the next, as described in `portions`, whatever the size of the buffer.
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

"""Read a log once: find the batches in a `View`, and return a `ReadResult`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import CorruptFile, FormatError, OffsetOutOfRange
from octavo.log.producer_state.aborted import AbortedRanges, AbortedTransaction
from octavo.log.segment.batch_walk import Entry, check
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.log.storage import File
from octavo.log.view import Isolation, View
from octavo.records import read_batches
from octavo.records.layout import NO_OFFSET
from octavo.records.offset_order import RULE

if TYPE_CHECKING:
    from octavo.log.reading.readable_log import ReadableLog


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
    """The result of a read: the batch that contains the offset, and batches after it.

    The last one may be cut, unless only whole batches were requested.
    """

    __slots__ = (
        "_again",
        "_find_last",
        "_generation",
        "_next_offset",
        "_records",
        "_requested",
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
        *,
        next_offset: int,
        find_last: Callable[[], Entry] | None = None,
    ) -> None:
        """`find_last` finds the last whole batch, if `next_offset` is that of the first one."""
        self._next_offset = next_offset
        self._requested: Final = NO_OFFSET if again is None else again.offset
        self._find_last = find_last
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
    def is_first_cut(self) -> bool:
        """Whether not even the first batch is whole."""
        return self.file_slice is not None and self._find_last is None and self._next_offset == self._requested

    @property
    def next_offset(self) -> int:
        """The offset after the last whole batch of the records, to go on from there. Without one, the requested offset.

        It is found in the index and a few headers. Like `aborted`, it changes if `records` finds other records, so use
        it after `records`. A cut batch counts for nothing, nor does a batch after damage.
        """
        if self._find_last is not None:
            last_offset = self._find_last().last_offset
            if self._again is not None and self._again.log.generation != self._generation:
                last_offset = self._last_in(self.records)  # the headers may have been others
            if self._find_last is not None:  # otherwise `records` has found other records, and their next offset
                self._next_offset = max(self._next_offset, last_offset + 1)
                self._find_last = None
        return self._next_offset

    def _last_in(self, records: bytes) -> int:
        last_offset = NO_OFFSET
        with suppress(FormatError):
            for batch in read_batches(records, verify=False):
                last_offset = batch.last_offset
        return last_offset

    @property
    def aborted_transactions(self) -> list[AbortedTransaction] | None:
        """The aborted transactions, as in a fetch response; None unless only committed data were requested."""
        if self.aborted is None:
            return None
        return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in self.aborted]

    @property
    def aborted_ranges(self) -> AbortedRanges:
        """The offset ranges of the aborted transactions, to recognize aborted batches."""
        return AbortedRanges(entry[:3] for entry in self.aborted or ())

    @property
    def records(self) -> bytes:
        """The bytes of the batches, read on first access. Raises `OffsetOutOfRange` if they were truncated meanwhile.

        If other records have taken their place, `aborted` changes to match these. So use `aborted` after `records`.
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
        self._next_offset, self._find_last = again.next_offset, None
        return records


class _Again(NamedTuple):
    """The arguments of a read, to repeat it."""

    log: ReadableLog
    offset: int
    max_bytes: int
    isolation: Isolation
    at_least_one: bool
    whole_batches: bool
    segment: int | None

    def read(self) -> ReadResult:
        return self.log.read(
            self.offset,
            self.max_bytes,
            isolation=self.isolation,
            at_least_one=self.at_least_one,
            whole_batches=self.whole_batches,
            segment=self.segment,
        )


def read_view(
    log: ReadableLog,
    view: View,
    offset: int,
    max_bytes: int,
    isolation: Isolation,
    at_least_one: bool,
    whole_batches: bool,
    segment: int | None,
) -> ReadResult:
    """Read as `Log.read` does, in one view of the log."""
    bound = view.bound(isolation)
    if not view.start_offset <= offset <= view.end_offset:
        raise OffsetOutOfRange(offset, view.start_offset, view.end_offset)
    nothing: list[AbortedEntry] | None = [] if isolation is Isolation.READ_COMMITTED else None
    if offset >= bound:
        return ReadResult(view, None, None, nothing, next_offset=offset)
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
        if size <= 0 or (whole_batches and size < found.size):
            break
        next_offset, find_last = offset, None
        if size >= found.size:
            next_offset = max(offset, found.last_offset + 1)
            if size > found.size:
                find_last = partial(candidate.find_last, found, found.position + size, end)
        if whole_batches and find_last is not None:
            last, find_last = find_last(), None
            next_offset = max(next_offset, last.last_offset + 1)
            size = last.end - found.position
        again = _Again(log, offset, max_bytes, isolation, at_least_one, whole_batches, segment)
        aborted = None if nothing is None else log._aborted(view, at, offset, found.position + size)
        file_slice = FileSlice(candidate.file, found.position, size)
        return ReadResult(
            view, file_slice, again, aborted, candidate.base_offset, next_offset=next_offset, find_last=find_last
        )
    return ReadResult(view, None, None, nothing, next_offset=offset)


def read_appended(log: ReadableLog, before: View, view: View, offset: int, max_bytes: int) -> ReadResult | None:
    """Read all that was appended between two views, if the read begins at the end of the first; without a search.

    None if that cannot be told from the views, or is more than `max_bytes`: then the batches have to be found.
    """
    segment, size = view.segments[-1], view.size - before.size
    if (
        offset != before.end_offset
        or segment is not before.segments[-1]
        or view.generation != before.generation
        or not 0 < size <= max_bytes
        or offset < view.start_offset
    ):
        return None
    again = _Again(log, offset, max_bytes, Isolation.LOG_END, True, False, None)
    file_slice = FileSlice(segment.file, before.size, size)
    return ReadResult(view, file_slice, again, None, segment.base_offset, next_offset=view.end_offset)


def _candidates(view: View, offset: int, segment: int | None) -> Iterable[int]:
    """Return the numbers of the segments in which to look for an offset, in order. `segment`: see `Log.read`."""
    first = view.segment_at(offset)
    candidates = range(first, len(view.bases))
    if segment is None:
        return candidates
    last = view.segment_at(segment)
    return (last, *candidates) if last < first and view.bases[last] == segment else candidates


def indexed_aborts(view: View, number: int, offset: int, end: int) -> list[AbortedEntry]:
    """Return the indexed aborted transactions for a read from `offset` to position `end` of segment `number`."""
    bound = abort_bound(view, number, end)
    found: list[AbortedEntry] = []
    for segment in view.segments[number:]:
        if segment.txn_index.collect(offset, bound, found):
            break
    return found


def abort_bound(view: View, number: int, end: int) -> int:
    """Return a bound above all offsets before position `end` of a segment: the next in the index, as in Kafka."""
    segment = view.segments[number]
    behind = segment.offset_index.behind(end)
    if behind is not None and segment.has_batch_at(behind):  # otherwise an aborted transaction might be missed
        return behind.offset
    return view.segment_end(number)


def _end_before(view: View, number: int, end: int, bound: int) -> tuple[int, CorruptFile | None]:
    """Return the position up to which a segment has only offsets below `bound`, and the damage found there, if any."""
    if view.bases[number] >= bound:
        return 0, None
    if view.segment_end(number) <= bound:
        return end, None
    segment = view.segments[number]
    try:
        behind = segment.find(bound, end)
        if behind is not None and behind.base_offset < bound:
            check(segment.file, behind)  # it is left out only because its header says that it crosses the bound
    except CorruptFile as damaged:
        return damaged.position, damaged
    return end if behind is None else behind.position, None

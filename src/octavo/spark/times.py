"""Find the offset for a timestamp, where a query begins or ends at one.

As in Kafka's ListOffsets, one segment answers: the first that has a timestamp at least as late. The indexes lead to it.
Where damage is on the way they do not, and that segment is searched batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from octavo.errors import CorruptFile, FormatError, Truncated
from octavo.log.segment.batch_walk import Entry, walk
from octavo.log.segment.damage import BatchSearch
from octavo.log.segment.segment import Segment
from octavo.log.storage import File
from octavo.records import read_batches


def offset_at(segments: Iterable[Segment], timestamp_ms: int, start: int, *, skips: bool) -> int | None:
    """Find the first offset, from `start` on, with this timestamp or a later one.

    Raises `CorruptFile` where damage is on the way, unless `skips` is set.
    """
    for segment in segments:
        with suppress(FormatError):
            if segment.largest_timestamp_ms() < timestamp_ms and _is_whole(segment):
                continue
            found = segment.find_timestamp(timestamp_ms, start)
            if found is not None or _leads_to_its_end(segment):
                return None if found is None else found[0]
        offset = _search(segment, timestamp_ms, start, skips=skips)
        if offset is not None:
            return offset
    return None


def largest_timestamp_ms(segments: Sequence[Segment], *, skips: bool) -> int:
    """Return the latest timestamp of all; negative where there is none. Raises `CorruptFile` as `offset_at` does."""
    return max((_largest(segment, skips=skips) for segment in segments), default=-1)


def _largest(segment: Segment, *, skips: bool) -> int:
    try:
        return segment.largest.timestamp_ms
    except CorruptFile:
        if not skips:
            raise
        return segment.time_index.last.timestamp_ms


def _is_whole(segment: Segment) -> bool:
    """Whether the largest timestamp covers all batches of the segment.

    It does if the time index ends with the same, or if the batches go on to the end of the file.
    """
    return segment.time_index.last == segment.largest or segment.sound_end_offset() is not None


def _leads_to_its_end(segment: Segment) -> bool:
    """Whether the batches follow one another without a gap up to the end of the segment."""
    position = 0
    for entry in walk(segment.file, 0, segment.size):
        position = entry.end
    return position == segment.size


def _search(segment: Segment, timestamp_ms: int, start: int, *, skips: bool) -> int | None:
    """Find the offset without an index, batch by batch, with checksums; pass over damage, or raise at it.

    Without checksums, a wrong length would lead past other batches, and to bytes that only look like a batch.
    """
    file, size = segment.file, segment.size
    search = BatchSearch()
    position = 0
    while position < size:
        try:
            for entry in walk(file, position, size):
                found = _first_in(file, entry, timestamp_ms, start)
                if found is not None:
                    return found
                position = entry.end
            if position < size:
                raise Truncated(position, "the bytes end inside a batch")
        except FormatError as error:
            if not skips:
                raise CorruptFile(file.path, position, error.rule) from None
            position = search.next_batch(file, position, size)
    return None


def _first_in(file: File, entry: Entry, timestamp_ms: int, start: int) -> int | None:
    for batch in read_batches(file.read_at(entry.size, entry.position)):
        if entry.max_timestamp_ms >= timestamp_ms and entry.last_offset >= start:
            for record in batch:
                if record.timestamp_ms >= timestamp_ms and record.offset >= start:
                    return record.offset
    return None

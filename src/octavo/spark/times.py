"""Find the offset for a timestamp at which a query begins or ends.

As in Kafka's ListOffsets, the first segment with this timestamp or a later one is searched, with the help of the
indexes. If damage makes the indexes useless, that segment is searched batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from octavo.errors import CorruptFile, FormatError
from octavo.log.segment.batch_walk import walk
from octavo.log.segment.damage import pass_over, refuse
from octavo.log.segment.find import find_timestamp
from octavo.log.segment.segment import Segment


def offset_at(segments: Iterable[Segment], timestamp_ms: int, start: int, *, skips: bool) -> int | None:
    """Find the first offset, from `start` on, with this timestamp or a later one.

    Raises `CorruptFile` if it finds damage during the search, unless `skips` is set.
    """
    for segment in segments:
        with suppress(FormatError):
            if segment.largest_timestamp_ms() < timestamp_ms and _is_whole(segment):
                continue
            found = segment.find_timestamp(timestamp_ms, start)
            if found is not None or _leads_to_its_end(segment):
                return None if found is None else found[0]
        damage = pass_over() if skips else refuse
        found = find_timestamp(segment.file, 0, segment.size, timestamp_ms, start, damage)
        if found is not None:
            return found[0]
    return None


def largest_timestamp_ms(segments: Sequence[Segment], *, skips: bool) -> int:
    """Return the largest timestamp in these segments, or a negative number if there is none.

    Raises `CorruptFile` for damage, unless `skips` is set.
    """
    return max((_largest(segment, skips=skips) for segment in segments), default=-1)


def _largest(segment: Segment, *, skips: bool) -> int:
    try:
        return segment.largest.timestamp_ms
    except CorruptFile:
        if not skips:
            raise
        return segment.time_index.last.timestamp_ms


def _is_whole(segment: Segment) -> bool:
    """Whether the segment's largest timestamp takes all its batches into account.

    It does if the last entry of the time index is the same, or if batches follow one another up to the end of the file.
    """
    return segment.time_index.last == segment.largest or segment.sound_end_offset() is not None


def _leads_to_its_end(segment: Segment) -> bool:
    """Whether the batches follow one another without a gap up to the end of the segment."""
    position = 0
    for entry in walk(segment.file, 0, segment.size):
        position = entry.end
    return position == segment.size

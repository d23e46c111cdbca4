"""Decide which offsets a reader takes from which segment.

Segments follow each other, unless a directory was copied while it was compacted, or was put together by hand. Then two
segments may have the same offsets. Kafka reads from the last segment that begins at or before the requested offset, and
a consumer goes on after the last offset that it has received. So a reader that reads each segment to its end gets all
of the first segment, and of the next one only what comes after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from octavo.errors import FormatError
from octavo.log.segment.batch_walk import walk
from octavo.log.segment.segment import Segment
from octavo.log.view import View
from octavo.records import read_batches

_SMALL: Final = 4096  # bytes: reading so small a file is faster than opening its index


class Portion(NamedTuple):
    """The offsets that a reader takes from one segment."""

    number: int  # number of the segment in the view
    first: int
    end: int
    is_cut: bool  # whether the segment goes on after `end`


def offset_after(view: View, number: int) -> int:
    """Return the offset at which a reader goes on after it has read a segment to its end.

    It is the base offset of the next segment, unless this segment is known to reach further.
    """
    end = view.segment_end(number)
    if number + 1 == len(view.bases):
        return end
    return max(end, _checked_end_offset(view.segments[number], end))


def portions(
    view: View, first: int, end: int, offset_after: Callable[[View, int], int] = offset_after
) -> Iterator[Portion]:
    """Yield what to read from each segment for the offsets from `first` to before `end`, in the order of reading."""
    number = view.segment_at(first)
    while first < end and number < len(view.bases) and view.bases[number] < end:
        behind = view.segment_end(number)
        if behind < end:
            behind = offset_after(view, number)
        stop = min(end, behind)
        yield Portion(number, max(first, view.bases[number]), stop, stop < behind)
        first = max(first, stop)
        number = max(number + 1, view.segment_at(first))


def _checked_end_offset(segment: Segment, next_base: int) -> int:
    """Return the offset after the last batch; the segment's base offset if that batch may be damaged.

    A batch that reaches beyond `next_base` makes readers skip others, so its checksum has to be right.
    """
    try:
        end_offset = _end_offset(segment)
        if end_offset <= next_base:
            return end_offset
        found = segment.find(end_offset - 1, segment.size)
        if found is not None:
            batch = next(read_batches(segment.file.read_at(found.size, found.position)), None)
            if batch is not None and batch.last_offset + 1 == end_offset:
                return end_offset
    except FormatError:
        pass  # a reader of this segment gets the error
    return segment.base_offset


def _end_offset(segment: Segment) -> int:
    if segment.size > _SMALL:
        return segment.end_offset()[0]
    end_offset = segment.base_offset
    for entry in walk(segment.file, 0, segment.size):
        end_offset = entry.last_offset + 1
    return end_offset

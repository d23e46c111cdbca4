"""Which segments become one: as many as fit, so that compaction does not leave ever smaller ones."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.log.config import LogConfig
from octavo.log.segment import Segment
from octavo.records.layout import MAX_INT32


def group_segments(
    segments: Sequence[Segment], config: LogConfig, first_uncleanable_offset: int
) -> list[list[Segment]]:
    """The groups, in order (Kafka's `groupSegmentsBySize`).

    A group's data stay within the size of a segment, its indexes each within theirs, and its offsets within what an
    index can tell. Where a segment ends is known from where the next one begins; the last one's end is the bound.
    """
    groups: list[list[Segment]] = []
    size = offset_size = time_size = 0
    for number, segment in enumerate(segments, 1):
        end = segments[number].base_offset if number < len(segments) else first_uncleanable_offset
        size += segment.size
        offset_size += segment.offset_index.size()
        time_size += segment.time_index.size()
        if (
            groups
            and size <= config.segment_bytes
            and offset_size <= config.segment_index_bytes
            and time_size <= config.segment_index_bytes
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= MAX_INT32)
        ):
            groups[-1].append(segment)
            continue
        groups.append([segment])
        size = segment.size
        offset_size = segment.offset_index.size()
        time_size = segment.time_index.size()
    return groups

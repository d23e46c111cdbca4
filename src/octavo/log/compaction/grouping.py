"""Choose the segments to merge into one: as many as fit, so that compaction does not leave ever smaller segments."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.log.config.log_config import LogConfig
from octavo.log.segment.segment import Segment
from octavo.log.view import segment_ends
from octavo.records.layout import MAX_INT32


def group_segments(
    segments: Sequence[Segment], config: LogConfig, first_uncleanable_offset: int
) -> list[list[Segment]]:
    """Group adjacent segments to be merged, in order (Kafka's `groupSegmentsBySize`).

    A group's data fit into one segment, its indexes fit into the index limits, and its offsets fit into an index
    entry. A segment ends where the next one begins; the last one ends at `first_uncleanable_offset`.
    """
    groups: list[list[Segment]] = []
    size = offset_size = time_size = 0
    for segment, end in zip(segments, segment_ends(segments, first_uncleanable_offset), strict=True):
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

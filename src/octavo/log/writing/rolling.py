"""Decide when a log begins a new segment: `RollLimits`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from octavo.log.config.log_config import LogConfig
from octavo.log.segment.batch_span import BatchSpan
from octavo.log.segment.index import OffsetIndex, TimeIndex
from octavo.log.segment.segment import Segment

_MAX_TIMESTAMP: Final[Callable[[BatchSpan], int]] = attrgetter("max_timestamp_ms")


class RollLimits:
    """The limits of one active segment. The next one gets new limits, with another random jitter."""

    def __init__(self, config: LogConfig) -> None:
        self._max_bytes: Final = config.segment_bytes
        self._max_offset_entries: Final = config.segment_index_bytes // OffsetIndex.ENTRY_SIZE
        self._max_time_entries: Final = config.segment_index_bytes // TimeIndex.ENTRY_SIZE - 1  # one is for the roll
        self._max_age_ms: Final = config.max_segment_ms - config.random_jitter_ms()

    def must_roll(self, segment: Segment, size: int, spans: Sequence[BatchSpan], now_ms: int) -> bool:
        """Return whether these batches need a new segment (`LogSegment.shouldRoll`)."""
        return (
            segment.size > self._max_bytes - size
            or (segment.size > 0 and _age_ms(segment, spans, now_ms) > self._max_age_ms)
            or segment.offset_index.count >= self._max_offset_entries
            or segment.time_index.count >= self._max_time_entries
            or not segment.takes(spans[-1].last_offset)
        )


def _age_ms(segment: Segment, spans: Sequence[BatchSpan], now_ms: int) -> int:
    """Return the age of a segment, by the timestamps of its records if they have any."""
    first_ms = segment.first_timestamp_ms()
    if first_ms < 0:
        return now_ms - segment.created_ms
    return max(map(_MAX_TIMESTAMP, spans)) - first_ms

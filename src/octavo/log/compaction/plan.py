"""What of a log is dirty, what of that can be cleaned, and whether it is time to (Kafka's `LogCleanerManager`).

A log is clean up to the offset in `cleaner-offset-checkpoint`. What is behind can be cleaned up to the first of: what
is not yet decided, the active segment, and a segment with a record younger than `min.compaction.lag.ms`. Whole segments
are cleaned.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from octavo.log.config import LogConfig
from octavo.log.reading import View
from octavo.log.segment import Segment


class LastBatch(NamedTuple):
    """What must stay of a producer, by which its next batch is judged."""

    last_offset: int  # of its last batch of data; -1 where only a marker is known
    epoch: int


class Plan(NamedTuple):
    """How it stands with one log (Kafka's `LogToClean`)."""

    first_dirty_offset: int
    first_uncleanable_offset: int  # where a segment begins
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int  # for how long it should have been cleaned already, by `max.compaction.lag.ms`
    checkpoint_is_wrong: bool  # it was outside of the log

    @property
    def dirty_ratio(self) -> float:
        """How much of what could be cleaned is dirty; 0 where there is nothing."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Whether it is time to clean."""
        if self.delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.dirty_ratio > config.min_cleanable_dirty_ratio


def make_plan(view: View, config: LogConfig, checkpoint: int | None, now_ms: int) -> Plan:
    """How it stands with a log that is clean up to `checkpoint`."""
    first_dirty_offset = view.start_offset if checkpoint is None else checkpoint
    is_wrong = not view.start_offset <= first_dirty_offset <= view.end_offset
    if is_wrong:
        first_dirty_offset = view.start_offset
    dirty = segments_between(view, first_dirty_offset, view.bases[-1])
    limit = min(view.last_stable_offset, view.bases[-1])
    if config.min_compaction_lag_ms > 0:
        before_ms = now_ms - config.min_compaction_lag_ms
        young = (segment.base_offset for segment in dirty if segment.largest_timestamp_ms() > before_ms)
        limit = min(limit, next(young, limit))
    limit = max(first_dirty_offset, limit)
    behind = segments_between(view, limit, view.bases[-1])
    first_uncleanable_offset = behind[0].base_offset if behind else view.bases[-1]
    start = min(first_dirty_offset, first_uncleanable_offset)
    return Plan(
        first_dirty_offset,
        first_uncleanable_offset,
        sum(segment.size for segment in segments_between(view, -1, first_dirty_offset)),
        sum(segment.size for segment in segments_between(view, start, first_uncleanable_offset)),
        _delay_ms(dirty, config, now_ms),
        is_wrong,
    )


def _delay_ms(dirty: Sequence[Segment], config: LogConfig, now_ms: int) -> int:
    """For how long the oldest dirty segment should have been cleaned already."""
    stamps = (segment.first_timestamp_ms() for segment in dirty)
    earliest_ms = min((stamp for stamp in stamps if stamp > 0), default=None)
    if earliest_ms is None:
        return 0
    return max(0, now_ms - config.max_compaction_lag_ms - earliest_ms)


def segments_between(view: View, start: int, end: int) -> Sequence[Segment]:
    """The segments from the one that holds `start` to the last that begins before `end`; none where both are one."""
    if start >= end:
        return ()
    first = max(0, bisect_right(view.bases, start) - 1)
    last = len([base for base in view.bases if base < end])
    return view.segments[first:last]

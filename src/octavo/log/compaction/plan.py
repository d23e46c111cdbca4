"""Plan the compaction of a log (Kafka's `LogCleanerManager`): what is dirty, what can be cleaned, whether it is due.

A log is clean up to the offset in `cleaner-offset-checkpoint`. The rest can be cleaned up to the first of these: the
last stable offset, the active segment, and a segment with a record younger than `min.compaction.lag.ms`. Only whole
segments are cleaned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from octavo.log.config.log_config import LogConfig
from octavo.log.segment.segment import Segment
from octavo.log.view import View


class LastBatch(NamedTuple):
    """The last batch of a producer. It must be kept, because the producer's next batch is checked against it."""

    last_offset: int  # last offset of the data batch; -1 if only a marker is known
    epoch: int


class CompactionPlan(NamedTuple):
    """The part of a log that can be cleaned (Kafka's `LogToClean`)."""

    first_dirty_offset: int
    first_uncleanable_offset: int  # base offset of a segment
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int  # time by which `max.compaction.lag.ms` is exceeded
    checkpoint_is_wrong: bool  # the offset in the checkpoint was outside the log

    @property
    def dirty_ratio(self) -> float:
        """The dirty share of all bytes that the cleaner would read; 0 if there are none."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Return whether cleaning is overdue, or the dirty ratio exceeds `min.cleanable.dirty.ratio`."""
        if self.delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.dirty_ratio > config.min_cleanable_dirty_ratio


def make_plan(view: View, config: LogConfig, checkpoint: int | None, now_ms: int) -> CompactionPlan:
    """Make the plan for a log that is clean up to offset `checkpoint` (None: it was never cleaned)."""
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
    return CompactionPlan(
        first_dirty_offset,
        first_uncleanable_offset,
        sum(segment.size for segment in segments_between(view, -1, first_dirty_offset)),
        sum(segment.size for segment in segments_between(view, start, first_uncleanable_offset)),
        _delay_ms(dirty, config, now_ms),
        is_wrong,
    )


def _delay_ms(dirty: Sequence[Segment], config: LogConfig, now_ms: int) -> int:
    """Return how long the cleaning of the oldest dirty segment has been overdue."""
    stamps = (segment.first_timestamp_ms() for segment in dirty)
    earliest_ms = min((stamp for stamp in stamps if stamp > 0), default=None)
    if earliest_ms is None:
        return 0
    return max(0, now_ms - config.max_compaction_lag_ms - earliest_ms)


def segments_between(view: View, start: int, end: int) -> Sequence[Segment]:
    """Return the segments from the one that holds `start` to the last one before `end`; none if `start >= end`."""
    if start >= end:
        return ()
    return view.segments[view.segment_at(start) : view.count_before(end)]

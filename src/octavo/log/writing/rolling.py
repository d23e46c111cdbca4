"""Begin a new segment: when a log has to (`RollLimits`), and how (`roll`).

`flushing` says when the old segment is written to the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from octavo.log.config.log_config import LogConfig
from octavo.log.segment.batch_span import BatchSpan
from octavo.log.segment.index import OffsetIndex, TimeIndex
from octavo.log.segment.open_files import with_room
from octavo.log.segment.segment import Segment
from octavo.log.writing.unfinished import SETTLED
from octavo.records.layout import MAX_INT32

if TYPE_CHECKING:
    from octavo.log.writing.log_state import LogState

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
    largest_ms = spans[0].max_timestamp_ms if len(spans) == 1 else max(map(_MAX_TIMESTAMP, spans))
    return largest_ms - first_ms


def roll_at_end(log: LogState, now_ms: int) -> None:
    """Roll at the end of the log. If an exception interrupts the roll, it is undone."""
    change = log.change
    end_offset = change.unfinished = log.view.end_offset
    try:
        roll(log, end_offset, now_ms)
    except OSError:
        change.unfinished = SETTLED  # it has been undone, or the log has a failure
        raise
    except BaseException:
        log.settle()
        raise
    change.unfinished = SETTLED


def base_for(log: LogState, first: BatchSpan, *, covers_gaps: bool) -> int:
    """Return the base offset for a segment that begins with this batch.

    For messages of magic 0 or 1 it is the log end offset, because they may not tell their first offset. With
    `covers_gaps` it is, too, so that no segment seems to be missing where offsets are left out, unless a segment cannot
    span that many.
    """
    end_offset = log.view.end_offset
    if first.magic < 2 or (covers_gaps and first.last_offset - end_offset <= MAX_INT32):
        return end_offset
    return max(first.base_offset, end_offset)


def roll(log: LogState, base_offset: int, now_ms: int) -> None:
    """Seal the active segment, and create a new one.

    The files are written in this order: the last entry of the old time index; a producer snapshot at `base_offset`; the
    empty files of the new segment. None of them is synced here, unless the roll has to wait (`Flushing.before_roll`).
    """
    log.owner.check_lock()
    active = log.view.segments[-1]
    if active.size == 0 and active.base_offset == base_offset:
        active.created_ms = now_ms
        return
    if log.data_end is not None:
        log.fill_hole(log.data_end)
    active.seal()
    log.flushing.before_roll(base_offset)
    if with_room(lambda: log.replay.take_snapshot(base_offset)):
        log.segments.unsynced_snapshot = log.replay.path(base_offset)
    preallocate = log.config.segment_bytes if log.config.preallocate else 0
    try:
        new = log.segments.create(base_offset, created_ms=now_ms, preallocate=preallocate)
        log.flushing.note_gap(base_offset)
    except OSError:
        with log.change.or_fail():
            log.segments.remove_half_made(base_offset)
            log.checkpoints.lower_recovery_point(log.partition, log.segments.recovery_point)
        raise
    log.limits = RollLimits(log.config)
    view = log.view
    end_offset = max(view.end_offset, base_offset)
    log.publish([*view.segments, new], view.start_offset, end_offset, view.high_watermark, view.generation)
    log.flushing.after_roll(active)

"""Remove the end of a log: `truncate`, all of it: `restart`, and `take_back` for a change that was interrupted.

The newest segments are removed first, and each step is on the disk before the next. The recovery point is lowered on
the disk before anything is removed, and the truncation is on the disk before anything is written in its place. So no
crash leaves a hole, and none brings back what was cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.log.writing.unfinished import NOT_UNDOABLE, SETTLED
from octavo.records.layout import NO_OFFSET

if TYPE_CHECKING:
    from octavo.log.writing.log_state import LogState


def truncate(log: LogState, offset: int, now_ms: int) -> None:
    """Remove everything from `offset` on. Raises `OSError`; if that happens half-way, the log has failed."""
    view, segments, checkpoints = log.view, log.segments, log.checkpoints
    segments.recovery_point = min(segments.recovery_point, offset)
    checkpoints.lower_recovery_point(log.partition, segments.recovery_point)
    clean_up_to = min(offset, view.bases[view.segment_at(offset)])  # whole segments only
    checkpoints.lower_cleaner_offset(log.partition, clean_up_to)
    if offset < view.bases[0]:
        start_anew(log, offset, now_ms)
        return
    stay = view.segments[: view.segment_at(offset) + 1]
    active = stay[-1]
    cut = active.find(offset, active.size)
    start_offset = min(view.start_offset, offset)
    size = active.size if cut is None else cut.position
    log.change.unfinished = NOT_UNDOABLE
    log.publish(stay, start_offset, offset, view.high_watermark, view.generation + 1, size=size, is_cut=True)
    with log.change.or_fail():
        if offset < view.start_offset:
            checkpoints.set_start_offset(log.partition, offset)
        for segment in reversed(view.segments[len(stay) :]):
            segments.put_away(segment, log.removal(now_ms))
        active.truncate_to(offset, now_ms)
        active.sync()
        data_end = active.end_offset()[0]
        log.data_end = data_end if data_end < offset else None
        log.epochs.truncate_from_end(offset)
        had_producers = log.producers.has_any
        log.replay.begin(start_offset, offset, now_ms)
        segments.sync_folder()  # no snapshot of removed records may come back
        if had_producers:
            log.replay.run(stay, offset)
    log.publish(stay, start_offset, offset, log.view.high_watermark, view.generation + 2)
    log.change.unfinished = SETTLED


def restart(log: LogState, offset: int, now_ms: int) -> None:
    """Remove everything, and begin at `offset`. Raises `OSError`; if that happens half-way, the log has failed."""
    segments, checkpoints = log.segments, log.checkpoints
    segments.recovery_point = min(segments.recovery_point, offset)
    checkpoints.lower_recovery_point(log.partition, segments.recovery_point)
    checkpoints.lower_cleaner_offset(log.partition, offset)
    start_anew(log, offset, now_ms)


def start_anew(log: LogState, offset: int, now_ms: int) -> None:
    """Replace the log by an empty one that begins at `offset`."""
    view, segments = log.view, log.segments
    log.change.unfinished = NOT_UNDOABLE
    with log.change.or_fail():
        log.checkpoints.set_start_offset(log.partition, offset)
        for segment in reversed(view.segments):
            segments.put_away(segment, log.removal(now_ms))
        log.epochs.clear()
        log.replay.begin(offset, NO_OFFSET, now_ms)
        new = segments.create(offset, created_ms=now_ms)
        segments.sync_folder()  # before the start offset is no longer recorded
    log.data_end = None
    log.publish([new], offset, offset, offset, view.generation + 1)
    log.change.unfinished = SETTLED


def take_back(log: LogState, end_offset: int) -> None:
    """Undo a change: remove everything from `end_offset` on, visible or not, and segment files that no view has."""
    with log.change.or_fail():
        log.segments.remove_after(log.view.bases[-1])
        truncate(log, end_offset, log.clock())

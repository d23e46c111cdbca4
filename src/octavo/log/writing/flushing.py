"""Write a log to the disk, on demand and in the background: `Flushing`.

As in Kafka, a roll does not wait for the disk. The old segment is flushed in the background (`Storage.run_soon`), and
the recovery point is raised after that: first data and indexes, then the producer snapshot, then the names of the
files. A power cut before that may take any part of the old segment and leave the new one. Recovery begins at the
recovery point, and cuts the log at the first batch that is damaged or missing, with all segments after it.

Recovery can recognise that whole batches are missing at the end of a segment only if no offsets may be missing there
for other reasons. They may be in a log that is compacted, or ever was. The rolls of such a log wait until the old
segment is on the disk. So that they need not wait long, the active segment is flushed in steps while it grows. If no
recovery point is recorded, recovery cuts nothing off because of a gap: segments may have been removed, or not copied.
So it is recorded before the first roll.

A roll also waits if the disk cannot keep up, so that not too much is unflushed (`_MOST_BYTES`, `_MOST_SEGMENTS`).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.segment.open_files import with_room

if TYPE_CHECKING:
    from octavo.log.segment.segment import Segment
    from octavo.log.writing.log_state import LogState

_STEP: Final = 32 << 20  # appends are slow while their file is flushed: a larger step makes them wait longer
_EARLY: Final = 1 << 20  # a log that grows beyond this will roll: have its recovery point recorded by then
_MOST_BYTES: Final = 1 << 30  # in segments that have rolled and are not flushed
_MOST_SEGMENTS: Final = 64
_NEVER: Final = 1 << 62  # no segment is so large


class Flushing:
    """The flushes of one log."""

    def __init__(self, log: LogState, *, may_have_gaps: bool) -> None:
        """`may_have_gaps`: offsets may be missing between two segments, other than by a crash."""
        self.due_size = _STEP if may_have_gaps else _EARLY  # of the active segment: when to call `write_back`
        self._log: Final = log
        self._may_have_gaps = may_have_gaps
        # Held while files are synced: the system reports a failed write only to the first sync after it.
        self._lock: Final = make_rlock()

    def flush(self, now_ms: int) -> None:
        """Write everything that is in the log now to the disk, and raise the recovery point."""
        self._flush(only_rolled=False)
        self._log.segments.last_flush_ms = now_ms

    def _flush(self, *, only_rolled: bool, in_background: bool = False) -> None:
        log = self._log
        with self._lock:
            if in_background and not (log.change.is_open and log.change.failure is None):
                return  # its files may be renamed and removed by now
            log.change.check_failure()
            view = log.view
            count = len(view.segments) - only_rolled
            with log.change.or_fail():  # a system drops what it failed to write: a second sync would report success
                synced = log.segments.sync(view, lambda: log.view, count=count)
        with log.lock:
            is_still_there = log.view.generation == view.generation  # otherwise it may be truncated and rewritten
            end_offset = view.bases[-1] if only_rolled else view.end_offset
            log.segments.note_synced(synced, end_offset if is_still_there else 0)
            for segment, _ in synced:
                if segment is not log.view.segments[-1]:
                    segment.forget()

    # ------------------------------------------------------------------------------------------------- the background

    def write_back(self) -> None:
        """Flush in the background what has to be, now that the active segment has grown to `due_size`."""
        self.due_size = self._log.view.size + _STEP if self._may_have_gaps else _NEVER
        self._log.segments.storage.run_soon(self._run)

    def _run(self) -> None:
        """Flush in the background. If that fails, the log has a `failure`, and the next append raises."""
        log = self._log
        try:
            self._flush(only_rolled=not self._may_have_gaps, in_background=True)
            with log.lock:  # no truncation comes in between, and the topic is not deleted
                if log.change.is_open and not log.checkpoints.has_recovery_point(log.partition):
                    with contextlib.suppress(OSError):  # then the first roll does it, or fails and tells why
                        self._record(log.segments.recovery_point)
        except Exception as error:  # nobody else would notice
            log.change.fail_unseen(error)

    # ----------------------------------------------------------------------------------------------------------- roll

    def would_wait(self, base_offset: int) -> bool:
        """Return whether `before_roll` would wait for the disk."""
        log = self._log
        is_recorded = log.checkpoints.has_recovery_point(log.partition)
        return not is_recorded or self._must_flush_all(base_offset) or self._is_behind()

    def before_roll(self, base_offset: int) -> None:
        """Wait until a segment may begin at `base_offset`. The old one is sealed."""
        log = self._log
        if self._must_flush_all(base_offset):
            self._flush(only_rolled=False)
            return
        if not log.checkpoints.has_recovery_point(log.partition):  # the background has not come to it yet
            self._record(log.segments.recovery_point)
        if self._is_behind():
            self._flush(only_rolled=True)

    def _must_flush_all(self, base_offset: int) -> bool:
        """Return whether the old segment has to be on the disk before one begins at `base_offset`."""
        log = self._log
        # Recovery does not look into a segment before the recovery point, so that the last index entries, which sealing
        # has just written, would not be rebuilt.
        is_flushed = log.segments.recovery_point >= log.view.end_offset
        return self._may_have_gaps or base_offset > log.view.end_offset or is_flushed

    def _is_behind(self) -> bool:
        """Return whether too much has rolled and is not flushed."""
        count, size = self._log.segments.unflushed(self._log.view)
        return count >= _MOST_SEGMENTS or size >= _MOST_BYTES

    def note_gap(self, base_offset: int) -> None:
        """Record that no offsets are missing before the empty segment at `base_offset`, although there are none.

        A follower of a leader whose log has gaps rolls after such a gap. Recovery must not take it for one that a power
        cut has left.
        """
        log = self._log
        if base_offset > log.view.end_offset:
            self._record(base_offset)
            log.segments.recovery_point = base_offset

    def after_roll(self, old: Segment) -> None:
        """Flush the old segment in the background, unless that was done."""
        log = self._log
        self.due_size = _STEP if self._may_have_gaps else _NEVER
        if old.is_dirty or log.segments.recovery_point < log.view.bases[-1]:
            log.segments.storage.run_soon(self._run)
        else:
            old.forget()

    # --------------------------------------------------------------------------------------------------------- policy

    def expect_gaps(self) -> None:
        """Prepare for another `cleanup.policy`, after which recovery may see gaps in another light.

        When this returns, everything is on the disk, and rolls wait. Raises `LogError` and `OSError`.
        """
        log = self._log
        with log.lock:
            if not log.change.is_open:
                return
            self._may_have_gaps = True
        self.flush(log.clock())
        with log.lock:
            self._record(log.segments.recovery_point)

    def _record(self, offset: int) -> None:
        log = self._log
        with_room(lambda: log.checkpoints.raise_recovery_point(log.partition, offset))

"""Compact a log that is open for writing: `Compaction`.

The log's lock is held while segments are swapped, but not while they are cleaned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from octavo.errors import CompactionAborted, FormatError, LogError, PolicyViolation
from octavo.log.compaction.plan import CompactionPlan, LastBatch, make_plan
from octavo.log.compaction.stats import CompactionStats, OnCompaction
from octavo.log.compaction.throttle import Throttle
from octavo.log.names import CLEANED
from octavo.log.segment.segment import Segment
from octavo.log.view import View
from octavo.log.writing.log_state import LogState
from octavo.log.writing.unfinished import NOT_UNDOABLE, SETTLED

if TYPE_CHECKING:
    from octavo.log.compaction.output import CleanedSegment

MAP_MEMORY: Final = 128 << 20  # log.cleaner.dedupe.buffer.size


class Compaction:
    """Compacts one log, with one run of the cleaner at a time."""

    def __init__(self, log: LogState) -> None:
        self.is_running = False
        self.uncleanable: FormatError | None = None  # error that keeps the log from being compacted
        self._log: Final = log

    def plan(self, now_ms: int | None = None) -> CompactionPlan:
        """Return which part of the log can be cleaned now. Raises `FormatError`; then the log is `uncleanable`."""
        log = self._log
        with log.lock:
            log.change.check_open()
            now_ms = log.clock() if now_ms is None else now_ms
            try:
                return make_plan(log.view, log.config, log.checkpoints.cleaner_offset(log.partition), now_ms)
            except FormatError as error:
                self.uncleanable = error
                raise

    def run(
        self,
        now_ms: int | None,
        *,
        map_memory: int,
        throttle: Throttle | None,
        on_progress: OnCompaction | None,
        only_if_due: bool,
    ) -> CompactionStats | None:
        """Compact the log, as `Log.compact` describes."""
        log = self._log
        log.change.check_open()
        log.owner.check_lock()
        if self.is_running:
            raise LogError(f"{log.partition} is being compacted already")
        with log.compacting:
            self.is_running = True
            try:
                with log.lock:
                    log.check_ready()
                    if not log.config_is_known:
                        raise PolicyViolation(f"{log.partition}: it is not known how the topic is to be compacted")
                    if not log.config.is_compacted:
                        raise PolicyViolation(f"{log.partition}: cleanup.policy does not have the topic compacted")
                    now_ms = log.clock() if now_ms is None else now_ms
                    plan = self.plan(now_ms)
                    view = log.view
                    if plan.checkpoint_is_wrong:
                        log.checkpoints.set_cleaner_offset(log.partition, plan.first_dirty_offset)
                    if not plan.cleanable_bytes or (only_if_due and not plan.is_due(log.config)):
                        return None
                return self._clean(view, plan, now_ms, map_memory, throttle, on_progress)
            finally:
                self.is_running = False

    def _clean(
        self,
        view: View,
        plan: CompactionPlan,
        now_ms: int,
        map_memory: int,
        throttle: Throttle | None,
        on_progress: OnCompaction | None,
    ) -> CompactionStats:
        from octavo.log.compaction.cleaner import Cleaner, Job  # imports NumPy

        log, storage, folder = self._log, self._log.segments.storage, self._log.segments.folder
        # Records may be dropped because of batches after the part that is cleaned: markers, and newer batches of the
        # same producers. Those batches must be on the disk before the records are gone.
        last_batches = self._last_batches()
        log.flushing.flush(now_ms)
        for path in folder.iterdir():
            if path.name.endswith(CLEANED):
                storage.remove(path)  # a leftover; after a crash it would undo the swap of another output
        job = Job(
            storage,
            folder,
            log.partition,
            log.config,
            view,
            plan,
            now_ms,
            last_batches=lambda: last_batches,
            check=lambda: self._check_unchanged(view),
            replace=lambda old, cleaned: self._replace(view, old, cleaned, now_ms),
        )
        try:
            stats = Cleaner(job, map_memory=map_memory, throttle=throttle, on_progress=on_progress).run()
            with log.lock:
                self._check_unchanged(view)
                log.checkpoints.set_cleaner_offset(log.partition, stats.end_offset)
        except (FormatError, OSError) as error:
            if log.change.failure is None:
                self._check_unchanged(view, error)
            if isinstance(error, FormatError):
                self.uncleanable = error
            raise
        self.uncleanable = None
        return stats

    def _check_unchanged(self, view: View, cause: Exception | None = None) -> None:
        """Raise `CompactionAborted` if the log was closed, truncated or deleted from since `view`."""
        log, now = self._log, self._log.view
        is_over = log.is_ending or not log.change.is_open
        if is_over or now.generation != view.generation or now.bases[0] != view.bases[0]:
            raise CompactionAborted(f"{log.partition} was closed, truncated or deleted from meanwhile") from cause

    def _last_batches(self) -> dict[int, LastBatch]:
        with self._log.lock:
            entries = self._log.producers.entries
            return {producer_id: LastBatch(entry.last_offset, entry.epoch) for producer_id, entry in entries.items()}

    def _replace(self, view: View, old: Sequence[Segment], cleaned: CleanedSegment, now_ms: int) -> None:
        """Replace a group of segments by the output, on the disk and for readers."""
        from octavo.log.compaction.swap import remove_swap_files, rename_to_swap, replace_segments

        log, storage, folder = self._log, self._log.segments.storage, self._log.segments.folder
        with log.lock:
            self._check_unchanged(view)
            log.check_ready()
            log.owner.check_lock()
            now = log.view
            first = now.segment_at(old[0].base_offset)
            assert now.segments[first : first + len(old)] == tuple(old)  # only swaps and deletions change segments
            log.change.unfinished = NOT_UNDOABLE
            try:
                offered = rename_to_swap(storage, folder, cleaned)
            except OSError:
                with log.change.or_fail():
                    remove_swap_files(storage, folder, cleaned)
                log.change.unfinished = SETTLED
                raise
            with log.change.or_fail():
                replace_segments(storage, folder, old, offered)
            log.segments.remove_later(old, log.removal(now_ms))
            new = Segment(storage, folder, cleaned.base_offset, size=cleaned.size, created_ms=old[-1].created_ms)
            segments = (*now.segments[:first], new, *now.segments[first + len(old) :])
            log.publish(segments, now.start_offset, now.end_offset, now.high_watermark, now.generation)
            log.change.unfinished = SETTLED

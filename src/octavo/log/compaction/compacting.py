"""The part of `Log` that is about compaction.

The log's lock is held while segments are swapped, but not while they are cleaned.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from octavo.errors import CompactionAborted, FormatError, LogError, PolicyViolation
from octavo.log.checkpoints import Checkpoints
from octavo.log.compaction.plan import CompactionPlan, LastBatch, make_plan
from octavo.log.compaction.stats import CompactionStats, OnCompaction
from octavo.log.compaction.throttle import Throttle
from octavo.log.log_state import NOT_UNDOABLE, SETTLED, AppendableLog
from octavo.log.names import CLEANED
from octavo.log.segment.segment import Segment
from octavo.log.view import View

if TYPE_CHECKING:
    from octavo.log.compaction.output import CleanedSegment

MAP_MEMORY: Final = 128 << 20  # log.cleaner.dedupe.buffer.size


class CompactableLog(AppendableLog):
    """A log that is open for writing, and can be compacted."""

    config_is_known: bool
    uncleanable: FormatError | None = None  # error that keeps the log from being compacted
    _checkpoints: Checkpoints
    _deleted: list[tuple[int, Segment]]
    _compacting: threading.RLock  # held while compacting; taken before the log's own lock
    _is_compacting = False
    _is_ending = False  # the log is about to be closed

    @property
    def is_compacting(self) -> bool:
        """Whether the log is being cleaned."""
        return self._is_compacting

    def compaction_plan(self, now_ms: int | None = None) -> CompactionPlan:
        """Determine what there is to clean and whether it is due, for a compacted topic."""
        with self._lock:
            self._check_open()
            now_ms = self._clock() if now_ms is None else now_ms
            return make_plan(self._view, self._config, self._checkpoints.cleaner_offset(self.partition), now_ms)

    def compact(
        self,
        now_ms: int | None = None,
        *,
        map_memory: int = MAP_MEMORY,
        throttle: Throttle | None = None,
        on_progress: OnCompaction | None = None,
        only_if_due: bool = False,
    ) -> CompactionStats | None:
        """Keep the last record of each key, like Kafka's cleaner. Return statistics; None if there was nothing to do.

        This is one clean: if the map was too small for all keys, another clean has more to do. Appends and reads go on
        meanwhile. Raises `LogError` if the topic is not compacted, `CompactionAborted` if the log was truncated,
        deleted from or closed meanwhile, `FormatError` for damaged data, which leaves the log `uncleanable`, and
        `OSError`. None of these loses anything.
        """
        self._check_open()
        self._owner.check_lock()
        if self._is_compacting:
            raise LogError(f"{self.partition} is being compacted already")
        with self._compacting:
            self._is_compacting = True
            try:
                with self._lock:
                    self._check_ready()
                    if not self.config_is_known:
                        raise PolicyViolation(f"{self.partition}: it is not known how the topic is to be compacted")
                    if not self._config.is_compacted:
                        raise PolicyViolation(f"{self.partition}: cleanup.policy does not have the topic compacted")
                    now_ms = self._clock() if now_ms is None else now_ms
                    plan = self.compaction_plan(now_ms)
                    view = self._view
                    if plan.checkpoint_is_wrong:
                        self._checkpoints.set_cleaner_offset(self.partition, plan.first_dirty_offset)
                    if not plan.cleanable_bytes or (only_if_due and not plan.is_due(self._config)):
                        return None
                return self._clean(view, plan, now_ms, map_memory, throttle, on_progress)
            finally:
                self._is_compacting = False

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

        # What makes records superfluous may lie after the part that is cleaned: markers, and newer batches of
        # producers. It must be on the disk before those records are gone.
        last_batches = self._last_batches()
        self._flush(now_ms)
        for leftover in self.folder.glob("*" + CLEANED):
            self._storage.remove(leftover)  # or it would undo the swap of another, after a crash
        job = Job(
            self._storage,
            self.folder,
            self.partition,
            self._config,
            view,
            plan,
            now_ms,
            last_batches=lambda: last_batches,
            check=lambda: self._check_unchanged(view),
            replace=lambda old, cleaned: self._replace(view, old, cleaned, now_ms),
        )
        try:
            stats = Cleaner(job, map_memory=map_memory, throttle=throttle, on_progress=on_progress).run()
            with self._lock:
                self._check_unchanged(view)
                self._checkpoints.set_cleaner_offset(self.partition, stats.end_offset)
        except (FormatError, OSError) as error:
            if self.failure is None:
                self._check_unchanged(view, error)
            if isinstance(error, FormatError):
                self.uncleanable = error
            raise
        self.uncleanable = None
        return stats

    def _clean_up_to(self, offset: int) -> int:
        """The offset up to which a log counts as compacted after truncation to `offset`: whole segments only."""
        return min(offset, self._view.bases[self._view.segment_at(offset)])

    def _check_unchanged(self, view: View, cause: Exception | None = None) -> None:
        """Raises `CompactionAborted` if the log has been closed or has lost something since `view`."""
        now = self._view
        is_over = self._is_ending or not self._is_open
        if is_over or now.generation != view.generation or now.bases[0] != view.bases[0]:
            raise CompactionAborted(f"{self.partition} was closed, truncated or deleted from meanwhile") from cause

    def _last_batches(self) -> dict[int, LastBatch]:
        with self._lock:
            entries = self._producers.entries
            return {producer_id: LastBatch(entry.last_offset, entry.epoch) for producer_id, entry in entries.items()}

    def _replace(self, view: View, old: Sequence[Segment], cleaned: CleanedSegment, now_ms: int) -> None:
        """Put the output in the place of a group, on the disk and for readers."""
        from octavo.log.compaction.swap import offer, take_place, withdraw

        with self._lock:
            self._check_unchanged(view)
            self._check_ready()
            self._owner.check_lock()
            now = self._view
            first = now.segment_at(old[0].base_offset)
            assert now.segments[first : first + len(old)] == tuple(old)  # only swaps and deletions change them
            self._unfinished = NOT_UNDOABLE
            try:
                offered = offer(self._storage, self.folder, cleaned)
            except OSError:
                with self._or_fail():
                    withdraw(self._storage, self.folder, cleaned)
                self._unfinished = SETTLED
                raise
            with self._or_fail():
                take_place(self._storage, self.folder, old, offered)
            self._deleted += [(now_ms + self._config.file_delete_delay_ms, segment) for segment in old]
            new = Segment(
                self._storage, self.folder, cleaned.base_offset, size=cleaned.size, created_ms=old[-1].created_ms
            )
            segments = (*now.segments[:first], new, *now.segments[first + len(old) :])
            self._publish(segments, now.start_offset, now.end_offset, now.high_watermark, now.generation)
            self._unfinished = SETTLED

"""The log of one partition: `Log`.

Appending, rolling and flushing are in `log_state`. This module opens and closes a log, and removes records from it, by
truncation, retention and deletion. A truncation is on the disk before anything is written in its place. A new start
offset is on the disk before the segments below it are deleted. So no crash leaves a hole, and none brings back what was
cut.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, overload

from octavo.errors import InvalidInput, OctavoError, OffsetOutOfRange, PolicyViolation
from octavo.log.checkpoints import Checkpoints, Kept
from octavo.log.clock import Clock, wall_clock_ms
from octavo.log.compaction.compacting import CompactableLog
from octavo.log.config import LogConfig
from octavo.log.files.leader_epochs import LeaderEpochs
from octavo.log.log_state import NOT_UNDOABLE, SETTLED, Appended
from octavo.log.names import LEADER_EPOCHS, TopicPartition
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.recovery.loading import Loader
from octavo.log.recovery_report import OnProgress, RecoveryReport
from octavo.log.retention import Expired, LogView, SegmentView, expired_segments
from octavo.log.segment.segment import Segment
from octavo.log.storage import DISK, Storage
from octavo.log.view import View
from octavo.records.layout import NO_OFFSET

if TYPE_CHECKING:
    from octavo.log.watched.watched_log import WatchedLog

__all__ = ["Appended", "Log", "PolicyViolation"]


class Log(CompactableLog):
    """One partition on disk. Get it from `DataDirectory.log`, or open a single one with `Log.open`."""

    def __init__(
        self,
        folder: Path,
        partition: TopicPartition,
        config: LogConfig,
        checkpoints: Checkpoints,
        *,
        clean: bool,
        leader_epoch: int = 0,
        is_only_replica: bool = True,
        storage: Storage = DISK,
        clock: Clock = wall_clock_ms,
        config_is_known: bool = True,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Open the log for writing. The caller holds the directory's lock and has called `check_partition`.

        is_only_replica: let readers see everything, as Kafka's leader of such a partition does. Otherwise they see up
            to the recorded high watermark: what comes after it may be on no other replica
        """
        epochs, damage = LeaderEpochs.open(storage, folder / LEADER_EPOCHS)
        loaded = Loader(
            storage,
            folder,
            partition,
            clean=clean,
            recovery_point=checkpoints.recovery_point(partition),
            start_offset=checkpoints.start_offset(partition),
            index_interval=config.index_interval_bytes,
            epochs=epochs,
            epochs_damage=damage,
            now_ms=clock(),
            on_progress=on_progress,
        ).load()
        super().__init__(
            folder,
            partition,
            config,
            epochs,
            loaded.replay,
            checkpoints.owner,
            leader_epoch=leader_epoch,
            storage=storage,
            clock=clock,
        )
        self.config_is_known = config_is_known  # if not, nothing is deleted
        self.recovery: Final[RecoveryReport] = loaded.report
        self.recovery_point = loaded.end_offset
        self.on_close: Callable[[], None] | None = None  # closes this log, and the folder that was opened only for it
        self._checkpoints = checkpoints
        self._leaving: list[Segment] = []  # segments that have left the log, files not yet renamed
        self._deleted: list[tuple[int, Segment]] = []  # renamed segments, each with the time of its removal
        self._compacting = make_rlock()
        self._is_closed = False  # closing is complete; `_is_open` is false as soon as it begins
        self._follows_end = is_only_replica
        high_watermark = checkpoints.high_watermark(partition) or 0  # Kafka takes a missing one for 0
        self._publish(loaded.segments, loaded.start_offset, loaded.end_offset, high_watermark, generation=0)
        self.forget_files()

    @overload
    @staticmethod
    def open(
        folder: Path | str,
        config: LogConfig | None = ...,
        *,
        read_only: Literal[False] = ...,
        storage: Storage = ...,
        clock: Clock = ...,
        may_have_gaps: bool = ...,
        even_if_replicated: bool = ...,
        on_progress: OnProgress | None = ...,
    ) -> Log: ...

    @overload
    @staticmethod
    def open(
        folder: Path | str, config: LogConfig | None = ..., *, read_only: Literal[True], storage: Storage = ...
    ) -> WatchedLog: ...

    @staticmethod
    def open(
        folder: Path | str,
        config: LogConfig | None = None,
        *,
        read_only: bool = False,
        storage: Storage = DISK,
        clock: Clock = wall_clock_ms,
        may_have_gaps: bool = False,
        even_if_replicated: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Log | WatchedLog:
        """Open one partition by itself. Takes the lock of its data directory and uses that directory's checkpoints.

        Without `config`, the topic's configuration is read from the metadata in the directory. `read_only` needs no
        lock. The other options are those of `DataDirectory.open`. Raises `LogError`, `FormatError` and `OSError`.
        """
        from octavo.log.directory.data_directory import open_partition, watch_partition
        from octavo.log.partition_folders import folder_paths

        [path] = folder_paths(folder)
        if read_only:
            return watch_partition(path, config, storage=storage)
        return open_partition(
            path,
            config,
            storage=storage,
            clock=clock,
            may_have_gaps=may_have_gaps,
            even_if_replicated=even_if_replicated,
            on_progress=on_progress,
        )

    # ---------------------------------------------------------------------------------------------------------- state

    @property
    def config(self) -> LogConfig:
        """The configuration of this log."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        with self._lock:
            self._set_config(config)
            self.config_is_known = True

    def kept(self) -> Kept:
        """Return what the directory's checkpoints record of this log."""
        view = self._view
        is_seen = self._follows_end or view.high_watermark > view.start_offset
        return Kept(
            self.recovery_point,
            view.start_offset if self._start_is_told() else None,
            view.high_watermark if is_seen else None,
        )

    def forget_files(self) -> None:
        """Close all files until they are needed again."""
        for segment in self._view.segments:
            segment.forget()

    # ------------------------------------------------------------------------------------------------------- truncate

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on. Returns whether there was anything to remove.

        A batch that contains `offset` is removed as a whole. Raises `OSError`; if that happens half-way, the log has a
        `failure`.
        """
        if offset < 0:
            raise InvalidInput(f"a log cannot be truncated to offset {offset}")
        with self._lock:
            self._check_ready()
            self._owner.check_lock()
            if offset >= self._view.end_offset:
                self._epochs.truncate_from_end(self._view.end_offset)  # the epoch of a leader that appended nothing
                return False
            self._truncate(offset, self._clock())
            return True

    def _truncate(self, offset: int, now_ms: int) -> None:
        """Remove the newest segments first, each step on the disk before the next, so that no crash leaves a hole."""
        self.recovery_point = min(self.recovery_point, offset)
        self._checkpoints.lower_recovery_point(self.partition, self.recovery_point)
        view = self._view
        self._checkpoints.lower_cleaner_offset(self.partition, self._clean_up_to(offset))
        if offset < view.bases[0]:
            self._start_anew(offset, now_ms)
            return
        stay = view.segments[: view.segment_at(offset) + 1]
        cut = stay[-1].find(offset, stay[-1].size)
        start_offset = min(view.start_offset, offset)
        size = stay[-1].size if cut is None else cut.position
        self._unfinished = NOT_UNDOABLE
        self._publish(stay, start_offset, offset, view.high_watermark, view.generation + 1, size=size, is_cut=True)
        with self._or_fail():
            if offset < view.start_offset:
                self._checkpoints.set_start_offset(self.partition, offset)
            for segment in reversed(view.segments[len(stay) :]):
                self._put_away_for_good(segment, now_ms)
            stay[-1].truncate_to(offset, now_ms)
            stay[-1].sync()
            data_end = stay[-1].end_offset()[0]
            self._data_end = data_end if data_end < offset else None
            self._epochs.truncate_from_end(offset)
            had_producers = self._producers.has_any
            self._replay.begin(start_offset, offset, now_ms)
            self._storage.sync_folder(self.folder)  # no snapshot of removed records may come back
            if had_producers:
                self._replay.run(stay, offset)
        self._publish(stay, start_offset, offset, self._view.high_watermark, view.generation + 2)
        self._unfinished = SETTLED

    def _start_anew(self, offset: int, now_ms: int) -> None:
        """Replace the log by an empty one that begins at `offset`."""
        view = self._view
        self._unfinished = NOT_UNDOABLE
        with self._or_fail():
            self._checkpoints.set_start_offset(self.partition, offset)
            for segment in reversed(view.segments):
                self._put_away_for_good(segment, now_ms)
            self._epochs.clear()
            self._replay.begin(offset, NO_OFFSET, now_ms)
            new = Segment.create(self._storage, self.folder, offset, created_ms=now_ms)
        self._data_end = None
        self._publish([new], offset, offset, offset, view.generation + 1)
        self._unfinished = SETTLED

    # --------------------------------------------------------------------------------------------------------- delete

    def delete_records_before(self, offset: int) -> int:
        """Move the start of the log to `offset`, or to the high watermark for -1. Returns the new start offset.

        This removes no files. `apply_retention` does that, whole segments at a time. Raises `OffsetOutOfRange` for an
        offset above the high watermark, and `LogError` if the topic's configuration does not let records be deleted.
        """
        with self._lock:
            self._check_ready()
            view = self._view
            if not self._config.is_deleted:
                raise PolicyViolation(f"{self.partition}: cleanup.policy does not let records be deleted")
            if offset == NO_OFFSET:
                offset = view.high_watermark
            if not 0 <= offset <= view.high_watermark:
                raise OffsetOutOfRange(offset, view.start_offset, view.high_watermark)
            self._raise_start_offset(offset)
            return self._view.start_offset

    def _raise_start_offset(self, offset: int) -> None:
        """Raise the start offset for readers, then on the disk. Retries a write that failed in an earlier call.

        Readers come first: if the checkpoints are being written at this moment, the old start offset is not in them.
        """
        view = self._view
        if offset > view.start_offset:
            self._producers.see_up_to(offset)
            self._view = view = view._replace(
                start_offset=offset,
                high_watermark=max(view.high_watermark, offset),
                first_unstable_offset=self._producers.first_unstable_offset,
            )
        if self._start_is_told():
            self._checkpoints.set_start_offset(self.partition, view.start_offset)
        self._epochs.truncate_from_start(view.start_offset)

    def _start_is_told(self) -> bool:
        """Return whether the start offset has to be recorded, because segments on the disk begin before it."""
        return self._view.start_offset > self._view.bases[0] or bool(self._leaving)

    def apply_retention(self, now_ms: int | None = None) -> list[Expired]:
        """Delete the segments that the retention policies let expire. Returns which and why, oldest first.

        Nothing is deleted by guess: if the topic's configuration is not known, nothing is deleted at all.
        """
        with self._lock:
            self._check_ready()
            if not self.config_is_known:
                return []
            now_ms = self._clock() if now_ms is None else now_ms
            expired = expired_segments(self._retention_view(self._view), now_ms)
            if expired:
                self.delete_oldest(len(expired), now_ms)
            return list(expired)

    def _retention_view(self, view: View) -> LogView:
        return LogView(
            partition=self.partition,
            config=self._config,
            start_offset=view.start_offset,
            end_offset=view.end_offset,
            high_watermark=view.high_watermark,
            segments=tuple(
                SegmentView(
                    base_offset=segment.base_offset,
                    next_offset=view.segment_end(number),
                    size=segment.size,
                    largest_timestamp_ms=segment.largest.timestamp_ms,
                    last_modified_ms=segment.modified_ms(),
                )
                for number, segment in enumerate(view.segments)
            ),
        )

    def delete_oldest(self, count: int, now_ms: int | None = None) -> list[int]:
        """Delete the `count` oldest segments, whatever they hold. Returns their base offsets."""
        with self._lock:
            self._check_ready()
            self._owner.check_lock()
            now_ms = self._clock() if now_ms is None else now_ms
            if count >= len(self._view.segments):
                self._roll_at_end(now_ms)
            view = self._view
            gone, stay = view.segments[:count], view.segments[count:]
            if not gone or not stay:
                return []
            self._raise_start_offset(stay[0].base_offset)
            self._unfinished = NOT_UNDOABLE
            self._leaving += gone
            self._publish(stay, self._view.start_offset, view.end_offset, view.high_watermark, view.generation)
            self._unfinished = SETTLED
            self._put_away(now_ms)
            return [segment.base_offset for segment in gone]

    def _put_away(self, now_ms: int) -> None:
        """Rename the files of segments that have left the log, also those that could not be renamed before."""
        while self._leaving:
            segment = self._leaving[0]
            segment.put_away()
            self._deleted.append((now_ms + self._config.file_delete_delay_ms, segment))
            if len(self._leaving) == 1:
                self._storage.sync_folder(self.folder)  # before the start offset is no longer recorded
            del self._leaving[0]

    def _put_away_for_good(self, segment: Segment, now_ms: int) -> None:
        segment.put_away()
        self._deleted.append((now_ms + self._config.file_delete_delay_ms, segment))
        self._storage.sync_folder(self.folder)

    def delete_files(self, now_ms: int | None = None) -> int:
        """Remove the files of deleted segments whose delay is over. Returns the number of these segments."""
        with self._lock:
            self._check_ready()
            now_ms = self._clock() if now_ms is None else now_ms
            self._put_away(now_ms)
            due = [segment for due_ms, segment in self._deleted if due_ms <= now_ms]
            if due:
                self._owner.check_lock()
            for segment in due:
                segment.remove_deleted()
            self._deleted = [(due_ms, segment) for due_ms, segment in self._deleted if due_ms > now_ms]
            return len(due)

    # ---------------------------------------------------------------------------------------------------------- close

    def close(self) -> None:
        """Close the log: write everything to the disk, and seal the active segment. Readers may finish what they read.

        Raises `OSError` and `LockLost`; the log is closed nevertheless. A log with a `failure` is left as it is:
        opening it again repairs it. If another exception interrupts this call, call it again to finish. In a fork of
        the process that opened the log, nothing is written and nothing is raised.
        """
        if self.on_close is None:
            self.close_alone()
        else:
            self.on_close()

    def close_alone(self) -> None:
        """Close the log, but not the folder that may have been opened only for it."""
        if self._owner.is_elsewhere:
            self._is_open = False
            self.forget_files()
            return
        self._is_ending = True
        with self._compacting, self._lock:
            if self._is_closed:
                return
            self._is_open = False
            try:
                if self._unfinished != SETTLED:
                    self._settle()
                if self.failure is None:
                    self._finish(self._clock())
            except (OctavoError, OSError):
                self._is_closed = True
                raise
            finally:
                self.forget_files()
            self._is_closed = True

    def _fill_hole_before_start(self) -> None:
        """Write a batch that marks the end of the log, if a truncation has left no data from the start offset on.

        A log that was closed cleanly and ends before its start offset would look as if its start offset were wrong.
        """
        start, end_offset = self._view.start_offset, self._view.end_offset
        if self._data_end is not None and self._data_end < start:
            self._unfinished = end_offset
            self._fill_hole(self._data_end, end_offset)
            self._unfinished = SETTLED

    def _finish(self, now_ms: int) -> None:
        self._owner.check_lock()
        with self._or_fail():
            self._fill_hole_before_start()
            self._view.segments[-1].seal()
            self._flush(now_ms, also_active=True)
            if self._replay.take_snapshot(self._view.end_offset, sync=True):
                self._storage.sync_folder(self.folder)
        with contextlib.suppress(OSError):  # these have left the log, and are removed when it is opened again
            self._put_away(now_ms)
            for _, segment in self._deleted:
                segment.remove_deleted()
            self._deleted.clear()

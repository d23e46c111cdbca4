"""The log of one partition: `Log`.

A new start offset is on the disk before the segments below it are deleted, so that no crash leaves a hole. Appending,
truncation and compaction are in `appender`, `truncation` and `compaction.compacting`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, overload

from octavo.choices import chosen
from octavo.errors import AppendRefused, ErrorCode, FormatError, InvalidInput, OffsetOutOfRange, PolicyViolation
from octavo.log.append.readiness import ALLOWANCE, MustWait
from octavo.log.clock import Clock, wall_clock_ms
from octavo.log.compaction.compacting import MAP_MEMORY, Compaction
from octavo.log.compaction.plan import CompactionPlan
from octavo.log.compaction.stats import CompactionStats, OnCompaction
from octavo.log.compaction.throttle import Throttle
from octavo.log.config.log_config import LogConfig
from octavo.log.files.leader_epochs import UNDEFINED, EpochEnd, EpochEntry
from octavo.log.names import TopicPartition
from octavo.log.origin import ORIGIN_WORDS, Origin
from octavo.log.producer_state.states import EXPIRATION_MS, ProducerStates
from octavo.log.reading.readable_log import ReadableLog
from octavo.log.recovery.recover import Recover, recover_of
from octavo.log.recovery_report import OnProgress, RecoveryReport
from octavo.log.retention import Expired, LogView, expired_segments
from octavo.log.storage import DISK, Storage, is_full
from octavo.log.tiers import RemotePart
from octavo.log.view import View
from octavo.log.writing.appender import Appended, Appender
from octavo.log.writing.log_state import LogState
from octavo.log.writing.rolling import roll_at_end
from octavo.log.writing.truncation import restart, start_anew, truncate
from octavo.log.writing.unfinished import NOT_UNDOABLE, SETTLED
from octavo.records.layout import MAX_INT32, MAX_INT64, NO_OFFSET, Buffer

if TYPE_CHECKING:
    from octavo.log.watched.watched_log import WatchedLog

__all__ = ["Appended", "Log"]


class Log(ReadableLog):
    """One partition on disk. Get it from `DataDirectory.log`, or open a single one with `Log.open`."""

    def __init__(self, state: LogState, close: Callable[[], None]) -> None:
        """Use `open` instead. `close`: closes the log, and its data directory if that was opened only for this log."""
        self._state: Final = state
        self._close: Final = close
        self._appender: Final = Appender(state)
        self._compaction: Final = Compaction(state)

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
        recover: Recover | str = ...,
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
        recover: Recover | str = Recover.REFUSE,
    ) -> Log | WatchedLog:
        """Open one partition by itself. Takes the lock of its data directory and uses that directory's checkpoints.

        Without `config`, the topic's configuration is read from the metadata in the directory. `read_only` needs no
        lock. The other options are those of `DataDirectory.open`. Raises `LogError`, `FormatError` and `OSError`.
        """
        from octavo.log.directory.standalone import open_partition, watch_partition
        from octavo.log.partition_folders import folder_paths

        recover = recover_of(recover)
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
            recover=recover,
        )

    # ---------------------------------------------------------------------------------------------------------- state

    @property
    def folder(self) -> Path:
        """The folder of the partition."""
        return self._state.segments.folder

    @property
    def partition(self) -> TopicPartition:
        """The topic and the number of the partition."""
        return self._state.partition

    def would_wait(self) -> bool:
        """Return whether an append would wait for the disk.

        Whether it would wait because it begins a segment, or because another thread changes the log, only the append
        finds out: it raises `MustWait`.
        """
        state = self._state
        latest = state.epochs.latest
        if latest is None or latest.epoch != state.leader_epoch:  # then the first append puts it on the disk
            return True
        return state.config.flush_messages < MAX_INT64

    @property
    def is_open(self) -> bool:
        """Whether the log can still be changed: it was not closed, and its topic was not deleted."""
        return self._state.change.is_open

    @property
    def recovery(self) -> RecoveryReport:
        """The report of what opening the log found and did."""
        return self._state.recovery

    @property
    def failure(self) -> BaseException | None:
        """The error of a change that could not be finished. The log takes no more changes until it is opened again."""
        return self._state.change.failure

    @property
    def config(self) -> LogConfig:
        """The configuration of this log."""
        return self._state.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        if config.is_compacted != self._state.config.is_compacted:
            self._state.flushing.expect_gaps()
        self._state.set_config(config, is_known=True)

    @property
    def config_is_known(self) -> bool:
        """Whether the topic's configuration is known. If not, nothing is deleted."""
        return self._state.config_is_known

    @property
    def remote_part(self) -> RemotePart | None:
        """The offsets of a tiered topic that are in remote storage only, where Octavo cannot read; None for others."""
        return self._state.remote_part

    @property
    def view(self) -> View:
        """What readers see now. It is another object as soon as that changes."""
        return self._state.view

    @property
    def _view(self) -> View:
        return self._state.view

    def advance_high_watermark(self, offset: int) -> int:
        """Set the high watermark to `offset`, at most to the log end offset. Returns the new high watermark.

        From now on, appends no longer advance it.
        """
        with self._state.lock:
            return self._state.set_high_watermark(offset)

    def advance_high_watermark_at_once(self, offset: int) -> bool:
        """Advance the high watermark unless another thread is changing the log. Returns whether it was done."""
        state = self._state
        if not state.lock.acquire(blocking=False):
            return False
        try:
            state.set_high_watermark(offset)
        finally:
            state.lock.release()
        return True

    @property
    def producers(self) -> ProducerStates:
        """The state of the producers of the partition."""
        return self._state.producers

    def expire_producers(self, now_ms: int | None = None, *, expiration_ms: int = EXPIRATION_MS) -> list[int]:
        """Forget producers without an open transaction that wrote nothing for `expiration_ms`. Returns their ids."""
        with self._state.lock:
            return self._state.producers.expire(self._state.clock() if now_ms is None else now_ms, expiration_ms)

    @property
    def lock(self) -> AbstractContextManager[bool]:
        """The lock that every change takes. Hold it in a `with` to keep other threads from changing the log."""
        return self._state.lock

    def settle(self) -> None:
        """Settle a change that an exception has interrupted, as the next change would do first.

        Raises `LogError` if the log takes no changes, and `OSError`.
        """
        with self._state.lock:
            self._state.check_ready()

    # --------------------------------------------------------------------------------------------------------- append

    def append(
        self,
        batches: Buffer,
        *,
        origin: Origin | str = Origin.CLIENT,
        now_ms: int | None = None,
        within: tuple[int, int] | None = None,
        only_if: Callable[[], bool] | None = None,
    ) -> Appended:
        """Append as the leader: check as Kafka's broker does, assign offsets, write.

        origin: or the same word in small letters
        within: the id and the epoch of a producer whose transaction must be open here; INVALID_TXN_STATE if it has
            ended meanwhile
        only_if: asked when nobody else can change the log; if it returns False, INVALID_TXN_STATE as well

        A batch is checked as Kafka checks a client's. Kafka accepts only one batch at a time; here several are allowed,
        and either all of them are appended or none. None is appended if an idempotent producer has sent them before.
        Raises `AppendRefused`, with Kafka's error code, `LogError` if the log has a `failure`, and `OSError`. After an
        `OSError` nothing was appended, with one exception: if the flush after an append failed (`flush.messages`), the
        log has a `failure`. A thread with an `ALLOWANCE` does not wait for others: `MustWait` is raised.
        """
        state = self._state
        if type(origin) is not Origin:
            origin = chosen("origin", origin, Origin, ORIGIN_WORDS)
        if not state.lock.acquire(blocking=ALLOWANCE.left is None):
            raise MustWait
        try:
            state.check_ready()
            if state.is_following:
                raise AppendRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"another broker leads {state.partition}")
            if within is not None and not state.producers.has_open(*within):
                why = f"the transaction of producer {within[0]} with epoch {within[1]} is not open in {state.partition}"
                raise AppendRefused(ErrorCode.INVALID_TXN_STATE, why)
            if only_if is not None and not only_if():
                raise AppendRefused(ErrorCode.INVALID_TXN_STATE, f"the transaction in {state.partition} has ended")
            return self._appender.append(batches, origin, state.clock() if now_ms is None else now_ms)
        finally:
            state.lock.release()

    def append_as_follower(
        self, batches: Buffer, *, leader_epoch: int = MAX_INT32, covers_gaps: bool = False
    ) -> Appended:
        """Append batches that a leader wrote, with the offsets and epochs that it assigned. Raises as `append` does.

        leader_epoch: the epoch of the leader that is followed. The first batch of a later epoch, and all batches after
            it, are left out: they are of a leader that the follower does not know of yet
        covers_gaps: if a new segment begins where offsets are left out, name it after the end of the log and not, as
            Kafka does, after its first batch. Then it does not look as if a segment were missing
        """
        with self._state.lock:
            self._state.check_ready()
            return self._appender.append_as_follower(batches, leader_epoch=leader_epoch, covers_gaps=covers_gaps)

    def replicate(self, batches: Buffer, *, leader_epoch: int, high_watermark: int, start_offset: int) -> None:
        """Append what a leader has sent, then take over its high watermark, then the start of its log.

        See `append_as_follower`, `advance_high_watermark` and `follow_start`. Raises as `append_as_follower` does. A
        thread with an `ALLOWANCE` does not wait: `MustWait` is raised, and nothing was changed.
        """
        state = self._state
        may_wait = ALLOWANCE.left is None
        if not state.lock.acquire(blocking=may_wait):
            raise MustWait
        try:
            state.check_ready()
            if not may_wait and (start_offset > state.view.start_offset or state.config.flush_messages < MAX_INT64):
                raise MustWait
            if len(batches):
                self._appender.append_as_follower(batches, leader_epoch=leader_epoch)
            if high_watermark != state.view.high_watermark:
                state.set_high_watermark(high_watermark)
            if start_offset > state.view.start_offset:
                state.raise_start_offset(min(start_offset, state.view.high_watermark))
        finally:
            state.lock.release()

    def roll(self) -> int:
        """Begin a new segment, unless the active one is empty. Returns the base offset of the active segment.

        The old segment is flushed in the background, unless the log may have gaps between segments: then it is on the
        disk when this returns.
        """
        with self._state.lock:
            self._state.check_ready()
            roll_at_end(self._state, self._state.clock())
            return self._state.view.bases[-1]

    @property
    def active_size(self) -> int:
        """The number of bytes in the active segment."""
        return self._state.view.size

    def begin_at(self, offset: int) -> None:
        """Have a log that holds no records begin at a later offset, as a follower does whose leader's log begins there.

        Raises `InvalidInput` if the log holds records, or ends after `offset`.
        """
        state = self._state
        with state.lock:
            state.check_ready()
            state.owner.check_lock()
            view = state.view
            if not view.start_offset == view.end_offset <= offset:
                raise InvalidInput(
                    f"{state.partition} has offsets up to {view.end_offset}, and cannot begin at {offset}"
                )
            if offset > view.end_offset:
                start_anew(state, offset, state.clock())

    def restart_at(self, offset: int) -> None:
        """Remove everything, and have the log begin and end at `offset`, before or after its present end.

        A follower does so if its leader no longer has the offsets that would be next. The high watermark is `offset`
        then as well. After a crash on the way, the log is empty or holds the first part of what it held.
        """
        if offset < 0:
            raise InvalidInput(f"a log cannot begin at offset {offset}")
        state = self._state
        with state.lock:
            state.check_ready()
            state.owner.check_lock()
            restart(state, offset, state.clock())

    # ---------------------------------------------------------------------------------------------------------- flush

    @property
    def recovery_point(self) -> int:
        """The offset before which everything is on the disk."""
        return self._state.segments.recovery_point

    @property
    def last_flush_ms(self) -> int:
        """The time of the last flush, or of opening the log."""
        return self._state.segments.last_flush_ms

    def begin_flush(self) -> None:
        """Have the disk begin to write the active segment, so that the next `flush` waits less. Nothing is promised."""
        with self._state.lock:
            self._state.check_ready()
            self._state.view.segments[-1].begin_sync()

    def flush(self) -> None:
        """Write everything that is in the log now to the disk. Appends go on meanwhile.

        Raises `OSError`. Then it is uncertain what was written, and the log has a `failure`.
        """
        self._state.change.check_open()
        self._state.flushing.flush(self._state.clock())

    # --------------------------------------------------------------------------------------------------------- epochs

    @property
    def leader_epoch(self) -> int:
        """The leader epoch that `append` gives to batches."""
        return self._state.leader_epoch

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        """The leader epochs of the log, each with the offset at which it begins."""
        return self._state.epochs.entries

    def become_follower(self, epoch: int = 0) -> None:
        """Take records of the leader of this epoch alone from now on. `append` is refused: NOT_LEADER_OR_FOLLOWER.

        An append that is under way is finished before this returns. The high watermark no longer follows the end.
        """
        state = self._state
        with state.lock:
            state.leader_epoch = max(state.leader_epoch, epoch)
            state.is_following = state.is_replica = True
            state.follows_end = False
            state.tell()

    def become_leader(self, epoch: int) -> int:
        """Append with this leader epoch from now on. Returns its start offset: the end of the log.

        The epoch is on the disk when this returns, even if nothing is ever appended in it.
        """
        state = self._state
        with state.lock:
            state.check_ready()
            if epoch < state.leader_epoch:
                raise InvalidInput(f"epoch {epoch} is over: the log has {state.leader_epoch}")
            state.epochs.assign(epoch, state.view.end_offset)
            state.leader_epoch = epoch
            state.is_following = False
            state.tell()
            return state.epochs.entries[-1].start_offset

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Return the largest epoch up to `epoch` and its end offset. With it, a follower finds where logs diverge."""
        return self._state.epochs.end_offset_for(epoch, self._state.view.end_offset)

    # --------------------------------------------------------------------------------------------------------- remove

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on. Returns whether there was anything to remove.

        A batch that contains `offset` is removed as a whole. Raises `OSError`; if that happens half-way, the log has a
        `failure`.
        """
        if offset < 0:
            raise InvalidInput(f"a log cannot be truncated to offset {offset}")
        state = self._state
        with state.lock:
            state.check_ready()
            state.owner.check_lock()
            if offset >= state.view.end_offset:
                state.epochs.truncate_from_end(state.view.end_offset)  # the epoch of a leader that appended nothing
                return False
            truncate(state, offset, state.clock())
            return True

    def truncate_to_epoch(self, epoch: int, end_offset: int) -> int:
        """Remove what a leader does not have, by what it says: it has `epoch` up to `end_offset`, and then another one.

        Returns the new log end offset. If this log does not know the epoch, its last epoch before that one remains. The
        leader has to be asked again then, for it may not have all of that. Raises as `truncate_to` does.
        """
        with self._state.lock:
            own = self.end_offset_for_epoch(epoch)
            if own.epoch == UNDEFINED:
                offset = end_offset
            else:
                offset = min(own.end_offset, end_offset) if own.epoch == epoch else own.end_offset
            self.truncate_to(min(offset, self._state.view.end_offset))
            return self._state.view.end_offset

    def delete_records_before(self, offset: int) -> int:
        """Move the start of the log to `offset`, or to the high watermark for -1. Returns the new start offset.

        This removes no files. `apply_retention` does that, whole segments at a time. Raises `OffsetOutOfRange` for an
        offset above the high watermark, and `LogError` if the topic's configuration does not let records be deleted.
        """
        state = self._state
        with state.lock:
            state.check_ready()
            view = state.view
            if not state.config.is_deleted:
                raise PolicyViolation(f"{state.partition}: cleanup.policy does not let records be deleted")
            if offset == NO_OFFSET:
                offset = view.high_watermark
            if not 0 <= offset <= view.high_watermark:
                raise OffsetOutOfRange(offset, view.start_offset, view.high_watermark)
            state.raise_start_offset(offset)
            return state.view.start_offset

    def follow_start(self, offset: int) -> int:
        """Move the start of the log to where the leader's log starts, at most to the high watermark.

        Returns the start offset. This removes no files, and does not ask whether the topic lets records be deleted: the
        leader has deleted them. A lower offset changes nothing.
        """
        state = self._state
        with state.lock:
            state.check_ready()
            view = state.view
            if offset > view.start_offset:
                state.raise_start_offset(min(offset, view.high_watermark))
            return state.view.start_offset

    def apply_retention(self, now_ms: int | None = None) -> list[Expired]:
        """Delete the segments that have expired by the retention policies. Returns them with the reason, oldest first.

        Nothing is deleted by guess: if the topic's configuration is not known, nothing is deleted at all. Nor is
        anything if the log begins in remote storage: its start would move past what is there, which would be lost.
        """
        state = self._state
        with state.lock:
            state.check_ready()
            if not state.config_is_known or state.remote_part is not None:
                return []
            now_ms = state.clock() if now_ms is None else now_ms
            expired = expired_segments(LogView.of(state.partition, state.config, state.view), now_ms)
            if expired:
                self.delete_oldest(len(expired), now_ms)
            return list(expired)

    def delete_oldest(self, count: int, now_ms: int | None = None) -> list[int]:
        """Delete the `count` oldest segments, whatever they hold. Returns their base offsets.

        On a full disk, the new start offset cannot be recorded first. Then they are deleted one by one, so that a crash
        leaves no hole: it is retention that makes room.
        """
        state = self._state
        with state.lock:
            state.check_ready()
            state.owner.check_lock()
            now_ms = state.clock() if now_ms is None else now_ms
            if count >= len(state.view.segments):
                roll_at_end(self._state, now_ms)
            view = state.view
            gone, stay = view.segments[:count], view.segments[count:]
            if not gone or not stay:
                return []
            is_recorded = True
            try:
                state.raise_start_offset(stay[0].base_offset)
            except OSError as error:
                if not is_full(error):
                    raise
                is_recorded = False
            state.change.unfinished = NOT_UNDOABLE
            state.segments.leave(gone, one_by_one=not is_recorded)
            state.publish(stay, state.view.start_offset, view.end_offset, view.high_watermark, view.generation)
            state.change.unfinished = SETTLED
            state.segments.put_away_leaving(state.removal(now_ms))
            return [segment.base_offset for segment in gone]

    @property
    def is_at_rest(self) -> bool:
        """Whether `delete_files` has nothing to do: no files are to be removed, and no change has to be settled."""
        change = self._state.change
        is_settled = change.unfinished == SETTLED and change.failure is None and change.is_open
        return is_settled and not self._state.segments.has_removed

    def delete_files(self, now_ms: int | None = None) -> int:
        """Remove the files of deleted segments whose delay is over. Returns the number of these segments.

        Appends go on meanwhile: a system may take long to remove a large file.
        """
        state = self._state
        segments = state.segments
        with state.lock:
            state.check_ready()
            now_ms = state.clock() if now_ms is None else now_ms
            segments.put_away_leaving(state.removal(now_ms))
            due = segments.due(now_ms)
            if due:
                state.owner.check_lock()
        for segment in due:
            segment.remove_deleted()
            with state.lock:
                segments.forget_removed(segment)
        return len(due)

    # -------------------------------------------------------------------------------------------------------- compact

    @property
    def is_compacting(self) -> bool:
        """Whether the log is being compacted now."""
        return self._compaction.is_running

    @property
    def cleaner_offset(self) -> int | None:
        """The offset up to which the log was compacted; None if it never was."""
        return self._state.checkpoints.cleaner_offset(self._state.partition)

    @property
    def uncleanable(self) -> FormatError | None:
        """The damage that keeps the log from being compacted; None if there is none."""
        return self._compaction.uncleanable

    def compaction_plan(self, now_ms: int | None = None) -> CompactionPlan:
        """Return what there is to compact, and whether it is due, for a log of a compacted topic.

        Raises `FormatError` for damaged data; the log is `uncleanable` then.
        """
        return self._compaction.plan(now_ms)

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

        This is one pass: if the map is too small for all keys, the next pass has more to do. Appends and reads go on
        meanwhile. Raises `LogError` if the topic is not compacted; `CompactionAborted` if the log was truncated or
        closed, or segments were deleted, meanwhile; `FormatError` for damaged data, and then the log is `uncleanable`;
        and `OSError`. No records are lost in any of these cases.
        """
        return self._compaction.run(
            now_ms, map_memory=map_memory, throttle=throttle, on_progress=on_progress, only_if_due=only_if_due
        )

    # ---------------------------------------------------------------------------------------------------------- close

    def close(self) -> None:
        """Close the log: write everything to the disk, and seal the active segment. Reads that have begun may finish.

        Raises `OSError` and `LockLost`; the log is closed nevertheless. A log with a `failure` is left as it is:
        opening it again repairs it. If a flush in the background has failed, and no change was refused since, this call
        raises its error. If another exception interrupts this call, call it again to finish. In a fork of
        the process that opened the log, nothing is written and nothing is raised.
        """
        self._close()

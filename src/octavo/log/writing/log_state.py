"""The state of a log that is open for writing: `LogState`.

It owns the view that readers see, the producers, the leader epochs and the segment files, and the order in which they
change. `Log` is its public face. The modules that change a log (`appender`, `truncation`,
`compaction.compacting`) work on it.

One thread at a time changes a log, under its lock. When `append` returns, the records are in the page cache and survive
a crash of the process. When `flush` returns, they are on the disk and survive a power cut. `unfinished` describes
what happens to a change that fails or is interrupted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from octavo.errors import OctavoError
from octavo.log.checkpoints import Checkpoints, Kept
from octavo.log.clock import Clock, Deadline
from octavo.log.config.log_config import LogConfig
from octavo.log.files.leader_epochs import LeaderEpochs
from octavo.log.names import LEADER_EPOCHS, TopicPartition
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.producer_state.producer_batch import ProducerBatch
from octavo.log.recovery.loading import Loaded, Loader, load_new
from octavo.log.recovery.recover import Recover
from octavo.log.recovery_report import OnProgress
from octavo.log.segment.batch_span import BatchSpan
from octavo.log.segment.segment import Segment
from octavo.log.storage import Storage
from octavo.log.tiers import RemotePart, remote_part
from octavo.log.view import View
from octavo.log.writing.flushing import Flushing
from octavo.log.writing.rolling import RollLimits
from octavo.log.writing.segments import LogSegments
from octavo.log.writing.truncation import take_back
from octavo.log.writing.unfinished import SETTLED, ChangeNote
from octavo.records import empty_batch
from octavo.records.layout import NO_TIMESTAMP, Buffer

_NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call


Stamp = tuple[View, int, bool, bool, bool]


class LogState:
    """One partition that is open for writing. It is changed under `lock`; readers look at `view` without it."""

    def __init__(
        self,
        partition: TopicPartition,
        config: LogConfig,
        checkpoints: Checkpoints,
        epochs: LeaderEpochs,
        loaded: Loaded,
        segments: LogSegments,
        *,
        leader_epoch: int,
        is_only_replica: bool,
        config_is_known: bool,
        may_have_gaps: bool,
        clock: Clock,
    ) -> None:
        latest = epochs.latest
        self.partition: Final = partition
        self.lock: Final = make_rlock()  # held while the log is changed
        self.compacting: Final = make_rlock()  # held while compacting; taken before `lock`
        self.clock: Final = clock
        self.checkpoints: Final = checkpoints
        self.owner: Final = checkpoints.owner
        self.change: Final = ChangeNote(partition, checkpoints.owner)
        self.segments: Final = segments
        self.epochs: Final = epochs
        self.leader_epoch = leader_epoch if latest is None else max(leader_epoch, latest.epoch)
        self.replay: Final = loaded.replay
        self.producers: Final = loaded.replay.states
        self.recovery: Final = loaded.report
        self.config = config
        self.config_is_known = config_is_known  # if not, nothing is deleted
        self.limits = RollLimits(config)
        self.flushing: Final = Flushing(self, may_have_gaps=may_have_gaps)
        self.follows_end = is_only_replica  # whether the high watermark follows the end of the log
        self.is_following = False  # only what a leader has written may be appended
        self.is_replica = False  # other brokers decide on the high watermark, too, and it may fall
        self.data_end: int | None = None  # where the data end, if a truncation inside a batch left them short
        self.is_ending = False  # the log is about to be closed
        self._is_closed = False  # closing is complete
        self.on_change: Callable[[], object] | None = None  # called when readers may see something else than before
        high_watermark = checkpoints.high_watermark(partition) or 0  # Kafka takes a missing one for 0
        self.view: View  # what readers see; always replaced as a whole
        self.publish(loaded.segments, loaded.start_offset, loaded.end_offset, high_watermark, 0)

    @classmethod
    def load(
        cls,
        folder: Path,
        partition: TopicPartition,
        config: LogConfig,
        checkpoints: Checkpoints,
        *,
        clean: bool,
        leader_epoch: int,
        is_only_replica: bool,
        config_is_known: bool,
        may_have_gaps: bool,
        storage: Storage,
        clock: Clock,
        on_progress: OnProgress | None,
        is_new: bool = False,
        recover: Recover = Recover.REFUSE,
    ) -> LogState:
        """Open a partition for writing. The caller holds the directory's lock and has called `check_partition`.

        is_only_replica: let readers see everything, as Kafka's leader of such a partition does. Otherwise they see up
            to the recorded high watermark: what comes after it may be on no other replica
        may_have_gaps: offsets may be missing between two segments, other than by a crash. See `Flushing`
        is_new: the folder was just made, so there is nothing to look for in it
        recover: what may be done where damage lies before sound batches
        """
        if is_new:
            epochs = LeaderEpochs.new(storage, folder / LEADER_EPOCHS)
            loaded = load_new(storage, folder, partition, clean=clean, now_ms=clock())
        else:
            epochs, damage = LeaderEpochs.open(storage, folder / LEADER_EPOCHS)
            loaded = Loader(
                storage,
                folder,
                partition,
                clean=clean,
                recovery_point=checkpoints.recovery_point(partition),
                may_have_gaps=may_have_gaps or not checkpoints.has_recovery_point(partition),
                start_offset=checkpoints.start_offset(partition),
                index_interval=config.index_interval_bytes,
                epochs=epochs,
                epochs_damage=damage,
                now_ms=clock(),
                on_progress=on_progress,
                recover=recover,
            ).load()
        if checkpoints.recovery_point(partition) > loaded.end_offset:  # flushed data were damaged, and cut off
            checkpoints.lower_recovery_point(partition, loaded.end_offset)
        log = cls(
            partition,
            config,
            checkpoints,
            epochs,
            loaded,
            LogSegments(storage, folder, recovery_point=loaded.end_offset, now_ms=clock()),
            leader_epoch=leader_epoch,
            is_only_replica=is_only_replica,
            config_is_known=config_is_known,
            may_have_gaps=may_have_gaps,
            clock=clock,
        )
        log.forget_files()
        return log

    # ---------------------------------------------------------------------------------------------------------- state

    def check_ready(self) -> None:
        """Check, at the beginning of a change and under the lock, that the log can be changed."""
        change, owner = self.change, self.owner
        is_sure = owner.mark[0] and monotonic() < owner.sure_until_s
        if is_sure and change.unfinished == SETTLED and change.failure is None and change.is_open:
            return  # nearly always
        change.check_open()
        if not is_sure:
            owner.check_lock()
        if change.unfinished != SETTLED:
            self.settle()
            change.check_open()

    def settle(self) -> None:
        """Settle the change that an exception has interrupted; see `ChangeNote.settle`."""
        self.change.settle(lambda end_offset: take_back(self, end_offset))

    def set_config(self, config: LogConfig, *, is_known: bool) -> None:
        """Change the configuration. `is_known`: whether records may be deleted because of it."""
        with self.lock:
            self.limits = RollLimits(config)
            self.config = config
            self.config_is_known = is_known

    def removal(self, now_ms: int) -> Deadline:
        """Return the time at which the files of a segment that is deleted now may be removed."""
        return Deadline(now_ms, self.config.file_delete_delay_ms)

    @property
    def stamp(self) -> Stamp:
        """What `kept` depends on: as long as this is equal, so is that."""
        segments = self.segments
        return (self.view, segments.recovery_point, segments.has_leaving, self.follows_end, self.is_replica)

    def kept(self) -> Kept:
        """Return the offsets of this log for the directory's checkpoints."""
        view = self.view
        is_seen = self.follows_end or self.is_replica or view.high_watermark > view.start_offset
        return Kept(
            self.segments.recovery_point,
            view.start_offset if self._start_is_told() else self._start_of_all(),
            view.high_watermark if is_seen else None,
        )

    def forget_files(self) -> None:
        """Close all files until they are needed again."""
        for segment in self.view.segments:
            segment.forget()

    # ----------------------------------------------------------------------------------------------------------- view

    def publish(
        self,
        segments: Sequence[Segment],
        start_offset: int,
        end_offset: int,
        high_watermark: int,
        generation: int,
        *,
        size: int | None = None,
        is_cut: bool = False,
    ) -> None:
        """Replace the view that readers see. `size`: the future size of the last segment, if it is about to be cut.

        `is_cut`: it is not known yet which transactions remain, so none counts as decided.
        """
        high_watermark = end_offset if self.follows_end else min(high_watermark, end_offset)
        high_watermark = max(high_watermark, start_offset)
        self.producers.on_high_watermark(high_watermark)
        is_undecided = is_cut and self.producers.has_any
        self.view = View(
            tuple(segments),
            tuple([segment.base_offset for segment in segments]),
            segments[-1].size if size is None else size,
            start_offset,
            end_offset,
            high_watermark,
            generation,
            start_offset if is_undecided else self.producers.first_unstable_offset,
        )
        self.tell()

    def tell(self) -> None:
        """Say that readers may see something else than before."""
        if self.on_change is not None:
            self.on_change()

    def set_high_watermark(self, offset: int) -> int:
        """Set the high watermark to `offset`, but keep it between the log's start and end. Returns the new one."""
        self.follows_end = False
        view = self.view
        offset = max(view.start_offset, min(offset, view.end_offset))
        self.producers.on_high_watermark(offset)
        self.view = view._replace(high_watermark=offset, first_unstable_offset=self.producers.first_unstable_offset)
        self.tell()
        return offset

    def raise_start_offset(self, offset: int) -> None:
        """Raise the start offset for readers, then on the disk. Retries a write that failed in an earlier call.

        The view is changed first, because the checkpoints take the start offset from it. If another thread writes them
        at this moment, it cannot put the old start offset back.
        """
        view = self.view
        if offset <= view.start_offset and self.remote_part is not None:
            return  # nothing that is here is meant, and the epochs of what is elsewhere are still needed
        if offset > view.start_offset:
            self.producers.on_high_watermark(offset)
            self.view = view = view._replace(
                start_offset=offset,
                high_watermark=max(view.high_watermark, offset),
                first_unstable_offset=self.producers.first_unstable_offset,
            )
            self.tell()
        if self._start_is_told():
            self.checkpoints.set_start_offset(self.partition, view.start_offset)
        self.epochs.truncate_from_start(view.start_offset)

    def _start_is_told(self) -> bool:
        """Return whether the start offset has to be recorded, because segments on the disk begin before it."""
        return self.view.start_offset > self.view.bases[0] or self.segments.has_leaving

    def _start_of_all(self) -> int | None:
        """Return the recorded start of a log that may be tiered: it is before the first segment here, and Kafka's."""
        may_be_tiered = self.config.remote_storage_enable or not self.config_is_known
        recorded = self.checkpoints.recorded_start(self.partition) if may_be_tiered else None
        return recorded if recorded is not None and recorded <= self.view.start_offset else None

    @property
    def remote_part(self) -> RemotePart | None:
        """The offsets that are in remote storage only; None if there are none."""
        known = self.config.remote_storage_enable or (False if self.config_is_known else None)
        return remote_part(
            self.partition,
            is_tiered=known,
            recorded=self.checkpoints.recorded_start(self.partition),
            epochs=self.epochs.entries,
            first=self.view.bases[0],
        )

    # ---------------------------------------------------------------------------------------------------------- write

    def write(
        self,
        parts: Sequence[Buffer],
        size: int,
        spans: Sequence[BatchSpan],
        producers: Sequence[ProducerBatch] = (),
    ) -> None:
        """Write batches to the active segment, then let readers see them.

        Producer states are updated in between, so that a batch of an open transaction never looks committed.
        """
        segments, bases, _, start_offset, _, high_watermark, generation, unstable = self.view
        segment = segments[-1]
        segment.append(parts, size, spans, self.config.index_interval_bytes)
        self.data_end = None
        end_offset = spans[-1].last_offset + 1
        if self.follows_end:
            high_watermark = end_offset
        if producers:
            states = self.producers
            for batch in producers:
                states.take(batch, segment.txn_index)
            unstable = states.first_unstable_at(high_watermark)
        fields = (segments, bases, segment.size, start_offset, end_offset, high_watermark, generation, unstable)
        self.view = _NEW(View, fields)
        if self.on_change is not None:  # not `tell`: this is done for every append
            self.on_change()
        if segment.size >= self.flushing.due_size:
            self.flushing.write_back()

    def fill_hole(self, start_offset: int) -> None:
        """Write an empty batch from `start_offset` to the end of the log, so that no segment seems to be missing."""
        end_offset = self.view.end_offset
        epoch = self.epochs.epoch_for_offset(start_offset)
        epoch = self.leader_epoch if epoch is None else epoch
        batch = empty_batch(base_offset=start_offset, last_offset=end_offset - 1, leader_epoch=epoch)
        span = BatchSpan(len(batch), start_offset, end_offset - 1, NO_TIMESTAMP, epoch, 2)
        self.write((batch,), len(batch), (span,))

    # ---------------------------------------------------------------------------------------------------------- close

    def close(self, *, is_deleted: bool = False) -> None:
        """Close the log as `Log.close` describes, but leave its data directory open.

        is_deleted: its files are about to be removed, so that nothing of them has to be on the disk
        """
        change = self.change
        if self.owner.is_elsewhere:
            change.is_open = False
            self.forget_files()
            return
        self.is_ending = True
        with self.compacting, self.lock:
            if self._is_closed:
                return
            change.is_open = False
            try:
                if not is_deleted:
                    if change.unfinished != SETTLED:
                        self.settle()
                    change.raise_unseen()
                    if change.failure is None:
                        self._finish(self.clock())
            except (OctavoError, OSError):
                self._is_closed = True
                raise
            finally:
                self.forget_files()
            self._is_closed = True

    def _finish(self, now_ms: int) -> None:
        """Write everything to the disk, and remove the files of segments that have left the log."""
        self.owner.check_lock()
        with self.change.or_fail():
            self._fill_hole_before_start()
            self.view.segments[-1].seal()
            self.flushing.flush(now_ms)
            if self.replay.take_snapshot(self.view.end_offset, sync=True):
                self.segments.sync_folder()
        with contextlib.suppress(OSError):  # these have left the log, and are removed when it is opened again
            self.segments.remove_all(now_ms)

    def _fill_hole_before_start(self) -> None:
        """Write a batch that marks the end of the log, if a truncation has left no data from the start offset on.

        A log that was closed cleanly and ends before its start offset would look as if its start offset were wrong.
        """
        if self.data_end is not None and self.data_end < self.view.start_offset:
            self.change.unfinished = self.view.end_offset
            self.fill_hole(self.data_end)
            self.change.unfinished = SETTLED

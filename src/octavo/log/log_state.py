"""The growing side of a log: append, roll, flush.

One thread at a time changes a log. When `append` returns, the records are in the page cache and survive a crash of the
process. When `flush` returns, they are on the disk and survive a power cut. A roll flushes the old segment before it
creates the new one, so that a power cut leaves a prefix of what was written.

A change that fails is undone, and the log is as it was. If it cannot be undone, because the disk fails even at what
takes no room, the log keeps the error in `failure` and refuses further changes. Its data are checked when it is opened
again.

The same holds for an exception from outside, such as `KeyboardInterrupt`. It may come between any two instructions,
also in an `except` or `finally`. So a change notes in `_unfinished` that it has begun before it touches anything, and
clears the note when it is over. The next change that finds a note settles it first: an append or a roll is undone, any
other change leaves the log with a `failure`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import AppendRefused, Closed, ErrorCode, InvalidInput, LogError
from octavo.log.append.validated import Validated
from octavo.log.clock import Clock
from octavo.log.config import LogConfig
from octavo.log.files.leader_epochs import EpochEnd, LeaderEpochs
from octavo.log.names import LOG, TopicPartition, base_offset_of
from octavo.log.origin import Origin
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.ownership.owner import Owner
from octavo.log.producer_state.producer_batch import ProducerBatch
from octavo.log.producer_state.replay import Replay
from octavo.log.producer_state.states import EXPIRATION_MS, ProducerStates
from octavo.log.readable_log import ReadableLog
from octavo.log.segment.batch_span import BatchSpan
from octavo.log.segment.index import OffsetIndex, TimeIndex
from octavo.log.segment.segment import Segment
from octavo.log.segment.transaction_index import TransactionIndex
from octavo.log.storage import Storage
from octavo.log.view import View
from octavo.records import empty_batch
from octavo.records.layout import MAX_INT32, NO_OFFSET, NO_TIMESTAMP, Buffer

if TYPE_CHECKING:
    from octavo.log.append.validator import Validator

_MAX_TIMESTAMP: Final[Callable[[BatchSpan], int]] = attrgetter("max_timestamp_ms")
_NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call

# Values of `_unfinished`. From 0 on it is the offset at which the log ended before an append or a roll.
SETTLED: Final = -2
NOT_UNDOABLE: Final = -1


class Appended(NamedTuple):
    """The offsets of appended batches, or of the duplicate that was found; -1 and -1 if there were no batches."""

    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic uses the time of appending; for a duplicate, its largest timestamp
    log_start_offset: int
    is_duplicate: bool = False  # it was appended before, and not again now


class AppendableLog(ReadableLog):
    """Append, roll and flush, for a log that is open for writing."""

    def __init__(
        self,
        folder: Path,
        partition: TopicPartition,
        config: LogConfig,
        epochs: LeaderEpochs,
        replay: Replay,
        owner: Owner,
        *,
        leader_epoch: int,
        storage: Storage,
        clock: Clock,
    ) -> None:
        self.folder: Final = folder
        self.partition: Final = partition
        self.failure: BaseException | None = None  # the error of a change that was not finished; no more follow
        self.recovery_point = 0  # everything before it is on the disk
        self.last_flush_ms = clock()
        self._storage = storage
        self._clock = clock
        self._epochs = epochs
        self._replay = replay
        self._producers = replay.states
        self._owner: Final = owner
        self._lock = make_rlock()  # held while the log is changed
        self._is_open = True
        self._unfinished = SETTLED  # set during a change, and left set by an exception from outside
        self._follows_end = True
        self._data_end: int | None = None  # set if below the end: a truncation cut through a batch
        latest = epochs.latest
        self._leader_epoch = leader_epoch if latest is None else max(leader_epoch, latest.epoch)
        self._set_config(config)

    def _set_config(self, config: LogConfig) -> None:
        self._validator: Validator | None = None  # made late: it imports NumPy, which a reader does not need
        self._max_offset_entries = config.segment_index_bytes // OffsetIndex.ENTRY_SIZE
        self._max_time_entries = config.segment_index_bytes // TimeIndex.ENTRY_SIZE - 1  # one is left for the roll
        self._roll_after_ms = config.max_segment_ms - config.random_jitter_ms()
        self._config = config  # last, so that after an exception in between, validators get the old configuration

    def advance_high_watermark(self, offset: int) -> int:
        """Set the high watermark to `offset`, at most to the log end offset. Returns the new high watermark.

        From now on, appends no longer advance it.
        """
        with self._lock:
            self._follows_end = False
            view = self._view
            offset = max(view.start_offset, min(offset, view.end_offset))
            self._producers.see_up_to(offset)
            first_unstable_offset = self._producers.first_unstable_offset
            self._view = view._replace(high_watermark=offset, first_unstable_offset=first_unstable_offset)
            return offset

    @property
    def producers(self) -> ProducerStates:
        """The state of the producers of the partition."""
        return self._producers

    def expire_producers(self, now_ms: int | None = None, *, expiration_ms: int = EXPIRATION_MS) -> list[int]:
        """Forget producers without an open transaction that wrote nothing for `expiration_ms`. Returns their ids."""
        with self._lock:
            return self._producers.expire(self._clock() if now_ms is None else now_ms, expiration_ms)

    # --------------------------------------------------------------------------------------------------------- append

    def append(self, batches: Buffer, *, origin: Origin = Origin.CLIENT, now_ms: int | None = None) -> Appended:
        """Append as the leader: check as Kafka's broker does, assign offsets, write.

        A single batch is checked as Kafka checks a client's. Several batches in one call are possible only here; each
        is checked in the same way. Either all are appended or none. None is appended if an idempotent producer has
        sent them before. Raises `AppendRefused`, with Kafka's error code, and `OSError`. After an `OSError` nothing
        was appended, unless it was a flush that failed (`flush.messages`): then the log has a `failure`.
        """
        with self._lock:
            self._check_ready()
            if now_ms is None:
                now_ms = self._clock()
            validator = self._validator or self._make_validator()
            checked = validator.assign(
                batches, offset=self._view.end_offset, leader_epoch=self._leader_epoch, now_ms=now_ms, origin=origin
            )
            if checked.producers:
                duplicate = self._producers.admit(checked.producers, origin)
                if duplicate is not None:
                    first, last, timestamp_ms = duplicate.first_offset, duplicate.last_offset, duplicate.timestamp_ms
                    return Appended(first, last, timestamp_ms, self._view.start_offset, is_duplicate=True)
            return self._append(checked, now_ms)

    def append_as_follower(self, batches: Buffer) -> Appended:
        """Append what a leader wrote, with the offsets and epochs that it assigned. Raises as `append` does."""
        with self._lock:
            self._check_ready()
            validator = self._validator or self._make_validator()
            return self._append(validator.check(batches, end_offset=self._view.end_offset), self._clock())

    def _make_validator(self) -> Validator:
        from octavo.log.append.validator import Validator

        self._validator = Validator(self._config)
        return self._validator

    def _append(self, checked: Validated, now_ms: int) -> Appended:
        spans = checked.spans
        view = self._view
        if not spans:
            return Appended(NO_OFFSET, NO_OFFSET, checked.append_time_ms, view.start_offset)
        limit = self._config.segment_bytes
        if checked.size > limit:
            _check_sizes(spans, limit)
        self._note_epochs(spans)
        first, last = spans[0], spans[-1]
        self._unfinished = view.end_offset
        try:
            if not self._must_roll(view.segments[-1], checked.size, spans, now_ms):
                self._write(checked.parts, checked.size, spans, checked.producers)
            elif checked.size <= limit and last.last_offset - first.base_offset <= MAX_INT32:
                self._roll(self._base_for(first), now_ms)
                self._write(checked.parts, checked.size, spans, checked.producers)
            else:
                self._write_one_by_one(checked, now_ms)
        except OSError:
            if self.failure is None:
                if self._view.end_offset != view.end_offset or self._is_ahead():
                    self._truncate(view.end_offset, now_ms)
                self._unfinished = SETTLED
            raise
        except BaseException:
            self._settle()
            raise
        self._unfinished = SETTLED
        if last.last_offset + 1 - self.recovery_point >= self._config.flush_messages:
            self._flush(now_ms)
        return _NEW(Appended, (first.base_offset, last.last_offset, checked.append_time_ms, view.start_offset, False))

    def _is_ahead(self) -> bool:
        """Return whether the active segment holds more than readers see. Producer states may include it already."""
        return self._view.segments[-1].size != self._view.size

    @abstractmethod
    def _truncate(self, offset: int, now_ms: int) -> None:
        """Remove what was appended from `offset` on."""

    def _write_one_by_one(self, checked: Validated, now_ms: int) -> None:
        """Write batches that do not fit into one segment together."""
        data = memoryview(b"".join(checked.parts))
        at = 0
        for span in checked.spans:
            if self._must_roll(self._view.segments[-1], span.size, (span,), now_ms):
                self._roll(self._base_for(span), now_ms)
            producers = [batch for batch in checked.producers if batch.base_offset == span.base_offset]
            self._write((data[at : at + span.size],), span.size, (span,), producers)
            at += span.size

    def _write(
        self,
        parts: Sequence[Buffer],
        size: int,
        spans: Sequence[BatchSpan],
        producers: Sequence[ProducerBatch] = (),
    ) -> None:
        """Write batches to the active segment, then let readers see them.

        Producer states are updated before that, so that a batch of an open transaction never looks committed.
        """
        view = self._view
        segment = view.segments[-1]
        segment.append(parts, size, spans, self._config.index_interval_bytes)
        self._data_end = None
        end_offset = spans[-1].last_offset + 1
        segments, bases, _, start_offset, _, high_watermark, generation, unstable = view
        high_watermark = end_offset if self._follows_end else high_watermark
        if producers:
            unstable = self._know(producers, segment.txn_index, high_watermark)
        fields = (segments, bases, segment.size, start_offset, end_offset, high_watermark, generation, unstable)
        self._view = _NEW(View, fields)

    def _know(self, producers: Sequence[ProducerBatch], index: TransactionIndex, high_watermark: int) -> int:
        """Update the producer states with these batches. Returns the first unstable offset, -1 if there is none."""
        states = self._producers
        for batch in producers:
            states.take(batch, index)
        states.see_up_to(high_watermark)
        return states.first_unstable_offset

    def _note_epochs(self, spans: Sequence[BatchSpan]) -> None:
        """Record the leader epochs of batches before these are written. Old messages have none, and clear them all."""
        latest = self._epochs.latest
        known = None if latest is None else latest.epoch
        if spans[0].leader_epoch == known == spans[-1].leader_epoch:
            return  # epochs never decrease: those in between are the same
        for span in spans:
            if span.magic < 2:
                self._epochs.clear()
                known = None
            elif span.leader_epoch != known and span.leader_epoch >= 0:
                self._epochs.assign(span.leader_epoch, span.base_offset)
                known = span.leader_epoch
                self._leader_epoch = max(self._leader_epoch, known)

    # ----------------------------------------------------------------------------------------------------------- roll

    def _must_roll(self, segment: Segment, size: int, spans: Sequence[BatchSpan], now_ms: int) -> bool:
        """Return whether these batches need a new segment (`LogSegment.shouldRoll`)."""
        return (
            segment.size > self._config.segment_bytes - size
            or (segment.size > 0 and self._waited_ms(segment, spans, now_ms) > self._roll_after_ms)
            or segment.offset_index.count >= self._max_offset_entries
            or segment.time_index.count >= self._max_time_entries
            or not segment.takes(spans[-1].last_offset)
        )

    @staticmethod
    def _waited_ms(segment: Segment, spans: Sequence[BatchSpan], now_ms: int) -> int:
        """Return the age of a segment, by the timestamps of its records if they have any."""
        first_ms = segment.first_timestamp_ms()
        if first_ms < 0:
            return now_ms - segment.created_ms
        return max(map(_MAX_TIMESTAMP, spans)) - first_ms

    def roll(self) -> int:
        """Begin a new segment at the end of the log, unless the active one is empty. Returns its base offset."""
        with self._lock:
            self._check_ready()
            self._roll_at_end(self._clock())
            return self._view.bases[-1]

    def _roll_at_end(self, now_ms: int) -> None:
        """Roll at the end of the log, as a change of its own that is settled if it is interrupted."""
        end_offset = self._unfinished = self._view.end_offset
        try:
            self._roll(end_offset, now_ms)
        except OSError:
            self._unfinished = SETTLED  # it has been undone, or the log has a failure
            raise
        except BaseException:
            self._settle()
            raise
        self._unfinished = SETTLED

    def _base_for(self, first: BatchSpan) -> int:
        """Return the base offset for a segment that begins with this batch. Old ones do not tell their first offset."""
        end_offset = self._view.end_offset
        return end_offset if first.magic < 2 else max(first.base_offset, end_offset)

    def _roll(self, base_offset: int, now_ms: int) -> None:
        """Seal the active segment, flush it to the disk, and create a new one."""
        self._owner.check_lock()
        active = self._view.segments[-1]
        if active.size == 0 and active.base_offset == base_offset:
            active.created_ms = now_ms
            return
        if self._data_end is not None:
            self._fill_hole(self._data_end, self._view.end_offset)
        active.seal()
        self._flush(now_ms, also_active=True)
        self._replay.take_snapshot(base_offset)
        preallocate = self._config.segment_bytes if self._config.preallocate else 0
        try:
            new = Segment.create(self._storage, self.folder, base_offset, created_ms=now_ms, preallocate=preallocate)
        except OSError:
            self._take_back_roll(base_offset)
            raise
        self._roll_after_ms = self._config.max_segment_ms - self._config.random_jitter_ms()
        view = self._view
        end_offset = max(view.end_offset, base_offset)
        self._publish([*view.segments, new], view.start_offset, end_offset, view.high_watermark, view.generation)
        active.forget()

    def _take_back_roll(self, base_offset: int) -> None:
        """Remove the files of a half-made segment, which would hide what is appended to the old one."""
        with self._or_fail():
            self._remove_files(base_offset)

    def _remove_files(self, base_offset: int) -> None:
        for path in Segment(self._storage, self.folder, base_offset, size=0, created_ms=0).files():
            self._storage.remove(path)

    def _fill_hole(self, start_offset: int, end_offset: int) -> None:
        """Write an empty batch over a range of offsets without records, so that no segment seems to be missing."""
        epoch = self._epochs.epoch_for_offset(start_offset)
        epoch = self._leader_epoch if epoch is None else epoch
        batch = empty_batch(base_offset=start_offset, last_offset=end_offset - 1, leader_epoch=epoch)
        span = BatchSpan(len(batch), start_offset, end_offset - 1, NO_TIMESTAMP, epoch, 2)
        self._write((batch,), len(batch), (span,))

    # ---------------------------------------------------------------------------------------------------------- flush

    def flush(self) -> None:
        """Write everything that is in the log now to the disk. Appends go on meanwhile.

        Raises `OSError`. Then it is uncertain what was written, and the log has a `failure`.
        """
        self._check_open()
        self._flush(self._clock())

    def _flush(self, now_ms: int, *, also_active: bool = False) -> None:
        """Sync the segments that reach beyond the recovery point, and raise that point.

        `also_active`: sync the active segment in any case, because its indexes have changed even if its data have not.
        """
        view = self._view
        active = view.segments[-1]
        behind = [
            segment
            for number, segment in enumerate(view.segments)
            if view.segment_end(number) > self.recovery_point or segment.is_new or (also_active and segment is active)
        ]
        names = [segment.name_count for segment in behind]  # before the sync: more files may be made meanwhile
        with self._or_fail():  # a system drops what it failed to write: a second sync would report success
            for segment in behind:
                try:
                    segment.sync()
                except FileNotFoundError:
                    if segment in self._view.segments:
                        raise  # otherwise it was deleted meanwhile
            if any(segment.is_new for segment in behind):
                self._storage.sync_folder(self.folder)
        with self._lock:
            for segment, name_count in zip(behind, names, strict=True):
                segment.synced_names = name_count
            if self._view.generation == view.generation:  # otherwise what was synced may be truncated and rewritten
                self.recovery_point = max(self.recovery_point, view.end_offset)
            self.last_flush_ms = now_ms

    # --------------------------------------------------------------------------------------------------------- epochs

    @property
    def leader_epoch(self) -> int:
        """The leader epoch that `append` gives to batches."""
        return self._leader_epoch

    @property
    def epochs(self) -> LeaderEpochs:
        """The leader epochs of the log, each with the offset at which it begins."""
        return self._epochs

    def become_leader(self, epoch: int) -> None:
        """Append with this leader epoch from now on. It starts at the end of the log."""
        with self._lock:
            self._check_ready()
            if epoch < self._leader_epoch:
                raise InvalidInput(f"epoch {epoch} is over: the log has {self._leader_epoch}")
            self._epochs.assign(epoch, self._view.end_offset)
            self._leader_epoch = epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Return where the largest epoch up to `epoch` ends. A follower uses it to find where its log diverged."""
        return self._epochs.end_offset_for(epoch, self._view.end_offset)

    # ---------------------------------------------------------------------------------------------------------- state

    @contextmanager
    def _or_fail(self) -> Iterator[None]:
        """Run steps that cannot be undone. If one fails, the log refuses changes until it is opened again."""
        try:
            yield
        except OSError as error:
            self.failure = error
            raise

    def _check_open(self) -> None:
        if not self._owner.mark[0]:
            self._owner.check()
        if not self._is_open:
            raise Closed(f"{self.partition} is closed")
        if self.failure is not None:
            raise LogError(f"{self.partition} takes no more since {self.failure}: close it and open it again")

    def _check_ready(self) -> None:
        """Check, at the beginning of a change and under the lock, that the log can be changed."""
        self._check_open()
        if self._unfinished != SETTLED:
            self._settle()
            self._check_open()

    def _settle(self) -> None:
        """Undo the change that an exception has interrupted, or else set the log's `failure`.

        The undoing may be interrupted as well. Then the change is neither done nor undone, and cannot be settled here.
        Raises `OSError`, and `LockLost` before anything is touched.
        """
        self._owner.check_lock()
        end_offset, self._unfinished = self._unfinished, NOT_UNDOABLE
        if end_offset == SETTLED:
            self._unfinished = SETTLED
        elif self.failure is None and end_offset != NOT_UNDOABLE:
            self._take_back(end_offset)
            self._unfinished = SETTLED
        elif self.failure is None:
            self.failure = LogError("a change of it was interrupted and left half done")

    def _take_back(self, end_offset: int) -> None:
        """Remove everything written from `end_offset` on, visible or not, and segment files that no view has."""
        try:
            for path in self.folder.glob("*" + LOG):
                base_offset = base_offset_of(path.name)
                if base_offset is not None and base_offset > self._view.bases[-1]:
                    self._remove_files(base_offset)
            self._truncate(end_offset, self._clock())
        except OSError as error:
            self.failure = error
            raise

    def _publish(
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
        """Replace the view that readers see. `size`: the end of the last segment, if it is about to be cut.

        `is_cut`: it is not known yet which transactions remain, so none counts as decided.
        """
        high_watermark = end_offset if self._follows_end else min(high_watermark, end_offset)
        high_watermark = max(high_watermark, start_offset)
        self._producers.see_up_to(high_watermark)
        is_undecided = is_cut and self._producers.has_any
        self._view = View(
            tuple(segments),
            tuple([segment.base_offset for segment in segments]),
            segments[-1].size if size is None else size,
            start_offset,
            end_offset,
            high_watermark,
            generation,
            start_offset if is_undecided else self._producers.first_unstable_offset,
        )


def _check_sizes(spans: Sequence[BatchSpan], limit: int) -> None:
    for span in spans:
        if span.size > limit:
            raise AppendRefused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {span.size:,} bytes does not fit into a segment of {limit:,}",
            )

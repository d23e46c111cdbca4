"""One partition: `Log`.

One thread at a time changes it, any number read meanwhile and wait for nothing. What `append` has returned from is in
the page cache, and survives the process; what `flush` has returned from is on the disk, and survives the power.

A roll flushes the old segment before there is a new one, and a truncation is on the disk before anything is written in
its place. So what a power cut leaves is always a prefix of what was written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self, overload

from octavo.errors import AppendRefused, ErrorCode, InvalidInput, LogError, OffsetOutOfRange
from octavo.log.checkpoints import Checkpoints, Kept
from octavo.log.config import LogConfig
from octavo.log.epochs import EpochEnd, LeaderEpochs
from octavo.log.index import OffsetIndex, TimeIndex
from octavo.log.loader import Loader
from octavo.log.names import LEADER_EPOCHS, SNAPSHOT, TopicPartition, base_offset_of
from octavo.log.readable import ReadableLog
from octavo.log.reading import View
from octavo.log.report import OnProgress, RecoveryReport
from octavo.log.retention import Expired, LogView, SegmentView, expired_segments
from octavo.log.segment import Segment
from octavo.log.span import BatchSpan, Origin, Validated
from octavo.log.storage import DISK, Storage
from octavo.records.layout import MAX_INT32, NO_OFFSET, Buffer

if TYPE_CHECKING:
    from octavo.log.validation import Validator
    from octavo.log.watched import WatchedLog

_MAX_TIMESTAMP: Final[Callable[[BatchSpan], int]] = attrgetter("max_timestamp_ms")
Clock = Callable[[], int]  # milliseconds since 1970


def wall_clock_ms() -> int:
    """The time of day."""
    return time.time_ns() // 1_000_000


class Appended(NamedTuple):
    """Where batches have been put; -1 and -1 where there were none."""

    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic's timestamps are those of appending
    log_start_offset: int


class Log(ReadableLog):
    """One partition on disk. `DataDirectory.log` gives it, or `Log.open` for a single one."""

    def __init__(
        self,
        folder: Path,
        partition: TopicPartition,
        config: LogConfig,
        checkpoints: Checkpoints,
        *,
        clean: bool,
        leader_epoch: int = 0,
        storage: Storage = DISK,
        clock: Clock = wall_clock_ms,
        config_is_known: bool = True,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Open it to be written; the caller has the directory's lock, and has had `check_partition` look at it."""
        self.folder: Final = folder
        self.partition: Final = partition
        self.config_is_known = config_is_known  # else nothing is deleted
        self._storage = storage
        self._clock = clock
        self._checkpoints = checkpoints
        self._lock = threading.RLock()  # of whoever changes the log
        self._epochs = LeaderEpochs(storage, folder / LEADER_EPOCHS)
        now_ms = clock()
        loaded = Loader(
            storage,
            folder,
            partition,
            clean=clean,
            recovery_point=checkpoints.recovery_point(partition),
            start_offset=checkpoints.start_offset(partition),
            index_interval=config.index_interval_bytes,
            epochs=self._epochs,
            now_ms=now_ms,
            on_progress=on_progress,
        ).load()
        self.recovery: Final[RecoveryReport] = loaded.report
        self.recovery_point = loaded.end_offset
        self.last_flush_ms = now_ms
        self._deleted: list[tuple[int, Segment]] = []  # put away, and when they may be removed
        self._is_open = True
        self.on_close: Callable[[], None] | None = None  # who gave this log alone has more to close
        self._follows_end = True
        latest = self._epochs.latest
        self._leader_epoch = leader_epoch if latest is None else max(leader_epoch, latest.epoch)
        self._set_config(config)
        self._publish(loaded.segments, loaded.start_offset, loaded.end_offset, loaded.end_offset, generation=0)

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
        on_progress: OnProgress | None = None,
    ) -> Log | WatchedLog:
        """One partition by itself. Takes the lock of its data directory, and uses that one's checkpoints.

        Without `config` it is the topic's, as the metadata in the directory have it. `read_only` needs no lock. Raises
        `LogError`, `FormatError` and `OSError`.
        """
        from octavo.log.directory import open_partition, watch_partition

        path = Path(folder)
        if read_only:
            return watch_partition(path, config, storage=storage)
        return open_partition(
            path, config, storage=storage, clock=clock, may_have_gaps=may_have_gaps, on_progress=on_progress
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---------------------------------------------------------------------------------------------------------- state

    @property
    def config(self) -> LogConfig:
        """How it is kept."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        with self._lock:
            self._set_config(config)
            self.config_is_known = True

    def _set_config(self, config: LogConfig) -> None:
        self._config = config
        self._validator: Validator | None = None  # brings NumPy, which a reader does without
        self._max_offset_entries = config.segment_index_bytes // OffsetIndex.ENTRY_SIZE
        self._max_time_entries = config.segment_index_bytes // TimeIndex.ENTRY_SIZE - 1  # one is for the roll
        self._roll_after_ms = config.max_segment_ms - config.random_jitter_ms()

    def advance_high_watermark(self, offset: int) -> int:
        """Let consumers see up to `offset`, at most to the end; from now on appends do not. What it is then."""
        with self._lock:
            self._follows_end = False
            view = self._view
            offset = max(view.start_offset, min(offset, view.end_offset))
            self._view = view._replace(high_watermark=offset)
            return offset

    def kept(self) -> Kept:
        """What the directory is to remember of this log."""
        view = self._view
        start_offset = view.start_offset if view.start_offset > view.bases[0] else None
        return Kept(self.recovery_point, start_offset, view.high_watermark)

    # --------------------------------------------------------------------------------------------------------- append

    def append(self, batches: Buffer, *, origin: Origin = Origin.CLIENT, now_ms: int | None = None) -> Appended:
        """Append as the leader: check as Kafka's broker does, assign offsets, write.

        One batch is judged as Kafka judges a client's; several are ours alone, each judged so. All or none are
        appended. Raises `AppendRefused`, with Kafka's error code; `OSError`, and then the log is as it was.
        """
        with self._lock:
            self._check_open()
            if now_ms is None:
                now_ms = self._clock()
            validator = self._validator or self._make_validator()
            checked = validator.assign(
                batches, offset=self._view.end_offset, leader_epoch=self._leader_epoch, now_ms=now_ms, origin=origin
            )
            return self._append(checked, now_ms)

    def append_as_follower(self, batches: Buffer) -> Appended:
        """Append what a leader wrote, with the offsets and epochs that it gave. Raises as `append` does."""
        with self._lock:
            self._check_open()
            validator = self._validator or self._make_validator()
            return self._append(validator.check(batches, end_offset=self._view.end_offset), self._clock())

    def _make_validator(self) -> Validator:
        from octavo.log.validation import Validator

        self._validator = Validator(self._config)
        return self._validator

    def _append(self, checked: Validated, now_ms: int) -> Appended:
        spans = checked.spans
        view = self._view
        if not spans:
            return Appended(NO_OFFSET, NO_OFFSET, checked.append_time_ms, view.start_offset)
        limit = self._config.segment_bytes
        if checked.size > limit:
            for span in spans:
                if span.size > limit:
                    raise AppendRefused(
                        ErrorCode.RECORD_LIST_TOO_LARGE,
                        f"a batch of {span.size:,} bytes does not fit into a segment of {limit:,}",
                    )
        self._note_epochs(spans)
        first, last = spans[0], spans[-1]
        try:
            if not self._must_roll(view.segments[-1], checked.size, spans, now_ms):
                self._write(checked.parts, checked.size, spans)
            elif checked.size <= limit and last.last_offset - first.base_offset <= MAX_INT32:
                self._roll(max(first.base_offset, view.end_offset), now_ms)
                self._write(checked.parts, checked.size, spans)
            else:
                self._write_one_by_one(checked, now_ms)
        except OSError:
            if self._view.end_offset != view.end_offset:
                self._truncate(view.end_offset, now_ms)
            raise
        if last.last_offset + 1 - self.recovery_point >= self._config.flush_messages:
            self.flush()
        return Appended(first.base_offset, last.last_offset, checked.append_time_ms, view.start_offset)

    def _write_one_by_one(self, checked: Validated, now_ms: int) -> None:
        """Write batches that do not go into one segment together."""
        data = memoryview(b"".join(checked.parts))
        at = 0
        for span in checked.spans:
            if self._must_roll(self._view.segments[-1], span.size, (span,), now_ms):
                self._roll(max(span.base_offset, self._view.end_offset), now_ms)
            self._write((data[at : at + span.size],), span.size, (span,))
            at += span.size

    def _write(self, parts: Sequence[Buffer], size: int, spans: Sequence[BatchSpan]) -> None:
        view = self._view
        segment = view.segments[-1]
        segment.append(parts, size, spans, self._config.index_interval_bytes)
        end_offset = spans[-1].last_offset + 1
        self._view = View(
            view.segments,
            view.bases,
            segment.size,
            view.start_offset,
            end_offset,
            end_offset if self._follows_end else view.high_watermark,
            view.generation,
        )

    def _note_epochs(self, spans: Sequence[BatchSpan]) -> None:
        """Know which leader wrote what, before it is written. Old messages tell no epoch, and make all unknown."""
        latest = self._epochs.latest
        known = None if latest is None else latest.epoch
        if spans[0].leader_epoch == known == spans[-1].leader_epoch:
            return  # epochs never fall: those between are the same
        for span in spans:
            if span.magic < 2:
                self._epochs.clear()
                known = None
            elif span.leader_epoch != known and span.leader_epoch >= 0:
                self._epochs.assign(span.leader_epoch, span.base_offset)
                known = span.leader_epoch

    # ----------------------------------------------------------------------------------------------------------- roll

    def _must_roll(self, segment: Segment, size: int, spans: Sequence[BatchSpan], now_ms: int) -> bool:
        """Whether these batches go into a new segment (`LogSegment.shouldRoll`)."""
        return (
            segment.size > self._config.segment_bytes - size
            or (segment.size > 0 and self._waited_ms(segment, spans, now_ms) > self._roll_after_ms)
            or segment.offset_index.count >= self._max_offset_entries
            or segment.time_index.count >= self._max_time_entries
            or not segment.takes(spans[-1].last_offset)
        )

    @staticmethod
    def _waited_ms(segment: Segment, spans: Sequence[BatchSpan], now_ms: int) -> int:
        """How old a segment is, by the timestamps of records where they have any."""
        first_ms = segment.first_timestamp_ms()
        if first_ms < 0:
            return now_ms - segment.created_ms
        return max(map(_MAX_TIMESTAMP, spans)) - first_ms

    def roll(self) -> int:
        """Begin a new segment at the end of the log, unless the active one is empty; its base offset."""
        with self._lock:
            self._check_open()
            self._roll(self._view.end_offset, self._clock())
            return self._view.bases[-1]

    def _roll(self, base_offset: int, now_ms: int) -> None:
        """Leave the active segment as it is to stay, on the disk, and make a new one."""
        view = self._view
        active = view.segments[-1]
        if active.size == 0 and active.base_offset == base_offset:
            active.created_ms = now_ms
            return
        active.seal()
        self._flush(now_ms, also_active=True)
        preallocate = self._config.segment_bytes if self._config.preallocate else 0
        new = Segment.create(self._storage, self.folder, base_offset, created_ms=now_ms, preallocate=preallocate)
        self._roll_after_ms = self._config.max_segment_ms - self._config.random_jitter_ms()
        end_offset = max(view.end_offset, base_offset)
        self._publish([*view.segments, new], view.start_offset, end_offset, view.high_watermark, view.generation)

    # ---------------------------------------------------------------------------------------------------------- flush

    def flush(self) -> None:
        """Have everything on the disk that is in the log now. Appends go on meanwhile."""
        self._check_open()
        self._flush(self._clock())

    def _flush(self, now_ms: int, *, also_active: bool = False) -> None:
        """Sync what is behind the recovery point, and set that. `also_active`: its indexes have changed without it."""
        view = self._view
        active = view.segments[-1]
        ends = (*view.bases[1:], view.end_offset)
        behind = [
            segment
            for segment, end in zip(view.segments, ends, strict=True)
            if end > self.recovery_point or segment.is_new or (also_active and segment is active)
        ]
        try:
            for segment in behind:
                segment.sync()
        except FileNotFoundError:
            if self._view.segments == view.segments:
                raise
            return  # deleted meanwhile, with all that was to be flushed of it
        if any(segment.is_new for segment in behind):
            self._storage.sync_folder(self.folder)
            for segment in behind:
                segment.is_new = False
        with self._lock:
            if self._view.generation == view.generation:  # else what was synced may have been cut, and written anew
                self.recovery_point = max(self.recovery_point, view.end_offset)
            self.last_flush_ms = now_ms

    # --------------------------------------------------------------------------------------------------------- epochs

    @property
    def leader_epoch(self) -> int:
        """The epoch that `append` gives to batches."""
        return self._leader_epoch

    @property
    def epochs(self) -> LeaderEpochs:
        """Which leader wrote what."""
        return self._epochs

    def become_leader(self, epoch: int) -> None:
        """Append from now on with this epoch, which starts at the end of the log."""
        with self._lock:
            self._check_open()
            if epoch < self._leader_epoch:
                raise InvalidInput(f"epoch {epoch} is over: the log has {self._leader_epoch}")
            self._epochs.assign(epoch, self._view.end_offset)
            self._leader_epoch = epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Where the largest epoch up to `epoch` ends in this log, for a follower that has to find where it diverged."""
        return self._epochs.end_offset_for(epoch, self._view.end_offset)

    # ------------------------------------------------------------------------------------------- truncate and delete

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on; whether there was anything. A batch that holds `offset` goes whole."""
        if offset < 0:
            raise InvalidInput(f"a log cannot be truncated to offset {offset}")
        with self._lock:
            self._check_open()
            if offset >= self._view.end_offset:
                self._epochs.truncate_from_end(self._view.end_offset)  # that of a leader who has appended nothing
                return False
            self._truncate(offset, self._clock())
            return True

    def _truncate(self, offset: int, now_ms: int) -> None:
        """Newest first, each step on the disk before the next, so that no crash leaves a hole."""
        self.recovery_point = min(self.recovery_point, offset)
        self._checkpoints.lower_recovery_point(self.partition, self.recovery_point)
        view = self._view
        if offset < view.start_offset:
            self._checkpoints.set_start_offset(self.partition, offset)
        if offset < view.bases[0]:
            self._start_anew(offset, now_ms)
            return
        stay = [segment for segment in view.segments if segment.base_offset <= offset]
        self._publish(stay, min(view.start_offset, offset), offset, view.high_watermark, view.generation + 1)
        for segment in reversed(view.segments[len(stay) :]):
            self._put_away([segment], now_ms)
            self._storage.sync_folder(self.folder)
        stay[-1].truncate_to(offset, now_ms)
        stay[-1].sync()
        self._epochs.truncate_from_end(offset)
        self._remove_snapshots(offset)
        view = self._view
        self._publish(stay, view.start_offset, offset, view.high_watermark, view.generation + 1)

    def _start_anew(self, offset: int, now_ms: int) -> None:
        """An empty log, that begins at `offset`."""
        view = self._view
        for segment in reversed(view.segments):
            self._put_away([segment], now_ms)
            self._storage.sync_folder(self.folder)
        self._epochs.clear()
        self._remove_snapshots(-1)
        new = Segment.create(self._storage, self.folder, offset, created_ms=now_ms)
        self._publish([new], offset, offset, offset, view.generation + 1)

    def _remove_snapshots(self, offset: int) -> None:
        """Remove what is known of producers at offsets that are no more."""
        for path in self.folder.glob("*" + SNAPSHOT):
            base_offset = base_offset_of(path.name)
            if base_offset is not None and base_offset > offset:
                self._storage.remove(path)

    def delete_records_before(self, offset: int) -> int:
        """Let the log start at `offset`; -1 for the high watermark. The start offset then.

        Nothing is removed but by `apply_retention`, which takes whole segments. Raises `OffsetOutOfRange` for what is
        behind the high watermark, and `LogError` where the topic's configuration does not have records deleted.
        """
        with self._lock:
            self._check_open()
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
        view = self._view
        if offset > view.start_offset:
            self._checkpoints.set_start_offset(self.partition, offset)
            self._view = view._replace(start_offset=offset)
            self._epochs.truncate_from_start(offset)

    def apply_retention(self, now_ms: int | None = None) -> list[Expired]:
        """Delete the segments that the retention policies let go; which and why, from the oldest on.

        Nothing goes by guess: where the topic's configuration is not known, nothing goes at all.
        """
        with self._lock:
            self._check_open()
            if not self.config_is_known:
                return []
            view = self._view
            expired = expired_segments(self._retention_view(view), self._clock() if now_ms is None else now_ms)
            if expired:
                self.delete_oldest(len(expired))
            return list(expired)

    def _retention_view(self, view: View) -> LogView:
        ends = (*view.bases[1:], view.end_offset)
        return LogView(
            partition=self.partition,
            config=self._config,
            start_offset=view.start_offset,
            end_offset=view.end_offset,
            high_watermark=view.high_watermark,
            segments=tuple(
                SegmentView(
                    base_offset=segment.base_offset,
                    next_offset=end,
                    size=segment.size,
                    largest_timestamp_ms=segment.largest.timestamp_ms,
                    last_modified_ms=segment.modified_ms(),
                )
                for segment, end in zip(view.segments, ends, strict=True)
            ),
        )

    def delete_oldest(self, count: int) -> list[int]:
        """Delete the `count` oldest segments, whatever they hold; their base offsets."""
        with self._lock:
            self._check_open()
            now_ms = self._clock()
            if count >= len(self._view.segments):
                self._roll(self._view.end_offset, now_ms)
            view = self._view
            gone, stay = view.segments[:count], view.segments[count:]
            if not gone or not stay:
                return []
            self._raise_start_offset(stay[0].base_offset)
            self._publish(list(stay), self._view.start_offset, view.end_offset, view.high_watermark, view.generation)
            self._put_away(gone, now_ms)
            self._storage.sync_folder(self.folder)  # a checkpoint of the start offset says no more than the names do
            return [segment.base_offset for segment in gone]

    def _put_away(self, segments: Sequence[Segment], now_ms: int) -> None:
        for segment in segments:
            segment.put_away()
            self._deleted.append((now_ms + self._config.file_delete_delay_ms, segment))

    def delete_files(self, now_ms: int | None = None) -> int:
        """Remove the files of deleted segments whose delay is over; how many segments that were."""
        with self._lock:
            now_ms = self._clock() if now_ms is None else now_ms
            due = [segment for due_ms, segment in self._deleted if due_ms <= now_ms]
            for segment in due:
                segment.remove_deleted()
            self._deleted = [(due_ms, segment) for due_ms, segment in self._deleted if due_ms > now_ms]
            return len(due)

    # ---------------------------------------------------------------------------------------------------------- close

    def close(self) -> None:
        """Have everything on the disk, and the files as they are to stay. Readers may finish what they read."""
        with self._lock:
            if not self._is_open:
                return
            self._view.segments[-1].seal()
            self._flush(self._clock(), also_active=True)
            for _, segment in self._deleted:
                segment.remove_deleted()
            self._deleted.clear()
            self._is_open = False
            for segment in self._view.segments:
                segment.forget()
        if self.on_close is not None:
            self.on_close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise LogError(f"{self.partition} is closed")

    def _publish(
        self, segments: Sequence[Segment], start_offset: int, end_offset: int, high_watermark: int, generation: int
    ) -> None:
        """Let readers see this from now on."""
        high_watermark = end_offset if self._follows_end else min(high_watermark, end_offset)
        self._view = View(
            tuple(segments),
            tuple([segment.base_offset for segment in segments]),
            segments[-1].size,
            start_offset,
            end_offset,
            max(high_watermark, start_offset),
            generation,
        )


class PolicyViolation(LogError):
    """The topic's configuration forbids it."""

    code = ErrorCode.POLICY_VIOLATION

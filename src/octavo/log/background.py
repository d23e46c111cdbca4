"""Periodic tasks of a data directory: flushes, retention, compaction, checkpoints, removal of deleted files, aborting
transactions that have timed out, and what is due in groups.

`run_once` runs the tasks that are due and returns, so any clock can drive it. `start` runs them in three threads: one
of them only compacts, because that may take long, and one only writes checkpoints, because readers of the directory
wait for them. A task that fails does not stop the others, and is tried again. There is one exception: a log whose data
are damaged is not compacted again until it is reopened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final, NamedTuple, Self

from octavo.errors import Closed, FormatError, OctavoError
from octavo.log.clock import Clock, Deadline, wall_clock_ms
from octavo.log.compaction.compacting import MAP_MEMORY
from octavo.log.compaction.scheduling import clean, filthiest
from octavo.log.compaction.stats import CompactionStats
from octavo.log.compaction.throttle import Throttle
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.log import Log
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from octavo.log.retention import Expired

# Kafka's defaults, by Kafka's names.
RETENTION_CHECK_INTERVAL_MS: Final = 300_000  # log.retention.check.interval.ms
CHECKPOINT_INTERVAL_MS: Final = 60_000  # log.flush.offset.checkpoint.interval.ms
PRODUCER_CHECK_INTERVAL_MS: Final = 600_000  # producer.id.expiration.check.interval.ms
INITIAL_DELAY_MS: Final = 30_000  # log.initial.task.delay.ms
TIMEOUT_CHECK_INTERVAL_MS: Final = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms

Failed = tuple[TopicPartition | None, OctavoError | OSError]  # None: a task of the directory itself


class BackgroundWork(NamedTuple):
    """The work that one call of `run_once` did."""

    flushed: list[TopicPartition]
    deleted: list[tuple[TopicPartition, Expired]]
    files_removed: int  # number of deleted segments and partitions whose files were removed
    checkpoints_written: bool
    failed: list[Failed]  # tasks that failed; they are tried again
    forgotten: list[tuple[TopicPartition, int]]  # producers that have been silent for too long
    cleaned: CompactionStats | None = None  # one call compacts at most one log


class Background:
    """The background tasks of one data directory."""

    def __init__(
        self,
        directory: DataDirectory,
        *,
        clock: Clock = wall_clock_ms,
        retention_check_interval_ms: int = RETENTION_CHECK_INTERVAL_MS,
        checkpoint_interval_ms: int = CHECKPOINT_INTERVAL_MS,
        initial_delay_ms: int = INITIAL_DELAY_MS,
        checkpoint_delay_ms: int | None = None,
        compaction: bool = True,
        map_memory: int = MAP_MEMORY,
        compaction_bytes_per_second: float | None = None,
        compaction_backoff_ms: int | None = None,
        on_failure: Callable[[str], object] | None = None,
    ) -> None:
        """Schedule the tasks; `start` or `run_once` runs them.

        `checkpoint_delay_ms`: until the first checkpoints, `initial_delay_ms` by default; `on_failure`: called in the
        threads with a sentence about a task that fails, once until it succeeds or fails for another reason;
        `compaction_backoff_ms`: log.cleaner.backoff.ms, for the thread that compacts; `compaction`: log.cleaner.enable;
        `map_memory`: log.cleaner.dedupe.buffer.size; `compaction_bytes_per_second`:
        log.cleaner.io.max.bytes.per.second, None for no limit.
        """
        self.last_error: Exception | None = None  # the last error in the threads
        self.last_clean: CompactionStats | None = None
        self._compaction = compaction
        self._map_memory = map_memory
        self._throttle = None if compaction_bytes_per_second is None else Throttle(compaction_bytes_per_second)
        self._directory = directory
        self._clock = clock
        self._retention_check_interval_ms = retention_check_interval_ms
        self._checkpoint_interval_ms = checkpoint_interval_ms
        now_ms = clock()
        self._next_retention = Deadline(now_ms, initial_delay_ms)
        self._next_producers = Deadline(now_ms, initial_delay_ms)
        self._next_checkpoints = Deadline(
            now_ms, initial_delay_ms if checkpoint_delay_ms is None else checkpoint_delay_ms
        )
        self._compaction_backoff_ms = compaction_backoff_ms
        self._on_failure = on_failure
        self._next_timeouts = Deadline(now_ms, TIMEOUT_CHECK_INTERVAL_MS)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def run_once(self, now_ms: int | None = None) -> BackgroundWork:
        """Run the tasks that are due at `now_ms`, and compact at most one log. A closed directory is left alone.

        Raises `WrongProcess` in a fork of the process that opened the directory, and `LockLost`.
        """
        self._directory.check_owner()
        now_ms = self._clock() if now_ms is None else now_ms
        done = self._maintain_all(now_ms)
        written = self._write_checkpoints(now_ms, done.failed)
        return done._replace(checkpoints_written=written, cleaned=self._clean_one(now_ms, done.failed))

    @property
    def uncleanable(self) -> dict[TopicPartition, FormatError]:
        """The logs that cannot be compacted, each with the reason."""
        return {log.partition: log.uncleanable for log in self._directory.logs if log.uncleanable is not None}

    def _clean_one(self, now_ms: int, failed: list[Failed]) -> CompactionStats | None:
        """Compact the log that needs it most, if any is due."""
        if not (self._compaction and self._directory.is_open):
            return None
        log = filthiest(self._directory.logs, now_ms, lambda *error: failed.append(error))
        if log is None:
            return None
        stats = None
        with _collecting_failures(failed, log.partition):
            stats = clean(log, now_ms, map_memory=self._map_memory, throttle=self._throttle)
            self.last_clean = stats or self.last_clean
        return stats

    def _maintain_all(self, now_ms: int) -> BackgroundWork:
        done = BackgroundWork([], [], 0, False, [], [])
        if not self._directory.is_open:
            return done
        removed = 0
        with _collecting_failures(done.failed, None):
            removed += self._directory.delete_files(now_ms)
        retention_is_due = self._next_retention.is_over(now_ms)
        for log in self._directory.logs:
            if log.is_at_rest and not retention_is_due and not _is_flush_due(log, now_ms):
                continue  # nearly all of them, nearly always
            with _collecting_failures(done.failed, log.partition):
                removed += self._maintain(log, now_ms, done, retention_is_due=retention_is_due)
        self._forget_producers(now_ms, done)
        if retention_is_due:
            self._next_retention = Deadline(now_ms, self._retention_check_interval_ms)
        self._abort_timed_out(now_ms, done.failed)
        self._look_after_groups(done.failed)
        return done._replace(files_removed=removed)

    def _write_checkpoints(self, now_ms: int, failed: list[Failed]) -> bool:
        """Write the checkpoints if they are due. Files whose content has not changed are not written."""
        if not self._next_checkpoints.is_over(now_ms) or not self._directory.is_open:
            return False
        try:
            self._directory.write_checkpoints()
        except (OctavoError, OSError) as error:
            failed.append((None, error))
            return False
        self._next_checkpoints = Deadline(now_ms, self._checkpoint_interval_ms)
        return True

    def _abort_timed_out(self, now_ms: int, failed: list[Failed]) -> None:
        """Abort transactions that have been open too long. Readers of committed data cannot get past them."""
        is_due = self._next_timeouts.is_over(now_ms) and self._directory.is_in_charge
        if is_due and TRANSACTION_STATE in self._directory.topics:
            self._next_timeouts = Deadline(now_ms, TIMEOUT_CHECK_INTERVAL_MS)
            with _collecting_failures(failed, None):
                self._directory.coordinator.abort_timed_out(now_ms)

    def _look_after_groups(self, failed: list[Failed]) -> None:
        """Have happen what is due in groups that are in use. A broker looks after them in its own time, too."""
        if self._directory.is_in_charge and CONSUMER_OFFSETS in self._directory.topics:
            with _collecting_failures(failed, None):
                self._directory.coordinator.tick()

    def _maintain(self, log: Log, now_ms: int, done: BackgroundWork, *, retention_is_due: bool) -> int:
        """Run the tasks that are due for one log. Returns the number of segments whose files were removed."""
        if _is_flush_due(log, now_ms):
            log.flush()
            done.flushed.append(log.partition)
        if retention_is_due and not log.is_compacting:  # retention would interrupt the compaction
            done.deleted.extend((log.partition, expired) for expired in log.apply_retention(now_ms))
        return log.delete_files(now_ms)

    def _forget_producers(self, now_ms: int, done: BackgroundWork) -> None:
        if self._next_producers.is_over(now_ms):
            self._next_producers = Deadline(now_ms, PRODUCER_CHECK_INTERVAL_MS)
            for log in self._directory.logs:
                done.forgotten.extend((log.partition, producer) for producer in log.expire_producers(now_ms))

    def start(self, interval_s: float = 1.0) -> None:
        """Start threads that run due tasks every `interval_s` seconds until `stop`. Raises like `run_once`."""
        self._directory.check_owner()
        if self._threads:
            return
        self._stop.clear()
        backoff_ms = self._compaction_backoff_ms
        works = (
            ("background", self._maintain_in_thread, interval_s),
            ("cleaner", self._clean_in_thread, interval_s if backoff_ms is None else backoff_ms / 1000),
            ("checkpoints", self._checkpoint_in_thread, min(interval_s, self._checkpoint_interval_ms / 1000)),
        )
        for name, work, pause_s in works:
            thread = threading.Thread(target=self._run, args=(pause_s, work), name=f"octavo-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop_soon(self) -> None:
        """Have the threads end, without waiting for them. Closing the directory interrupts a compaction."""
        self._stop.set()

    def stop(self) -> None:
        """Stop the threads and wait for them. A compaction that is under way is finished first.

        A fork does not have its parent's threads, so there is nothing to wait for.
        """
        if self._directory.is_elsewhere:
            self._threads.clear()
            return
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _run(self, interval_s: float, work: Callable[[], list[Failed]]) -> None:
        said: set[str] = set()
        while not self._stop.wait(min(interval_s, threading.TIMEOUT_MAX)):
            failed: list[Failed | tuple[None, Exception]] = []
            try:
                failed += work()
            except Exception as error:  # nobody would notice that the thread has ended
                failed.append((None, error))
            said = self._tell(failed, said)

    def _tell(self, failed: Sequence[tuple[TopicPartition | None, Exception]], said: set[str]) -> set[str]:
        """Tell of what has failed and was not in `said`. Returns what has failed."""
        sentences = set()
        for partition, error in failed:
            if isinstance(error, Closed):
                continue  # its topic was deleted meanwhile
            self.last_error = error
            what = "work in the background" if partition is None else f"{partition}: work in the background"
            sentences.add(f"{what} failed, and is tried again: {error}")
        if self._on_failure is not None and not self._stop.is_set():
            for sentence in sorted(sentences - said):
                self._on_failure(sentence)
        return sentences

    def _maintain_in_thread(self) -> list[Failed]:
        return self._maintain_all(self._clock()).failed

    def _checkpoint_in_thread(self) -> list[Failed]:
        failed: list[Failed] = []
        self._write_checkpoints(self._clock(), failed)
        return failed

    def _clean_in_thread(self) -> list[Failed]:
        failed: list[Failed] = []
        while self._clean_one(self._clock(), failed) is not None and not self._stop.is_set():
            pass  # another log may be due right away
        return failed

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _is_flush_due(log: Log, now_ms: int) -> bool:
    since_flush_ms = abs(now_ms - log.last_flush_ms)  # below 0 if the clock was set back
    return since_flush_ms >= log.config.flush_ms and log.recovery_point < log.end_offset


@contextmanager
def _collecting_failures(failed: list[Failed], partition: TopicPartition | None) -> Iterator[None]:
    try:
        yield
    except (OctavoError, OSError) as error:
        failed.append((partition, error))

"""What a data directory needs done from time to time: flushes, retention, checkpoints, the removal of deleted files.

`run_once` does what is due, and nothing by itself: whoever has a clock can drive it. `start` has a thread do so. What
cannot be done keeps nothing else from being done, and is tried again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, NamedTuple, Self

from octavo.errors import OctavoError
from octavo.log.directory import DataDirectory
from octavo.log.log import Clock, Log, wall_clock_ms
from octavo.log.names import TopicPartition
from octavo.log.retention import Expired

# Kafka's defaults, by Kafka's names.
RETENTION_CHECK_INTERVAL_MS: Final = 300_000  # log.retention.check.interval.ms
CHECKPOINT_INTERVAL_MS: Final = 60_000  # log.flush.offset.checkpoint.interval.ms
INITIAL_DELAY_MS: Final = 30_000  # log.initial.task.delay.ms

Failed = tuple[TopicPartition | None, OctavoError | OSError]  # None: the directory's own


class Done(NamedTuple):
    """What one step did."""

    flushed: list[TopicPartition]
    deleted: list[tuple[TopicPartition, Expired]]
    files_removed: int  # of how many deleted segments and partitions
    checkpoints_written: bool
    failed: list[Failed]  # what could not be done; it is tried again


class Background:
    """The tasks of one directory."""

    def __init__(
        self,
        directory: DataDirectory,
        *,
        clock: Clock = wall_clock_ms,
        retention_check_interval_ms: int = RETENTION_CHECK_INTERVAL_MS,
        checkpoint_interval_ms: int = CHECKPOINT_INTERVAL_MS,
        initial_delay_ms: int = INITIAL_DELAY_MS,
    ) -> None:
        self.last_error: Exception | None = None  # what the thread last could not do
        self._directory = directory
        self._clock = clock
        self._retention_check_interval_ms = retention_check_interval_ms
        self._checkpoint_interval_ms = checkpoint_interval_ms
        self._next_retention_ms = self._next_checkpoint_ms = clock() + initial_delay_ms
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def run_once(self, now_ms: int | None = None) -> Done:
        """Do what is due at `now_ms`; nothing once the directory is closed."""
        now_ms = self._clock() if now_ms is None else now_ms
        done = Done([], [], 0, False, [])
        if not self._directory.is_open:
            return done
        removed = 0
        with _noting(done.failed, None):
            removed += self._directory.delete_files(now_ms)
        retention_is_due = now_ms >= self._next_retention_ms
        for log in self._directory.logs:
            with _noting(done.failed, log.partition):
                removed += self._tend(log, now_ms, done, retention_is_due=retention_is_due)
        if retention_is_due:
            self._next_retention_ms = now_ms + self._retention_check_interval_ms
        checkpoints_written = False
        if now_ms >= self._next_checkpoint_ms:
            with _noting(done.failed, None):
                self._directory.write_checkpoints()
                checkpoints_written = True
                self._next_checkpoint_ms = now_ms + self._checkpoint_interval_ms
        return done._replace(files_removed=removed, checkpoints_written=checkpoints_written)

    def _tend(self, log: Log, now_ms: int, done: Done, *, retention_is_due: bool) -> int:
        """Do what is due for one log; the files of how many segments were removed."""
        if now_ms - log.last_flush_ms >= log.config.flush_ms and log.recovery_point < log.end_offset:
            log.flush()
            done.flushed.append(log.partition)
        if retention_is_due:
            done.deleted.extend((log.partition, expired) for expired in log.apply_retention(now_ms))
        return log.delete_files(now_ms)

    def start(self, interval_s: float = 1.0) -> None:
        """Have a thread do what is due, every so often, until `stop`."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, args=(interval_s,), name="octavo-background", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait for it."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _run(self, interval_s: float) -> None:
        while not self._stop.wait(interval_s):
            try:
                for _, error in self.run_once().failed:
                    self.last_error = error
            except Exception as error:  # a thread that ends is noticed by nobody
                self.last_error = error

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@contextmanager
def _noting(failed: list[Failed], partition: TopicPartition | None) -> Iterator[None]:
    try:
        yield
    except (OctavoError, OSError) as error:
        failed.append((partition, error))

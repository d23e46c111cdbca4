"""What a data directory needs done from time to time: flushes, retention, checkpoints, the removal of deleted files.

`run_once` does what is due, and nothing by itself: whoever has a clock can drive it. `start` has a thread do so.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, NamedTuple, Self

from octavo.errors import OctavoError
from octavo.log.directory import DataDirectory
from octavo.log.log import Clock, wall_clock_ms
from octavo.log.names import TopicPartition
from octavo.log.retention import Expired

# Kafka's defaults, by Kafka's names.
RETENTION_CHECK_INTERVAL_MS: Final = 300_000  # log.retention.check.interval.ms
CHECKPOINT_INTERVAL_MS: Final = 60_000  # log.flush.offset.checkpoint.interval.ms
INITIAL_DELAY_MS: Final = 30_000  # log.initial.task.delay.ms


class Done(NamedTuple):
    """What one step did."""

    flushed: list[TopicPartition]
    deleted: list[tuple[TopicPartition, Expired]]
    files_removed: int  # of how many deleted segments and partitions
    checkpoints_written: bool
    failed: list[tuple[TopicPartition, OctavoError | OSError]]  # what could not be done; it is tried again


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
        self._directory = directory
        self._clock = clock
        self._retention_check_interval_ms = retention_check_interval_ms
        self._checkpoint_interval_ms = checkpoint_interval_ms
        self._next_retention_ms = self._next_checkpoint_ms = clock() + initial_delay_ms
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def run_once(self, now_ms: int | None = None) -> Done:
        """Do what is due at `now_ms`. What one log cannot do does not keep the others from it."""
        now_ms = self._clock() if now_ms is None else now_ms
        done = Done([], [], 0, False, [])
        removed = self._directory.delete_files(now_ms)
        retention_is_due = now_ms >= self._next_retention_ms
        for log in self._directory.logs:
            try:
                if now_ms - log.last_flush_ms >= log.config.flush_ms and log.recovery_point < log.end_offset:
                    log.flush()
                    done.flushed.append(log.partition)
                if retention_is_due:
                    done.deleted.extend((log.partition, expired) for expired in log.apply_retention(now_ms))
                removed += log.delete_files(now_ms)
            except (OctavoError, OSError) as error:
                done.failed.append((log.partition, error))
        if retention_is_due:
            self._next_retention_ms = now_ms + self._retention_check_interval_ms
        checkpoints_are_due = now_ms >= self._next_checkpoint_ms
        if checkpoints_are_due:
            self._directory.write_checkpoints()
            self._next_checkpoint_ms = now_ms + self._checkpoint_interval_ms
        return done._replace(files_removed=removed, checkpoints_written=checkpoints_are_due)

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
            self.run_once()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

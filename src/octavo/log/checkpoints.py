"""What a data directory remembers of its partitions between two openings: three small files, for all of them together.

The recovery point says up to where a partition needs no check after a crash. It may be too low, and must never be too
high: it is lowered on the disk before a log is truncated, and raised whenever there is time. The start offset is raised
on the disk before segments below it go, so that a crash amid their deletion leaves no hole.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from octavo.log.checkpoint import LOG_START, RECOVERY_POINT, REPLICATION, read_offsets, write_offsets
from octavo.log.names import TopicPartition
from octavo.log.small_file import CorruptFile
from octavo.log.storage import Storage


class Kept(NamedTuple):
    """What is remembered of one partition."""

    recovery_point: int
    start_offset: int | None  # None: where its first segment begins
    high_watermark: int


class Checkpoints:
    """The checkpoints of one folder."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        self._storage = storage
        self._folder = folder
        self._lock = threading.Lock()
        # As Kafka does with these two, one that cannot be read is taken for empty: that costs time, and no data.
        self._recovery_points = self._read_or_nothing(RECOVERY_POINT)
        self._start_offsets = self._read_or_nothing(LOG_START)
        self._high_watermarks = read_offsets(storage, folder / REPLICATION)

    def _read_or_nothing(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._storage, self._folder / name)
        except CorruptFile:
            return {}

    def recovery_point(self, partition: TopicPartition) -> int:
        """Up to where the partition is on the disk."""
        return self._recovery_points.get(partition, 0)

    def start_offset(self, partition: TopicPartition) -> int:
        """The first offset that readers may have."""
        return self._start_offsets.get(partition, 0)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The high watermark as it was last written; None where it never was."""
        return self._high_watermarks.get(partition)

    def lower_recovery_point(self, partition: TopicPartition, offset: int) -> None:
        """Have the recovery point on the disk at `offset` or below."""
        with self._lock:
            if self._recovery_points.get(partition, 0) > offset:
                self._recovery_points[partition] = offset
                write_offsets(self._storage, self._folder / RECOVERY_POINT, self._recovery_points)

    def set_start_offset(self, partition: TopicPartition, offset: int) -> None:
        """Have the start offset on the disk."""
        with self._lock:
            if self._start_offsets.get(partition) != offset:
                self._start_offsets[partition] = offset
                write_offsets(self._storage, self._folder / LOG_START, self._start_offsets)

    def write(self, kept: Iterable[tuple[TopicPartition, Kept]]) -> None:
        """Have what is to be remembered of these partitions on the disk; of all others it stays as it is."""
        with self._lock:
            for partition, (recovery_point, start_offset, high_watermark) in kept:
                self._recovery_points[partition] = recovery_point
                self._high_watermarks[partition] = high_watermark
                if start_offset is None:
                    self._start_offsets.pop(partition, None)
                else:
                    self._start_offsets[partition] = start_offset
            self._write_all()

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Remember nothing of these partitions."""
        with self._lock:
            for partition in partitions:
                for offsets in (self._recovery_points, self._start_offsets, self._high_watermarks):
                    offsets.pop(partition, None)
            self._write_all()

    def _write_all(self) -> None:
        write_offsets(self._storage, self._folder / RECOVERY_POINT, self._recovery_points)
        write_offsets(self._storage, self._folder / LOG_START, self._start_offsets)
        write_offsets(self._storage, self._folder / REPLICATION, self._high_watermarks)

"""Append staged batches to a log, exactly as they were planned: `StagedBatches`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from octavo.errors import CorruptFile
from octavo.log.log import Log
from octavo.log.names import TopicPartition
from octavo.log.staging.files import StagedFiles
from octavo.log.staging.journal import PendingCommit, PendingPartition
from octavo.log.staging.windows import Window, WindowReader
from octavo.log.storage import Storage
from octavo.records.kernels import scan


class StagedBatches:
    """The batches of a pending commit, as they are in the staged files."""

    def __init__(self, pending: PendingCommit, folder: Path, storage: Storage, *, sync: bool = True) -> None:
        """Read the staged files of `pending`, which are in `folder`. `sync`: logs will be flushed after an append."""
        self.ends: Final[dict[TopicPartition, int]] = {}  # the end of each log after the last append to it
        self._folder: Final = folder
        self._names: Final = pending.files
        self._keep_offsets: Final = pending.keep_offsets
        self._sync: Final = sync
        self._files: Final = StagedFiles(folder, storage)

    def windows(self, partition: PendingPartition, leader_epoch: int) -> Iterator[Window]:
        """Yield the batches for one partition with their offsets, from the partition's `base_offset` on."""
        offset = partition.base_offset
        reader = WindowReader()
        for piece in partition.pieces:
            for window in reader.read(self._files.open(self._names[piece.file]), piece.position, piece.size):
                window.set_epoch(leader_epoch)
                if not self._keep_offsets:
                    window.set_offsets(offset)
                offset = int(window.rows[-1, scan.LAST_OFFSET]) + 1
                yield window

    def verify(self, partition: PendingPartition) -> None:
        """Check that the batches are those that were planned. Raises `CorruptFile`."""
        digest = 0
        for window in self.windows(partition, 0):
            digest = window.digest(digest)
            if window.first_wrong_checksum() is not None:
                digest = -1
                break
        if digest != partition.digest:
            path = self._folder / self._names[partition.pieces[0].file]
            raise CorruptFile(path, 0, f"the staged batches for {partition.of} have changed")

    def append(self, partition: PendingPartition, log: Log) -> None:
        """Append all batches to the log. Raises `AppendRefused` if the log does not end where it did, and `OSError`."""
        if self._keep_offsets and log.start_offset == log.end_offset < partition.base_offset:
            log.begin_at(partition.base_offset)
            self.ends[log.partition] = partition.base_offset
        for window in self.windows(partition, log.leader_epoch):
            first = 0
            while first < len(window.rows):
                end = _end_of_append(window, first, log)
                done = log.append_as_follower(window.part(first, end), covers_gaps=True)
                self.ends[log.partition] = done.last_offset + 1
                first = end
            if self._sync:
                log.begin_flush()


def _end_of_append(window: Window, first: int, log: Log) -> int:
    """Return the row before which an append should end, so that segments roll as if batches came one by one.

    What is appended together goes to one segment. So it should fit into the rest of the active segment, or else into
    the next one; and its timestamps should not be further apart than those of a segment may be.
    """
    rows = window.rows[first:]
    sizes = np.cumsum(rows[:, scan.SIZE])
    limit = log.config.segment_bytes
    count = int(np.searchsorted(sizes, limit - log.active_size, "right")) or int(np.searchsorted(sizes, limit, "right"))
    times = np.maximum.accumulate(rows[:, scan.MAX_TIMESTAMP])
    in_time = int(np.searchsorted(times - times[0], log.config.max_segment_ms, "right"))
    return first + max(1, min(count, in_time))

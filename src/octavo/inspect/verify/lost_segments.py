"""The rule about segments that are lost in the middle of a log.

A gap between two segments alone proves nothing: compaction leaves gaps, and so does a truncation inside a batch. But a
producer numbers its batches. If its numbers jump at the gap, too, where nothing was ever compacted, batches are lost.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from octavo.inspect.verify.batch_columns import (
    BASE_OFFSET,
    BASE_SEQUENCE,
    COUNT,
    LAST_OFFSET,
    MAGIC,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    Table,
)
from octavo.inspect.verify.metadata_topics import is_only_deleted
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.log.names import LOG, file_name
from octavo.log.partition_folders import METADATA_PARTITION

LOST: Final = Rule.declare(
    "segment-lost",
    "segment",
    means="Offsets and batches of a producer are missing before a segment of a topic that is not compacted.",
    repair="Restore the segments in between from another replica; Kafka itself goes on without them.",
)


class LostSegments:
    """Looks for gaps between segments."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        metadata = folder.path.absolute().parent / METADATA_PARTITION.folder
        self._is_whole = metadata.is_dir()  # whether no offset is missing inside a segment; without metadata, no matter
        self._end: int | None = None
        self._gap: Problem | None = None  # before the segment that is read now
        self._lost: list[Problem] = []
        self._last: dict[int, tuple[int, int]] = {}  # of each producer: epoch and next sequence number
        self._seen: set[int] = set()  # producers after the gap

    def begin(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Compare the begin of a segment with the end of the one before."""
        self._gap = None
        self._seen.clear()
        if self._end is not None and segment.base_offset > self._end:
            found = f"the segment before ends at {self._end}"
            name = file_name(segment.base_offset, LOG)
            self._gap = LOST.broken(name, position=0, offset=segment.base_offset, found=found)
            self._end = segment.base_offset
        return ()

    def batches(self, table: Table) -> tuple[Problem, ...]:
        """Note the numbers of producers, and compare them after a gap."""
        if not self._is_whole:
            return ()
        bases, lasts = table[:, BASE_OFFSET], table[:, LAST_OFFSET]
        expected = np.append(bases[0] if self._end is None else self._end, lasts[:-1] + 1)
        is_full = (table[:, MAGIC] < 2) | (table[:, COUNT] == lasts - bases + 1)
        self._is_whole = bool((bases == expected).all() and is_full.all())
        self._end = int(lasts[-1]) + 1
        rows = table[(table[:, MAGIC] == 2) & (table[:, PRODUCER_ID] >= 0) & (table[:, BASE_SEQUENCE] >= 0)]
        if self._gap is not None:
            self._compare(rows)
        _, firsts = np.unique(rows[::-1, PRODUCER_ID], return_index=True)
        for producer_id, epoch, sequence, base, last in rows[::-1][firsts][:, _NUMBERS].tolist():
            self._last[producer_id] = epoch, (sequence + last - base + 1) % (1 << 31)
        return ()

    def _compare(self, rows: Table) -> None:
        _, firsts = np.unique(rows[:, PRODUCER_ID], return_index=True)
        for producer_id, epoch, sequence, _, _ in rows[firsts][:, _NUMBERS].tolist():
            known = self._last.get(producer_id)
            if producer_id not in self._seen and known is not None and known[0] == epoch and known[1] < sequence:
                assert self._gap is not None
                if not self._lost or self._lost[-1] is not self._gap:
                    self._lost.append(self._gap)
            self._seen.add(producer_id)

    def end(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Note whether the segment can be believed."""
        self._is_whole = self._is_whole and segment.is_sound and self._end is not None
        return ()

    def finish(self) -> list[Problem]:
        """Report the gaps, if the metadata say that nothing was compacted."""
        partition = self._folder.partition
        if not self._lost or not self._is_whole or partition is None:
            return []
        return self._lost if is_only_deleted(self._folder.path.absolute().parent, partition.topic) else []


_NUMBERS: Final = [PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, BASE_OFFSET, LAST_OFFSET]

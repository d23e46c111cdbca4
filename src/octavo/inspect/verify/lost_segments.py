"""The rules about batches that are lost in the middle of a log.

A gap between two batches alone proves nothing: compaction leaves gaps, and so does a truncation inside a batch. But a
producer numbers its batches. If its numbers jump at the gap, too, where nothing was ever compacted, batches are lost.
So they are if the index of the segment names positions that the batches there do not have: bytes were cut out.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from octavo.inspect.verify.batch_columns import (
    BASE_OFFSET,
    BASE_SEQUENCE,
    COUNT,
    LAST_OFFSET,
    MAGIC,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    Table,
)
from octavo.inspect.verify.metadata_topics import is_only_deleted
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.repairs import RESTORE
from octavo.log.names import LOG, file_name
from octavo.log.partition_folders import METADATA_PARTITION

LOST: Final = Rule.declare(
    "segment-lost",
    "segment",
    means="Offsets and batches of a producer are missing before a segment of a topic that is not compacted.",
    repair=RESTORE,
)
CUT_OUT: Final = Rule.declare(
    "batches-lost",
    "segment",
    means="Offsets and batches are missing inside a segment of a topic that is not compacted: they were cut out.",
    repair=RESTORE,
)
_RARE: Final = 50  # batches for each gap: where more are missing, records were compacted before the metadata begin


class _Gap(NamedTuple):
    """A place where offsets are missing."""

    problem: Problem
    is_inside: bool  # of a segment


class LostSegments:
    """Looks for gaps between segments and inside them."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        metadata = folder.path.absolute().parent / METADATA_PARTITION.folder
        self._is_possible = folder.partition is not None and metadata.is_dir()  # False if a gap proves nothing
        self._end: int | None = None
        self._name = ""
        self._batches = 0
        self._gaps: list[_Gap] = []
        self._first_gap = 0  # of the segment that is read now
        self._lost: set[int] = set()  # gaps where batches are lost
        self._last: dict[int, tuple[int, int]] = {}  # of each producer: epoch and next sequence number
        self._seen: set[int] = set()  # producers after the gap

    @cached_property
    def _is_never_compacted(self) -> bool:
        partition = self._folder.partition
        return partition is not None and is_only_deleted(self._folder.path.absolute().parent, partition.topic)

    def begin(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Compare the begin of a segment with the end of the one before."""
        self._name = file_name(segment.base_offset, LOG)
        self._first_gap = len(self._gaps)
        if self._end is not None and segment.base_offset > self._end:
            found = f"the segment before ends at {self._end}"
            self._open(LOST.broken(self._name, position=0, offset=segment.base_offset, found=found), is_inside=False)
            self._end = segment.base_offset
        return ()

    def batches(self, table: Table) -> tuple[Problem, ...]:
        """Note the numbers of producers, and compare them after each gap."""
        if not self._is_possible:
            return ()
        self._batches += len(table)
        bases, lasts = table[:, BASE_OFFSET], table[:, LAST_OFFSET]
        expected = np.append(bases[0] if self._end is None else self._end, lasts[:-1] + 1)
        is_full = (table[:, MAGIC] < 2) | (table[:, COUNT] == lasts - bases + 1)
        gaps = np.flatnonzero(bases > expected)
        allowed = max(1, self._batches // _RARE)
        self._is_possible = bool((bases >= expected).all() and is_full.all()) and len(gaps) <= allowed
        self._is_possible &= not len(gaps) or self._is_never_compacted
        if not self._is_possible:
            return ()
        at = 0
        for row in gaps.tolist():
            self._follow(table[at:row])
            offset, found = int(bases[row]), f"the batch before ends at {expected[row]}"
            position = int(table[row, POSITION])
            self._open(CUT_OUT.broken(self._name, position=position, offset=offset, found=found), is_inside=True)
            at = row
        self._follow(table[at:])
        self._end = int(lasts[-1]) + 1
        return ()

    def _open(self, problem: Problem, *, is_inside: bool) -> None:
        self._gaps.append(_Gap(problem, is_inside))
        self._seen.clear()

    def _follow(self, table: Table) -> None:
        """Take batches without a gap between them."""
        rows = table[(table[:, MAGIC] == 2) & (table[:, PRODUCER_ID] >= 0) & (table[:, BASE_SEQUENCE] >= 0)]
        if self._gaps:
            self._compare(rows)
        _, firsts = np.unique(rows[::-1, PRODUCER_ID], return_index=True)
        for producer_id, epoch, sequence, base, last in rows[::-1][firsts][:, _NUMBERS].tolist():
            self._last[producer_id] = epoch, (sequence + last - base + 1) % (1 << 31)

    def _compare(self, rows: Table) -> None:
        _, firsts = np.unique(rows[:, PRODUCER_ID], return_index=True)
        for producer_id, epoch, sequence, _, _ in rows[firsts][:, _NUMBERS].tolist():
            known = self._last.get(producer_id)
            if producer_id not in self._seen and known is not None and known[0] == epoch and known[1] < sequence:
                self._lost.add(len(self._gaps) - 1)
            self._seen.add(producer_id)

    def end(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Note whether the segment can be believed, and whether its index shows that bytes were cut out."""
        self._is_possible &= segment.is_sound and self._end is not None
        if segment.has_wrong_index:
            gaps = range(self._first_gap, len(self._gaps))
            self._lost.update(number for number in gaps if self._gaps[number].is_inside)
        return ()

    def finish(self) -> list[Problem]:
        """Report the gaps, if the metadata say that nothing was compacted."""
        many = sum(gap.is_inside for gap in self._gaps) > max(1, self._batches // _RARE)
        if not self._lost or not self._is_possible or many or not self._is_never_compacted:
            return []
        return [self._gaps[number].problem for number in sorted(self._lost)]


_NUMBERS: Final = [PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, BASE_OFFSET, LAST_OFFSET]

"""Check the time index of each segment against its batches.

    entry => timestamp:int64 offset:int32 (relative to the base offset)

An entry says that `timestamp` is the largest one up to the batch that has `offset`. Leaders before 3.7 stored the
offset of the record that has it, newer ones the last offset of its batch. A broker that converts to magic 0 takes the
timestamps from before the conversion: what the messages on the disk no longer have is in the index.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from octavo.inspect.verify.batch_columns import BASE_OFFSET, LAST_OFFSET, MAGIC, MAX_TIMESTAMP, Table
from octavo.inspect.verify.index_files import MOST, IndexFile, IndexRules, emptied, may_be_checked
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.repairs import REBUILD_INDEXES
from octavo.log.names import INDEX, TIME_INDEX, file_name

_FIELDS: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_KIND: Final = "time index"


def _rule(name: str, means: str) -> Rule:
    return Rule.declare(name, _KIND, means=means, repair=REBUILD_INDEXES)


_RULES: Final = IndexRules(
    _rule("timeindex-size", "The size of a time index is no multiple of 12: its last entry is not complete."),
    _rule("timeindex-zero-tail", "A time index ends in zeros, which Kafka takes for entries: lookups by time fail."),
)
ORDER: Final = _rule(
    "timeindex-order", "The entries of a time index do not increase: lookups by time search them in vain."
)
OFFSET: Final = _rule(
    "timeindex-offset", "An entry of a time index names an offset that no batch has: lookups by time miss records."
)
TIMESTAMP: Final = _rule(
    "timeindex-timestamp", "An entry of a time index has a timestamp that its batch does not have: lookups go wrong."
)
MAXIMUM: Final = _rule(
    "timeindex-maximum", "A batch before that of a time index entry has a larger timestamp: lookups by time miss it."
)


class TimeIndexCheck:
    """Compares the time index of one segment after the other with the batches."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        self._index: IndexFile | None = None
        self._found: list[Problem] = []  # which count only if the segment is sound

    def begin(self, segment: SegmentData) -> Iterable[Problem]:
        """Read the index, before the batches: a broker writes it after them."""
        self._index = None
        if not may_be_checked(self._folder, segment):
            return
        index = IndexFile(self._folder, segment, file_name(segment.base_offset, TIME_INDEX), _FIELDS)
        if not index.is_there:
            return  # brokers before 0.10.1 had none, and newer ones do without
        yield from index.problems(_RULES)
        offsets = index.entries["offset"].astype(np.int64) + segment.base_offset
        times = index.entries["timestamp"].astype(np.int64)
        is_right = (offsets >= np.maximum.accumulate(np.append(segment.base_offset, offsets))[:-1]) & (
            times > np.maximum.accumulate(np.append(-1, times))[:-1]
        )
        for number in np.flatnonzero(~is_right)[:1].tolist():
            found = f"timestamp {times[number]}, offset {offsets[number]}"
            yield ORDER.broken(index.name, position=12 * number, offset=int(offsets[number]), found=found)
        self._index = index
        self._numbers = np.flatnonzero(is_right)
        self._offsets, self._times = offsets[is_right], times[is_right]
        self._next = 0  # entry to be compared
        self._largest = -1  # timestamp before the table
        self._found = []

    def batches(self, table: Table) -> Iterable[Problem]:
        """Compare the entries that name offsets of these batches."""
        if self._index is None:
            return ()
        until = self._next + int(np.searchsorted(self._offsets[self._next :], table[-1, LAST_OFFSET], side="right"))
        largest = np.maximum(np.maximum.accumulate(table[:, MAX_TIMESTAMP]), self._largest)
        if until > self._next:
            offsets, times = self._offsets[self._next : until], self._times[self._next : until]
            rows = np.searchsorted(table[:, LAST_OFFSET], offsets)
            is_there = table[rows, BASE_OFFSET] <= offsets
            is_other = is_there & (table[rows, MAX_TIMESTAMP] != times) & (table[rows, MAGIC] != 0)
            is_lower = is_there & ~is_other & (largest[rows] > times)
            for rule, is_wrong in ((OFFSET, ~is_there), (TIMESTAMP, is_other), (MAXIMUM, is_lower)):
                for number in np.flatnonzero(is_wrong).tolist():
                    self._note(rule, self._next + number)
        self._next = until
        self._largest = int(largest[-1])
        return ()

    def _note(self, rule: Rule, entry: int) -> None:
        assert self._index is not None
        if len(self._found) >= MOST:
            return
        found = f"timestamp {self._times[entry]}, offset {self._offsets[entry]}"
        position = 12 * int(self._numbers[entry])
        self._found.append(
            rule.broken(self._index.name, position=position, offset=int(self._offsets[entry]), found=found)
        )

    def end(self, segment: SegmentData) -> Iterable[Problem]:
        """Yield what is wrong, unless the batches themselves are damaged."""
        if self._index is None or not segment.is_sound:
            return
        if not segment.end_position and len(self._offsets):
            offset_index = file_name(segment.base_offset, INDEX)
            if offset_index not in self._folder.files or not self._folder.files[offset_index].size:
                yield emptied(segment, len(self._offsets))
            return
        for entry in range(self._next, len(self._offsets)):
            self._note(OFFSET, entry)
        yield from sorted(self._found, key=lambda problem: problem.position or 0)

    def finish(self) -> Iterable[Problem]:
        """Everything was said."""
        return ()

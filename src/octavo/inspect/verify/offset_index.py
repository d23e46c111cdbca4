"""Check the offset index of each segment against its batches.

    entry => offset:int32 (relative to the base offset) position:int32

An entry says that the batches before `position` have lower offsets than `offset`. Brokers before 0.10.1 stored the
first offset of an append, those before 4.1 the last one of the append, and newer ones the last one of the batch. So an
entry is right if its position is that of a batch, its offset is not before that batch, and before that of the next
entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from octavo.inspect.verify.batch_columns import BASE_OFFSET, LAST_OFFSET, POSITION, SIZE, Table
from octavo.inspect.verify.index_files import MOST, IndexFile, IndexRules, emptied, may_be_checked
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.repairs import REBUILD_INDEXES
from octavo.log.names import INDEX, file_name
from octavo.log.partition_folders import METADATA_PARTITION

_FIELDS: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_KIND: Final = "offset index"


def _rule(name: str, means: str) -> Rule:
    return Rule.declare(name, _KIND, means=means, repair=REBUILD_INDEXES)


_RULES: Final = IndexRules(
    _rule("index-size", "The size of an offset index is no multiple of 8: its last entry is not complete."),
    _rule("index-zero-tail", "An offset index ends in zeros, which Kafka takes for entries: it finds wrong positions."),
)
MISSING: Final = _rule(
    "index-missing", "A segment has no offset index after a clean shutdown: Kafka recovers the segment when it starts."
)
ORDER: Final = _rule(
    "index-order", "The entries of an offset index do not increase: Kafka searches them in vain, and misses records."
)
PLACE: Final = _rule(
    "index-position", "An entry of an offset index leads to no batch: readers begin in the middle of one, and fail."
)
OFFSET: Final = _rule(
    "index-offset", "An entry of an offset index names an offset that is not there: readers miss records or fail."
)


class OffsetIndexCheck:
    """Compares the offset index of one segment after the other with the batches."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        self._index: IndexFile | None = None
        self._found: list[Problem] = []  # which count only if the segment is sound

    def begin(self, segment: SegmentData) -> Iterable[Problem]:
        """Read the index, before the batches: a broker writes it after them."""
        self._index = None
        name = file_name(segment.base_offset, INDEX)
        if not may_be_checked(self._folder, segment):
            return
        index = IndexFile(self._folder, segment, name, _FIELDS)
        if not index.is_there:
            # The node of a metadata log scans it at every start, and makes the indexes then.
            is_needed = self._folder.partition != METADATA_PARTITION
            if is_needed and self._folder.beside.is_clean and segment.log.size:
                yield MISSING.broken(name, offset=segment.base_offset)
            return
        yield from index.problems(_RULES)
        offsets = index.entries["offset"].astype(np.int64) + segment.base_offset
        positions = index.entries["position"].astype(np.int64)
        yield from self._start(index, offsets, positions, segment.base_offset)

    def _start(self, index: IndexFile, offsets: Table, positions: Table, base_offset: int) -> Iterator[Problem]:
        """Keep the entries that increase; yield what the others break."""
        highest_offset = np.maximum.accumulate(np.append(base_offset - 1, offsets))[:-1]
        highest_position = np.maximum.accumulate(np.append(-1, positions))[:-1]
        is_right = (offsets > highest_offset) & (positions > highest_position)
        for number in np.flatnonzero(~is_right)[:1].tolist():
            found = f"offset {offsets[number]}, position {positions[number]}"
            yield ORDER.broken(index.name, position=8 * number, offset=int(offsets[number]), found=found)
        self._index = index
        self._numbers = np.flatnonzero(is_right)
        self._offsets, self._positions = offsets[is_right], positions[is_right]
        self._next = 0  # entry to be compared
        self._before = base_offset - 1  # last offset of the batch before the table
        self._found = []

    def batches(self, table: Table) -> Iterable[Problem]:
        """Compare the entries that lead into these batches."""
        if self._index is None:
            return ()
        end = int(table[-1, POSITION] + table[-1, SIZE])
        until = self._next + int(np.searchsorted(self._positions[self._next :], end))
        if until > self._next:
            self._compare(slice(self._next, until), table)
        self._next = until
        self._before = int(table[-1, LAST_OFFSET])
        return ()

    def _compare(self, entries: slice, table: Table) -> None:
        positions, offsets = self._positions[entries], self._offsets[entries]
        rows = np.searchsorted(table[:, POSITION], positions, side="right") - 1
        is_batch = (rows >= 0) & (table[np.maximum(rows, 0), POSITION] == positions)
        before = np.where(rows > 0, table[np.maximum(rows - 1, 0), LAST_OFFSET], self._before)
        for number in np.flatnonzero(~is_batch).tolist():
            self._note(PLACE, entries.start + number)
        is_early = is_batch & (offsets <= before)
        # An entry must name an offset before the batches to which the next entry leads.
        next_bases = table[np.maximum(rows, 0), BASE_OFFSET]
        previous = self._offsets[max(entries.start - 1, 0) : entries.stop - 1]
        if entries.start == 0:
            previous = np.append(np.int64(-1), previous)
        is_late = is_batch & (previous[: len(rows)] >= next_bases)
        for number in np.flatnonzero(is_early).tolist():
            self._note(OFFSET, entries.start + number)
        for number in np.flatnonzero(is_late).tolist():
            self._note(OFFSET, entries.start + number - 1)

    def _note(self, rule: Rule, entry: int) -> None:
        assert self._index is not None
        if len(self._found) >= MOST:
            return
        found = f"offset {self._offsets[entry]}, position {self._positions[entry]}"
        problem = rule.broken(
            self._index.name, position=8 * int(self._numbers[entry]), offset=int(self._offsets[entry]), found=found
        )
        if problem not in self._found[-2:]:
            self._found.append(problem)

    def end(self, segment: SegmentData) -> Iterable[Problem]:
        """Yield what is wrong, unless the batches themselves are damaged."""
        if self._index is None or not segment.is_sound:
            return
        if not segment.end_position and len(self._offsets):
            yield emptied(segment, len(self._offsets))
            return
        for entry in range(self._next, len(self._offsets)):
            self._note(PLACE, entry)
        if self._next == len(self._offsets) and self._next and self._offsets[-1] >= segment.end_offset:
            self._note(OFFSET, self._next - 1)
        segment.has_wrong_index = bool(self._found)
        yield from sorted(self._found, key=lambda problem: problem.position or 0)

    def finish(self) -> Iterable[Problem]:
        """Everything was said."""
        return ()

"""Check that the sequence numbers of idempotent producers do not go back.

They may skip numbers: compaction removes batches. They may begin anew at 0: producers did that before epochs were
raised instead. A broker forgets a producer that was silent for long, and then accepts any number, but none writes the
same one twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from octavo.inspect.verify.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    LAST_OFFSET,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    Table,
)
from octavo.inspect.verify.batch_rules import SEQUENCE_ORDER
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem
from octavo.records.layout import MAX_SEQUENCE, Attributes

_CONTROL: Final = int(Attributes.CONTROL)
_MOST: Final = 1 << 18  # producers that are remembered
_NEAR: Final = 1 << 30  # a number that is lower by more has begun again after the largest


class SequenceCheck:
    """Compares the sequence numbers of each producer with those before, over all segments."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._last: dict[tuple[int, int], int] = {}  # by producer id and epoch
        self._name = ""

    def begin(self, segment: SegmentData) -> Iterable[Problem]:
        """Note the name of the segment."""
        self._name = segment.log.name
        return ()

    def batches(self, table: Table) -> Iterator[Problem]:
        """Yield the batches of these whose sequence numbers go back."""
        is_numbered = (table[:, PRODUCER_ID] >= 0) & (table[:, BASE_SEQUENCE] >= 0)
        table = table[is_numbered & (table[:, ATTRIBUTES] & _CONTROL == 0)]
        if not len(table):
            return
        table = table[np.lexsort((table[:, POSITION], table[:, PRODUCER_EPOCH], table[:, PRODUCER_ID]))]
        first = table[:, BASE_SEQUENCE]
        last = (first + table[:, LAST_OFFSET] - table[:, BASE_OFFSET]) % (MAX_SEQUENCE + 1)
        producers = table[:, [PRODUCER_ID, PRODUCER_EPOCH]]
        is_new = np.append(True, (producers[1:] != producers[:-1]).any(axis=1))
        before = np.append(-1, last[:-1])
        for row in np.flatnonzero(is_new).tolist():
            before[row] = self._last.get(tuple(producers[row].tolist()), -1)
        back = before - first
        for row in np.flatnonzero((first > 0) & (before >= 0) & (back >= 0) & (back < _NEAR)).tolist():
            yield SEQUENCE_ORDER.broken(
                self._name,
                position=int(table[row, POSITION]),
                offset=int(table[row, BASE_OFFSET]),
                found=f"producer {producers[row, 0]}: sequence {first[row]} after {before[row]}",
            )
        self._keep(producers, last, np.append(np.flatnonzero(is_new)[1:], len(table)) - 1)

    def _keep(self, producers: Table, last: Table, rows: Table) -> None:
        if len(self._last) > _MOST:
            self._last.clear()
        for row in rows.tolist():
            self._last[tuple(producers[row].tolist())] = int(last[row])

    def end(self, segment: SegmentData) -> Iterable[Problem]:
        """Everything was said."""
        return ()

    def finish(self) -> Iterable[Problem]:
        """Everything was said."""
        return ()

"""Which batches of transactions may go, met in the order of the log (Kafka's `CleanedTransactionMetadata`).

What was aborted goes. The marker that ended a transaction goes once nothing is left of the transaction; until then it
stays, and so does its entry in the transaction index.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.log.compaction.source import Block, Int64s
from octavo.log.txn_index import AbortedEntry, TransactionIndex
from octavo.records.control_key import ControlType, read_control_type
from octavo.records.kernels import scan
from octavo.records.layout import Attributes
from octavo.records.reader import read_batches

_OF_TRANSACTION: Final = int(Attributes.TRANSACTIONAL | Attributes.CONTROL)
_TO_MEET: Final = [
    scan.ATTRIBUTES,
    scan.PRODUCER_ID,
    scan.LAST_OFFSET,
    scan.COUNT,
    scan.POSITION,
    scan.SIZE,
]


class CleanedTransactions:
    """What is known of transactions at one point of the log."""

    def __init__(self) -> None:
        self.index: TransactionIndex | None = None  # of the output; where it is none, nothing is written
        self._to_come: list[tuple[int, int, AbortedEntry]] = []  # by their first offset, then as they were added
        self._added = 0
        self._aborted: dict[int, tuple[AbortedEntry, bool]] = {}  # by producer; and whether a batch of it was met
        self._committed: set[int] = set()  # producers, of whose transaction a batch was met

    def add(self, aborted: Iterable[AbortedEntry]) -> None:
        """Know of transactions that were aborted. One may be told several times."""
        for entry in aborted:
            heapq.heappush(self._to_come, (entry.first_offset, self._added, entry))
            self._added += 1

    def meet_batch(self, producer_id: int, last_offset: int) -> bool:
        """Meet a transactional batch of data; whether it was aborted."""
        self._begin_up_to(last_offset)
        aborted = self._aborted.get(producer_id)
        if aborted is None:
            self._committed.add(producer_id)
            return False
        self._aborted[producer_id] = aborted[0], True
        return True

    def meet_marker(self, kind: int | None, producer_id: int, last_offset: int) -> bool:
        """Meet a control batch of a type, None where its record is gone; whether nothing is left of what it ended."""
        self._begin_up_to(last_offset)
        if kind == ControlType.ABORT:
            aborted, was_met = self._aborted.pop(producer_id, (None, False))
            if aborted is not None and was_met and self.index is not None:
                self.index.append(aborted)
            return not was_met
        if kind == ControlType.COMMIT:
            was_met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not was_met
        return kind is None

    def _begin_up_to(self, offset: int) -> None:
        """Have those transactions open that began at or before `offset`."""
        while self._to_come and self._to_come[0][0] <= offset:
            entry = heapq.heappop(self._to_come)[2]
            self._aborted.setdefault(entry.producer_id, (entry, False))


def is_of_transaction(table: Int64s) -> npt.NDArray[np.bool_]:
    """For each batch of a table whether it is of a transaction, or a control batch."""
    found: npt.NDArray[np.bool_] = (table[:, scan.ATTRIBUTES] & _OF_TRANSACTION != 0) & (table[:, scan.MAGIC] == 2)
    return found


def meet(transactions: CleanedTransactions, block: Block, row: int) -> bool:
    """Meet a batch of a transaction: whether it was aborted, or is a marker of which nothing is left.

    Raises `FormatError` for a control batch that says nothing.
    """
    attributes, producer_id, last_offset, count, position, size = block.table[row, _TO_MEET].tolist()
    if not attributes & Attributes.CONTROL:
        return transactions.meet_batch(producer_id, last_offset)
    kind = None
    if count > 0:
        batch = next(iter(read_batches(block.memory.data[position : position + size], verify=False)))
        record = next(iter(batch))
        kind = read_control_type(record.key, position=block.position + position)
    return transactions.meet_marker(kind, producer_id, last_offset)

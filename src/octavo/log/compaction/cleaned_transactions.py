"""Decide which transactional batches and markers to drop (Kafka's `CleanedTransactionMetadata`).

Aborted batches are dropped. The marker that ended a transaction is dropped once no batch of the transaction is left.
Until then the marker is kept, and so is the transaction's entry in the transaction index. Batches are noted in the
order of the log.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.log.compaction.source import Block, Int64s
from octavo.log.segment.transaction_index import AbortedEntry, TransactionIndex
from octavo.records.control_key import ControlType, read_control_type
from octavo.records.kernels import scan
from octavo.records.layout import Attributes
from octavo.records.reader import read_batches

_OF_TRANSACTION: Final = int(Attributes.TRANSACTIONAL | Attributes.CONTROL)
_TO_NOTE: Final = [
    scan.ATTRIBUTES,
    scan.PRODUCER_ID,
    scan.LAST_OFFSET,
    scan.COUNT,
    scan.POSITION,
    scan.SIZE,
]


class CleanedTransactions:
    """The transactions that are open at the current point of the log."""

    def __init__(self) -> None:
        self.index: TransactionIndex | None = None  # index of the output; None if nothing is written
        self._to_come: list[tuple[int, int, AbortedEntry]] = []  # by first offset and order of addition
        self._added = 0
        self._aborted: dict[int, tuple[AbortedEntry, bool]] = {}  # by producer id; True if a batch of it was found
        self._committed: set[int] = set()  # producer ids with a batch of an open, not aborted transaction

    def add(self, aborted: Iterable[AbortedEntry]) -> None:
        """Add aborted transactions. The same one may be added several times."""
        for entry in aborted:
            heapq.heappush(self._to_come, (entry.first_offset, self._added, entry))
            self._added += 1

    def note_batch(self, producer_id: int, last_offset: int) -> bool:
        """Note a transactional data batch. Return whether it was aborted."""
        self._begin_up_to(last_offset)
        aborted = self._aborted.get(producer_id)
        if aborted is None:
            self._committed.add(producer_id)
            return False
        self._aborted[producer_id] = aborted[0], True
        return True

    def note_marker(self, kind: int | None, producer_id: int, last_offset: int) -> bool:
        """Note a marker; `kind` is None if its record is gone. Return whether no batch of its transaction is left."""
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
        """Open the aborted transactions that began at or before `offset`."""
        while self._to_come and self._to_come[0][0] <= offset:
            entry = heapq.heappop(self._to_come)[2]
            self._aborted.setdefault(entry.producer_id, (entry, False))


def is_of_transaction(table: Int64s) -> npt.NDArray[np.bool_]:
    """Return, for each batch of a table, whether it is transactional or a control batch."""
    found: npt.NDArray[np.bool_] = (table[:, scan.ATTRIBUTES] & _OF_TRANSACTION != 0) & (table[:, scan.MAGIC] == 2)
    return found


def note_row(transactions: CleanedTransactions, block: Block, row: int) -> bool:
    """Note a transactional batch or marker. Return whether it was aborted, or marks a transaction with no batch left.

    Raises `FormatError` for a control batch whose record cannot be read.
    """
    attributes, producer_id, last_offset, count, position, size = block.table[row, _TO_NOTE].tolist()
    if not attributes & Attributes.CONTROL:
        return transactions.note_batch(producer_id, last_offset)
    kind = None
    if count > 0:
        batch = next(iter(read_batches(block.memory.data[position : position + size], verify=False)))
        record = next(iter(batch))
        kind = read_control_type(record.key, position=block.position + position)
    return transactions.note_marker(kind, producer_id, last_offset)

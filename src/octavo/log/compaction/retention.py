"""Decide which whole batches to keep or drop, before any of their records is read.

The header of a batch is kept, even without records, if the batch is the last one of a producer: its sequence number is
needed to check the producer's next batch. The header of the last batch that is cleaned is kept as well, so that its
offset is not forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from octavo.log.compaction.cleaned_transactions import CleanedTransactions, is_of_transaction, note_row
from octavo.log.compaction.plan import LastBatch
from octavo.log.compaction.source import Block, Int64s
from octavo.records.kernels import scan
from octavo.records.kernels.compaction.filter import DISCARD, KEEP_EMPTY, MARKS_NOTHING
from octavo.records.layout import NO_OFFSET, Attributes

_CONTROL: Final = int(Attributes.CONTROL)
_DELETE_HORIZON: Final = int(Attributes.DELETE_HORIZON)


class LastBatches:
    """The last batches of all known producers. They must be kept."""

    def __init__(self, by_producer: Mapping[int, LastBatch]) -> None:
        self._by_producer = by_producer
        offsets = [last.last_offset for last in by_producer.values() if last.last_offset != NO_OFFSET]
        self._offsets: Final = np.sort(np.array(offsets, np.int64))

    def rows_in(self, table: Int64s) -> list[int]:
        """Return the rows of batches that are a producer's last."""
        if not len(self._offsets):
            return []
        places = np.searchsorted(self._offsets, table[:, scan.LAST_OFFSET])
        found = self._offsets[np.minimum(places, len(self._offsets) - 1)] == table[:, scan.LAST_OFFSET]
        rows = np.flatnonzero(found & (table[:, scan.PRODUCER_ID] >= 0))
        columns = table[rows][:, [scan.PRODUCER_ID, scan.LAST_OFFSET]].tolist()
        return [
            row
            for row, (producer_id, last_offset) in zip(rows.tolist(), columns, strict=True)
            if producer_id in self._by_producer and self._by_producer[producer_id].last_offset == last_offset
        ]

    def is_last_marker(self, producer_id: int, epoch: int) -> bool:
        """Return whether this marker is all that is known of a producer. Then it is kept for its epoch."""
        last = self._by_producer.get(producer_id)
        return last is not None and last.last_offset == NO_OFFSET and last.epoch == epoch


class Retention:
    """Decides what to do with each batch, in log order, during one run of the cleaner."""

    def __init__(self, transactions: CleanedTransactions, *, upper_bound: int, now_ms: int) -> None:
        self._transactions = transactions
        self._upper_bound = upper_bound
        self._now_ms = now_ms

    def actions(self, block: Block, last_batches: LastBatches) -> Int64s:
        """Return what to do with each batch of a block, as flags of the kernel `filter_batches`."""
        table = block.table
        actions = np.zeros(len(table), np.int64)
        actions[table[:, scan.LAST_OFFSET] + 1 == self._upper_bound] = KEEP_EMPTY
        actions[last_batches.rows_in(table)] = KEEP_EMPTY
        for row in np.flatnonzero(is_of_transaction(table)).tolist():
            is_over = note_row(self._transactions, block, row)
            attributes, producer_id, epoch, base_timestamp_ms = table[row, _TO_DECIDE].tolist()
            if not attributes & _CONTROL:
                actions[row] |= DISCARD if is_over else 0
                continue
            if producer_id >= 0 and last_batches.is_last_marker(producer_id, epoch):
                actions[row] |= KEEP_EMPTY
            if is_over:
                actions[row] |= MARKS_NOTHING
                if attributes & _DELETE_HORIZON and base_timestamp_ms <= self._now_ms:
                    actions[row] |= DISCARD
        return actions


_TO_DECIDE: Final = [scan.ATTRIBUTES, scan.PRODUCER_ID, scan.PRODUCER_EPOCH, scan.BASE_TIMESTAMP]

"""The first pass: put the last offset of every key in the dirty part of a log into the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from octavo.log.compaction.cleaned_transactions import CleanedTransactions, is_of_transaction, note_row
from octavo.log.compaction.offset_map import OffsetMap
from octavo.log.compaction.source import Block, Int64s, Source
from octavo.log.compaction.stats import GoOn
from octavo.log.segment.segment import Segment
from octavo.log.view import segment_ends
from octavo.records.kernels import Kernels, rules, scan
from octavo.records.kernels.compaction.fill import FULL
from octavo.records.kernels.compaction.read import READ_COLUMNS
from octavo.records.layout import Attributes

CHUNK: Final = 64  # number of records read before the first of them is looked up
_CONTROL: Final = int(Attributes.CONTROL)


class Filling:
    """Fills one offset map from the dirty part of a log."""

    def __init__(self, kernels: Kernels, source: Source, offsets: OffsetMap, transactions: CleanedTransactions) -> None:
        self.bytes_read = 0
        self.records_passed = 0  # skipped records: those of aborted transactions, and markers
        self._kernels = kernels
        self._source = source
        self._offsets = offsets
        self._transactions = transactions
        self._read: Final = np.empty((CHUNK, READ_COLUMNS), np.int64)

    def fill(self, segments: Sequence[Segment], start_offset: int, end_offset: int, go_on: GoOn) -> bool:
        """Put the keys from `start_offset` to before `end_offset` into the map. Return whether the map had room.

        `segments` hold these offsets. Offsets that are missing between two segments count as done. `go_on` is called
        after every block, and may raise.
        """
        for segment, end in zip(segments, segment_ends(segments, end_offset), strict=True):
            for block in self._source.blocks(segment.file, _start(segment, start_offset), segment.size):
                if not self._take(block):
                    return False
                self.bytes_read += block.size
                go_on(block.size, 0)
            self._offsets.latest_offset = end - 1
        return True

    def _take(self, block: Block) -> bool:
        """Put the keys of a block into the map. Return whether there was room for all."""
        offsets = self._offsets
        skip, passed = self._skipped(block)
        first = 0
        while first < len(block.table):
            last = self._source.inflate(block, first, skip)
            reached, rule, at = self._kernels.fill(
                block.memory,
                self._source.inflated,
                block.table,
                skip,
                first,
                last,
                offsets.seed,
                offsets.slots,
                offsets.state,
                self._read,
            )
            self.records_passed += int(passed[first:reached].sum())
            if rule == FULL:
                return False
            if rule != rules.OK:
                raise block.broken(rule, reached, at)
            first = last
        return True

    def _skipped(self, block: Block) -> tuple[Int64s, Int64s]:
        """Return, for each batch, whether to skip it (a marker, or aborted) and how many records that skips."""
        table = block.table
        skip = np.zeros(len(table), np.int64)
        passed = np.zeros(len(table), np.int64)
        for row in np.flatnonzero(is_of_transaction(table)).tolist():
            is_control = bool(table[row, scan.ATTRIBUTES] & _CONTROL)
            if note_row(self._transactions, block, row) or is_control:
                skip[row] = 1
                passed[row] = 1 if is_control else table[row, scan.COUNT]
        return skip, passed


def _start(segment: Segment, start_offset: int) -> int:
    """Return the position at which to begin in a segment that may be mostly clean. The index gives the position.

    If the segment has aborted transactions, begin at its start. A pass that begins after a marker may take later
    batches for aborted as well, and miss the last value of a key. (This happens to Kafka.)
    """
    if start_offset <= segment.base_offset or segment.txn_index.count:
        return 0
    hint = segment.offset_index.lookup(start_offset)
    return hint.position if hint is not None and segment.has_batch_at(hint) else 0

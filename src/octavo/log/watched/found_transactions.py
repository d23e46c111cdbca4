"""Find the transactions in the data of a log that another process writes. Each batch header is read only once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from octavo.errors import CorruptFile
from octavo.log.producer_state.aborted import Decider, TransactionScan
from octavo.log.segment.damage import OnDamage, refuse
from octavo.log.segment.segment import Segment
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.log.view import View
from octavo.records.layout import NO_OFFSET

if TYPE_CHECKING:
    from octavo.log.storage import File
    from octavo.records.kernels.batch_table import Table


class FoundTransactions:
    """The transactions found so far in a watched log."""

    def __init__(
        self,
        generation: int = 0,
        offset: int = 0,
        opened: Mapping[int, int] | None = None,
        on_damage: OnDamage = refuse,
    ) -> None:
        """Start at `offset`. `opened` are the transactions that are open there (see `Decider`).

        By default, `on_damage` refuses damage: a damaged batch may be the marker that decides a transaction.
        """
        self.generation: Final = generation
        self.offset = offset  # everything below has been scanned
        self._on_damage = on_damage
        self._decider = Decider(opened)

    def go_on(self, view: View) -> int:
        """Scan the batches below the high watermark that have not been scanned.

        Returns the first offset of the first undecided transaction, or -1 if there is none.
        """
        stable = self.decided_below(view, view.high_watermark)
        return stable if stable < view.high_watermark else NO_OFFSET

    def decided_below(self, view: View, bound: int) -> int:
        """Scan the batches below `bound` that have not been scanned.

        Returns the offset below which every transaction is decided, at most `bound`. Raises `CorruptFile`.
        """
        from octavo.records.kernels import scan

        new = TransactionScan(on_damage=self._on_damage)
        self.offset = max(self.offset, view.start_offset)
        for file, table, shift in self._new_headers(view, bound):
            new.note_table(file, table, shift)
            self._decider.note_events(new.events)
            self.offset = max(self.offset, int(table[-1, scan.LAST_OFFSET]) + 1)
        self.offset = max(self.offset, min(bound, view.end_offset))
        return min(self._decider.open.values(), default=bound)

    def _new_headers(self, view: View, bound: int) -> Iterator[tuple[File, Table, int]]:
        """Yield tables of the batches that have not been scanned and begin before `bound`, each with its file."""
        from octavo.log.segment.header_scan import BlockFile, scan_headers
        from octavo.records.kernels import scan

        for number, segment in enumerate(view.segments):
            behind = view.segment_end(number)
            if behind <= self.offset:
                continue
            if self.offset >= bound:
                return
            size = view.segment_size(number)
            file = BlockFile(segment.file)
            for table, shift in scan_headers(file, self._position_in(segment, size), size, self._on_damage):
                last_offset = int(table[-1, scan.LAST_OFFSET])
                if table[0, scan.LAST_OFFSET] < self.offset or last_offset >= bound:
                    is_new = table[:, scan.LAST_OFFSET] >= self.offset
                    table = table[is_new & (table[:, scan.BASE_OFFSET] < bound)]
                if len(table):
                    yield file, table, shift
                if last_offset >= bound - 1:
                    return
            self.offset = max(self.offset, min(behind, bound))

    def _position_in(self, segment: Segment, size: int) -> int:
        """Return the position in a segment at which to go on; 0 if damage prevents finding it."""
        if self.offset <= segment.base_offset:
            return 0
        try:
            found = segment.find(self.offset, size)
        except CorruptFile:
            return 0
        return 0 if found is None else found.position

    def between(self, offset: int, bound: int, stable: int) -> list[AbortedEntry]:
        """Return the transactions that begin before `bound` and whose abort marker is at or after `offset`."""
        aborted = self._decider.aborted  # in the order of the markers
        first = bisect_left(aborted, offset, key=itemgetter(2))
        return [AbortedEntry(*entry, stable) for entry in aborted[first:] if entry[1] < bound]

    def forget_aborted(self) -> None:
        """Drop the aborted transactions to save memory, for callers that never call `between`."""
        self._decider.aborted.clear()

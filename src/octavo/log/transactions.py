"""The transactions of a log that another process writes: found in its data, whose headers are looked at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from octavo.log.committed import Decider, TransactionScan
from octavo.log.damage import OnDamage, refuse
from octavo.log.reading import View
from octavo.log.segment import Segment
from octavo.log.small_file import CorruptFile
from octavo.log.txn_index import AbortedEntry
from octavo.records.layout import NO_OFFSET

if TYPE_CHECKING:
    from octavo.log.headers import Table
    from octavo.log.storage import File


class FoundTransactions:
    """The transactions of a watched log, as far as it has been looked at."""

    def __init__(
        self,
        generation: int = 0,
        offset: int = 0,
        opened: Mapping[int, int] | None = None,
        on_damage: OnDamage = refuse,
    ) -> None:
        """Begin at `offset`, where certain transactions were open (see `Decider`).

        `on_damage`: who does not know all markers cannot tell what is decided, nor how.
        """
        self.generation: Final = generation
        self.offset = offset  # everything below has been looked at
        self._on_damage = on_damage
        self._decider = Decider(opened)

    def go_on(self, view: View) -> int:
        """Look at what is new; the first offset that is not decided, -1 where all is that consumers may see."""
        stable = self.decided_below(view, view.high_watermark)
        return stable if stable < view.high_watermark else NO_OFFSET

    def decided_below(self, view: View, bound: int) -> int:
        """Look at what is new below `bound`; up to where everything is decided. Raises `CorruptFile`."""
        from octavo.records.kernels import scan

        new = TransactionScan(on_damage=self._on_damage)
        self.offset = max(self.offset, view.start_offset)
        for file, table, shift in self._new_headers(view, bound):
            new.take(file, table, shift)
            self._decider.take(new.events)
            self.offset = max(self.offset, int(table[-1, scan.LAST_OFFSET]) + 1)
        self.offset = max(self.offset, min(bound, view.end_offset))
        return min(self._decider.open.values(), default=bound)

    def _new_headers(self, view: View, bound: int) -> Iterator[tuple[File, Table, int]]:
        """Tables of the batches that have not been looked at and begin before `bound`, each with its file."""
        from octavo.log.headers import BlockFile, scan_headers
        from octavo.records.kernels import scan

        for number, segment in enumerate(view.segments):
            behind = view.bases[number + 1] if number + 1 < len(view.bases) else view.end_offset
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
        """Where to begin in a segment; at its first byte where damage may be in the way to what has not been seen."""
        if self.offset <= segment.base_offset:
            return 0
        try:
            found = segment.find(self.offset, size)
        except CorruptFile:
            return 0
        return 0 if found is None else found.position

    def between(self, offset: int, bound: int, stable: int) -> list[AbortedEntry]:
        """What was aborted from `offset` to before `bound`."""
        aborted = self._decider.aborted  # in the order of the markers
        first = bisect_left(aborted, offset, key=itemgetter(2))
        return [AbortedEntry(*entry, stable) for entry in aborted[first:] if entry[1] < bound]

    def forget_aborted(self) -> None:
        """For who only asks up to where everything is decided: what is known does not grow with the log then."""
        self._decider.aborted.clear()

"""The transactions of a log that another process writes: found in its data, whose headers are looked at once."""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter
from typing import Final

from octavo.log.committed import Decider, TransactionScan
from octavo.log.reading import View
from octavo.log.txn_index import AbortedEntry
from octavo.records.layout import NO_OFFSET


class FoundTransactions:
    """The transactions of a watched log, as far as it has been looked at."""

    def __init__(self, generation: int = 0) -> None:
        self.generation: Final = generation
        self._scan = TransactionScan()
        self._decider = Decider()
        self._offset = 0  # everything below has been scanned

    def go_on(self, view: View) -> int:
        """Scan what is new; the first offset that is not decided, -1 where all is that consumers may see."""
        self._offset = max(self._offset, view.start_offset)
        for number, segment in enumerate(view.segments):
            end_offset = view.bases[number + 1] if number + 1 < len(view.bases) else view.end_offset
            if end_offset > self._offset:
                size = view.segment_size(number)
                found = segment.find(self._offset, size)
                if found is not None:
                    self._scan.take_file(segment.file, found.position, size)
                self._offset = end_offset
        stable = self._decider.go_on(self._scan.events, view.high_watermark)
        return stable if stable < view.high_watermark else NO_OFFSET

    def between(self, offset: int, bound: int, stable: int) -> list[AbortedEntry]:
        """What was aborted from `offset` to before `bound`."""
        aborted = self._decider.aborted  # in the order of the markers
        first = bisect_left(aborted, offset, key=itemgetter(2))
        return [AbortedEntry(*entry, stable) for entry in aborted[first:] if entry[1] < bound]

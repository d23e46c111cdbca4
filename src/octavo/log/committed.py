"""Which transactions of a log were aborted: what a reader of committed data leaves out.

    AbortedRanges       for any batch: is it part of an aborted transaction? Whatever split of the log it is read in
    TransactionScan     finds them in the data, where there is no index that can be relied on

A transaction is the batches of one producer up to its marker. A scan notes of each piece of a log where transactions
begin and end in it; pieces can be scanned apart, and are put together in the order of the log (`decide`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.log.producer_batch import read_marker
from octavo.log.storage import File
from octavo.records.batch import Batch
from octavo.records.layout import Attributes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)
MARKER_SIZE: Final = 512  # bytes that are read of a control batch: a marker takes less than a hundred

# What happens in a log, for `decide`.
DATA: Final = 0
COMMIT: Final = 1
ABORT: Final = 2
EVENT: Final = 3  # numbers an event takes: offset, producer id, and which of these it is


class AbortedTransaction(NamedTuple):
    """As a fetch tells it to a consumer: leave out what this producer wrote from there on, up to its abort marker."""

    producer_id: int
    first_offset: int


class AbortedRanges:
    """Aborted transactions, each from its first offset to its marker's."""

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Iterable[tuple[int, int, int]] = ()) -> None:
        """Of producer id, first and last offset; those of a producer in the order of the log."""
        self._ranges: dict[int, tuple[list[int], list[int]]] = {}
        for producer_id, first_offset, last_offset in ranges:
            firsts, lasts = self._ranges.setdefault(producer_id, ([], []))
            firsts.append(first_offset)
            lasts.append(last_offset)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def holds(self, producer_id: int, offset: int) -> bool:
        """Whether what this producer wrote at `offset` as part of a transaction was aborted."""
        ranges = self._ranges.get(producer_id)
        if ranges is None:
            return False
        number = bisect_right(ranges[0], offset) - 1
        return number >= 0 and offset <= ranges[1][number]

    def shows(self, batch: Batch) -> bool:
        """Whether an application should see the batch: it is no control batch, and not aborted."""
        if batch.is_control:
            return False
        return not (batch.is_transactional and self._ranges and self.holds(batch.producer_id, batch.base_offset))


class Decider:
    """What the events of a log amount to, from its start up to an offset that only rises."""

    def __init__(self) -> None:
        self.aborted: Final[list[tuple[int, int, int]]] = []  # producer id, first offset and the marker's
        self._open: dict[int, int] = {}  # first offset by producer
        self._next = 0  # event

    def go_on(self, events: array[int], bound: int) -> int:
        """Take events up to `bound`, the offset behind the last that may be seen; up to where all is decided."""
        for at in range(self._next, len(events), EVENT):
            offset, producer_id, what = events[at : at + EVENT]
            if offset >= bound:
                break
            self._next = at + EVENT
            if what == DATA:
                self._open.setdefault(producer_id, offset)
                continue
            first_offset = self._open.pop(producer_id, None)
            if what == ABORT and first_offset is not None:
                self.aborted.append((producer_id, first_offset, offset))
        return min(self._open.values(), default=bound)


class Decided(NamedTuple):
    """How far a log is decided, and what of that was aborted."""

    aborted: AbortedRanges
    last_stable_offset: int


def decide(events: array[int], bound: int) -> Decided:
    """What the events of a log, put together from all its pieces, amount to up to `bound`."""
    decider = Decider()
    last_stable_offset = decider.go_on(events, bound)
    return Decided(AbortedRanges(decider.aborted), last_stable_offset)


class TransactionScan:
    """The transactions of a piece of a log, which is taken from its first batch to its last."""

    def __init__(self) -> None:
        self.events: Final = array("q")
        self._open: set[int] = set()  # producers whose data have been noted since their last marker

    def take(self, file: File, table: npt.NDArray[np.int64], shift: int) -> None:
        """Note the batches of a table of headers (see `kernels.scan`), whose positions count from `shift` in `file`."""
        from octavo.records.kernels import scan

        is_of_transaction = (table[:, scan.ATTRIBUTES] & _TRANSACTIONAL != 0) & (table[:, scan.MAGIC] == 2)
        rows = table[is_of_transaction & (table[:, scan.PRODUCER_ID] >= 0)]  # without a producer nobody could end it
        columns = [scan.BASE_OFFSET, scan.PRODUCER_ID, scan.ATTRIBUTES, scan.POSITION, scan.SIZE]
        for offset, producer_id, attributes, position, size in rows[:, columns].tolist():
            if not attributes & _CONTROL:
                if producer_id not in self._open:
                    self._open.add(producer_id)
                    self.events.extend((offset, producer_id, DATA))
                continue
            marker = read_marker(file.read_at(min(size, MARKER_SIZE), shift + position))
            if marker is not None:
                self._open.discard(producer_id)
                self.events.extend((offset, producer_id, COMMIT if marker.is_commit else ABORT))

    def take_file(self, file: File, position: int, end: int) -> None:
        """Note the batches of a segment file from `position`, where one begins, up to `end`."""
        from octavo.log.headers import scan_headers

        for table, shift in scan_headers(file, position, end):
            self.take(file, table, shift)

"""Find the aborted transactions of a log, which a reader of committed data skips.

    AbortedRanges       tells for any batch whether it is part of an aborted transaction, however the log is split
    TransactionScan     finds transactions in the data, where no index can be relied on

A transaction is the batches of one producer up to its marker. A scan notes where transactions begin and end in a piece
of a log. A `Decider` gets these events, piece by piece in the order of the log, and works out which were aborted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import CorruptFile, FormatError
from octavo.log.producer_state.producer_batch import read_marker
from octavo.log.segment.damage import MARKER_SIZE, WRONG_CRC, OnDamage
from octavo.log.storage import File
from octavo.records.batch import Batch
from octavo.records.layout import Attributes
from octavo.records.reader import read_batches

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)
# The kinds of events in a log, for `Decider`.
DATA: Final = 0
COMMIT: Final = 1
ABORT: Final = 2
EVENT: Final = 3  # numbers per event: offset, producer id, kind


class AbortedTransaction(NamedTuple):
    """An aborted transaction as in a fetch response: skip this producer's batches from here to its abort marker."""

    producer_id: int
    first_offset: int


class AbortedRanges:
    """Aborted transactions, each from its first offset to the offset of its marker."""

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Iterable[tuple[int, int, int]] = ()) -> None:
        """Add `ranges` of producer id, first offset and last offset; those of one producer in the order of the log."""
        self._ranges: dict[int, tuple[list[int], list[int]]] = {}
        for each in ranges:
            self.add(*each)

    def add(self, producer_id: int, first_offset: int, last_offset: int) -> None:
        """Add a range after the existing ranges of this producer."""
        firsts, lasts = self._ranges.setdefault(producer_id, ([], []))
        firsts.append(first_offset)
        lasts.append(last_offset)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def holds(self, producer_id: int, offset: int) -> bool:
        """Whether `offset` is in an aborted transaction of this producer."""
        ranges = self._ranges.get(producer_id)
        if ranges is None:
            return False
        number = bisect_right(ranges[0], offset) - 1
        return number >= 0 and offset <= ranges[1][number]

    def holds_of(self, producer_id: int, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return for each of many offsets whether it is in an aborted transaction of this producer."""
        import numpy as np

        firsts, lasts = self._ranges.get(producer_id, ([], []))
        number = np.searchsorted(np.array(firsts, np.int64), offsets, side="right")
        aborted: npt.NDArray[np.bool_] = offsets <= np.array([-1, *lasts], np.int64)[number]
        return aborted

    def shows(self, batch: Batch) -> bool:
        """Whether an application should see the batch: it is neither a control batch nor aborted."""
        if batch.is_control:
            return False
        return not (batch.is_transactional and self._ranges and self.holds(batch.producer_id, batch.base_offset))


class Decider:
    """Works out open and aborted transactions from the events of a log, starting at any offset."""

    def __init__(self, opened: Mapping[int, int] | None = None) -> None:
        """Begin with the transactions `opened`, which are still open: first offsets by producer id."""
        self.open: Final[dict[int, int]] = dict(opened or {})
        self.aborted: Final[list[tuple[int, int, int]]] = []  # producer id, first offset, offset of the marker

    def note_events(self, events: array[int]) -> None:
        """Process the next events, in the order of the log. The array is emptied."""
        for at in range(0, len(events), EVENT):
            offset, producer_id, what = events[at : at + EVENT]
            if what == DATA:
                self.open.setdefault(producer_id, offset)
                continue
            first_offset = self.open.pop(producer_id, None)
            if what == ABORT and first_offset is not None:
                self.aborted.append((producer_id, first_offset, offset))
        del events[:]


class TransactionScan:
    """Finds the transactions in a piece of a log. The batches must be given in order."""

    def __init__(self, *, data_before: int | None = None, on_damage: OnDamage | None = None) -> None:
        """Begin a scan. `data_before`: consider only transactions that have data in the piece before this offset.

        `on_damage` is called for batches that begin or end a transaction and whose checksum is wrong. A damaged data
        batch begins no transaction; a damaged marker counts as an abort. Without `on_damage`, no checksum is checked.
        """
        self.events: Final = array("q")
        self._open: set[int] = set()  # producers with noted data since their last marker
        self._data_before = data_before
        self._on_damage = on_damage

    def note_table(self, file: File, table: npt.NDArray[np.int64], shift: int) -> None:
        """Note the batches in a table of headers (see `kernels.scan`). Its positions are relative to `shift`."""
        import numpy as np

        from octavo.records.kernels import scan

        is_of_transaction = (table[:, scan.ATTRIBUTES] & _TRANSACTIONAL != 0) & (table[:, scan.MAGIC] == 2)
        rows = table[is_of_transaction & (table[:, scan.PRODUCER_ID] >= 0)]  # without a producer no marker could end it
        before = self._data_before
        if before is not None and len(rows) and rows[0, scan.BASE_OFFSET] >= before:
            is_marker = rows[:, scan.ATTRIBUTES] & _CONTROL != 0
            ends_open = is_marker & np.isin(rows[:, scan.PRODUCER_ID], list(self._open))
            rows = rows[ends_open | (rows[:, scan.CRC] == WRONG_CRC)]
        columns = [scan.BASE_OFFSET, scan.PRODUCER_ID, scan.ATTRIBUTES, scan.POSITION, scan.SIZE, scan.CRC]
        for offset, producer_id, attributes, position, size, crc in rows[:, columns].tolist():
            is_open = producer_id in self._open
            if not attributes & _CONTROL:
                begins = not is_open and (before is None or offset < before)
                if begins and self._is_sound(file, shift + position, size):
                    self._open.add(producer_id)
                    self.events.extend((offset, producer_id, DATA))
            elif is_open or before is None:
                outcome = self._outcome(file, shift + position, size)
                if outcome is not None:
                    self._open.discard(producer_id)
                    self.events.extend((offset, producer_id, outcome))
            elif crc == WRONG_CRC:
                self._is_sound(file, shift + position, size)  # its producer id may be what is damaged

    def _outcome(self, file: File, position: int, size: int) -> int | None:
        """Return how a control batch ends a transaction; None if it does not end one."""
        if not self._is_sound(file, position, size):
            return ABORT
        marker = read_marker(file.read_at(min(size, MARKER_SIZE), position))
        if marker is None:
            return None
        return COMMIT if marker.is_commit else ABORT

    def _is_sound(self, file: File, position: int, size: int) -> bool:
        """Return whether a checksum is right. A damaged header could begin a transaction that no marker ends."""
        if self._on_damage is None:
            return True
        try:
            next(read_batches(file.read_at(size, position)), None)
        except FormatError as error:
            self._on_damage(file, CorruptFile(file.path, position, error.rule), position + size)
            return False
        return True

    def note_file(self, file: File, position: int, end: int) -> None:
        """Note the batches of a segment file from `position`, where one begins, to `end` or the first damage."""
        from octavo.log.segment.header_scan import scan_headers

        for table, shift in scan_headers(file, position, end):
            self.note_table(file, table, shift)

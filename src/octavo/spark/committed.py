"""The part of a log that is decided, for readers of committed data.

`OpenTransactions` is for whoever plans a query: up to where all transactions are decided. It begins with the newest
snapshot of producers that the log's writer left, so that only the headers behind that are looked at.

`Outcomes` is for the tasks: of a batch of a transaction in a slice they have to know how that ended, and the marker
that says so may lie far behind the slice. So they read headers ahead, no further than they have to. Where there are no
transactions they do not read ahead at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from octavo.log.committed import ABORT, DATA, EVENT, TransactionScan
from octavo.log.headers import scan_headers
from octavo.log.names import LOG, SNAPSHOT, base_offset_of, file_name
from octavo.log.small_file import CorruptFile
from octavo.log.snapshot import read_snapshot
from octavo.log.storage import File, Storage
from octavo.log.watched import WatchedLog
from octavo.records.arrow.reader import Keep
from octavo.records.arrow.sink import Int64s
from octavo.records.kernels import scan
from octavo.records.layout import Attributes
from octavo.spark.options import Options
from octavo.spark.slices import Slice

Truths = npt.NDArray[np.bool_]

_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)


class OpenTransactions:
    """The transactions of a log that are not decided, as far as it has been looked at."""

    def __init__(self) -> None:
        self._forget(-1, 0)

    def _forget(self, generation: int, offset: int) -> None:
        self._generation = generation
        self._open: dict[int, int] = {}  # first offset by producer
        self._scan = TransactionScan()
        self._offset = offset  # everything below has been scanned

    def last_stable_offset(self, storage: Storage, log: WatchedLog, bound: int) -> int:
        """Up to where, below `bound`, everything is decided. `bound` only rises from one call to the next."""
        view = log.view
        if self._generation != view.generation:
            self._begin(storage, log, bound)
        for number, segment in enumerate(view.segments):
            end_offset = view.bases[number + 1] if number + 1 < len(view.bases) else view.end_offset
            if end_offset > self._offset:
                size = view.segment_size(number)
                found = segment.find(self._offset, size)
                if found is not None:
                    block = _Block(segment.file)
                    for table, shift in scan_headers(block, found.position, size):
                        self._scan.take(block, table, shift)
                self._offset = end_offset
        self._take_events(bound)
        return min(self._open.values(), default=bound)

    def _begin(self, storage: Storage, log: WatchedLog, bound: int) -> None:
        self._forget(log.view.generation, log.start_offset)
        offsets = (base_offset_of(name) for name in storage.files(log.folder, SNAPSHOT))
        for offset in sorted((each for each in offsets if each is not None), reverse=True):
            if log.start_offset < offset <= bound:
                try:
                    entries = read_snapshot(storage, log.folder / file_name(offset, SNAPSHOT))
                except (CorruptFile, FileNotFoundError):
                    continue
                firsts = {producer_id: entry.txn_first_offset for producer_id, entry in entries.items()}
                self._open = {producer_id: first for producer_id, first in firsts.items() if first >= 0}
                self._offset = offset
                return

    def _take_events(self, bound: int) -> None:
        """Take those that may be seen; the others wait."""
        events = self._scan.events
        taken = 0
        for at in range(0, len(events), EVENT):
            offset, producer_id, what = events[at : at + EVENT]
            if offset >= bound:
                break
            taken = at + EVENT
            if what == DATA:
                self._open.setdefault(producer_id, offset)
            else:
                self._open.pop(producer_id, None)
        del events[:taken]


class Choice(Protocol):
    """Which batches of a slice are to be read."""

    def at(self, shift: int) -> Keep:
        """Of a window, in which positions count from `shift`."""


def choice_for(options: Options, file: File, piece: Slice) -> Choice | None:
    """Which batches of a slice are to be read; None where that is all."""
    if options.read_committed:
        return Outcomes(file, piece, with_control=options.include_control_records)
    return None if options.include_control_records else _NoControl()


def _no_control(table: Int64s) -> Truths:
    kept: Truths = (table[:, scan.ATTRIBUTES] & _CONTROL == 0) | (table[:, scan.MAGIC] < 2)
    return kept


class _NoControl:
    """For readers of everything but control records."""

    def at(self, shift: int) -> Keep:
        """Of every window the same."""
        return _no_control


class _Ends(NamedTuple):
    """The markers of a producer."""

    offsets: list[int]
    aborts: list[bool]


class Outcomes:
    """How the transactions ended that have batches in a slice."""

    def __init__(self, file: File, piece: Slice, *, with_control: bool) -> None:
        self._with_control = with_control
        self._scan = TransactionScan()
        self._tables = _headers_from(file, piece)
        self._ends: dict[int, _Ends] = {}

    def at(self, shift: int) -> Keep:
        """Of every window the same: what is looked at are offsets."""
        return self._keep

    def _keep(self, table: Int64s) -> Truths:
        attributes = table[:, scan.ATTRIBUTES]
        new = table[:, scan.MAGIC] == 2
        control = new & (attributes & _CONTROL != 0)
        kept: Truths = np.ones(len(table), bool) if self._with_control else ~control
        rows = np.flatnonzero(new & ~control & (attributes & _TRANSACTIONAL != 0))
        producers, offsets = table[rows, scan.PRODUCER_ID], table[rows, scan.BASE_OFFSET]
        for producer_id in np.unique(producers).tolist():
            chosen = producers == producer_id
            wanted = offsets[chosen]
            ends = self._ends_behind(producer_id, int(wanted.max()))
            number = np.searchsorted(np.array(ends.offsets, np.int64), wanted, side="right")
            kept[rows[chosen]] = ~np.array([*ends.aborts, False])[number]
        return kept

    def _ends_behind(self, producer_id: int, offset: int) -> _Ends:
        """The markers of a producer, with one behind `offset` if there is any."""
        while True:
            ends = self._ends.get(producer_id, _Ends([], []))
            if bisect_right(ends.offsets, offset) < len(ends.offsets) or not self._look_ahead():
                return ends

    def _look_ahead(self) -> bool:
        """Note the markers of some more headers; False where there are no more."""
        for file, table, shift in self._tables:
            self._scan.take(file, table, shift)
            events = self._scan.events
            for at in range(0, len(events), EVENT):
                offset, producer_id, what = events[at : at + EVENT]
                if what != DATA:
                    ends = self._ends.setdefault(producer_id, _Ends([], []))
                    ends.offsets.append(offset)
                    ends.aborts.append(what == ABORT)
            del events[:]
            return True
        return False


class _Block(File):
    """A file whose last block that was read is kept, so that looking into it again costs nothing."""

    __slots__ = ("_at", "_block", "_file")

    def __init__(self, file: File) -> None:
        self.path = file.path
        self._file = file
        self._block = memoryview(b"")
        self._at = 0

    def size(self) -> int:
        """Bytes in the file."""
        return self._file.size()

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; how many bytes there were."""
        size = self._file.read_into(buffer, position)
        self._block, self._at = buffer[:size], position
        return size

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only where the file ends."""
        at = position - self._at
        if at >= 0 and at + size <= len(self._block):
            return bytes(self._block[at : at + size])
        return self._file.read_at(size, position)


def _headers_from(file: File, piece: Slice) -> Iterator[tuple[File, Int64s, int]]:
    """Tables of headers from the begin of a slice to the end of the log."""
    storage, folder = piece.root.storage(), piece.folder_path()
    base_offset: int | None = piece.base_offset
    position = piece.position
    while base_offset is not None:
        block = _Block(file)
        for table, shift in scan_headers(block, position, file.size()):
            yield block, table, shift
        opened = _open_behind(storage, folder, base_offset)
        if opened is None:
            return
        base_offset, file = opened
        position = 0


def _open_behind(storage: Storage, folder: Path, base_offset: int) -> tuple[int, File] | None:
    """The segment that follows the one with this base, if there is one."""
    while True:
        bases = (base_offset_of(name) for name in storage.files(folder, LOG))
        following = min((base for base in bases if base is not None and base > base_offset), default=None)
        if following is None:
            return None
        try:
            return following, storage.open(folder / file_name(following, LOG))
        except FileNotFoundError:
            base_offset = following  # deleted, or put together with the one before: on to the next

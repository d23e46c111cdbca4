"""Check every batch of a segment file, and compute what its indexes should hold: recovery's work on one file.

The kernels process one block of batches per call. Reading stops at the first batch that is not sound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from octavo.errors import BadRecord, FormatError
from octavo.log.files.leader_epochs import EpochEntry
from octavo.log.segment.block_reader import LARGE, BlockReader
from octavo.log.segment.index import TimeEntry
from octavo.log.segment.index_entries import Int64s, packed_offsets, packed_times
from octavo.log.storage import File
from octavo.records.kernels import index, kernels, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.layout import NO_LEADER_EPOCH, NO_TIMESTAMP

_BLOCK: Final = 4 << 20  # bytes: many batches per call, still in the processor's cache when they are checked
_ROWS: Final = 1 << 15

OnTable = Callable[[Int64s, int], None]


class Found(NamedTuple):
    """Index entries for a range of sound batches, packed as in the files, and the leader epochs that begin there."""

    offsets: bytes
    times: bytes
    epochs: list[EpochEntry]


class Scanner:
    """One walk through one segment file, from its first byte to its end or to the first batch that is not sound."""

    def __init__(self, file: File, base_offset: int, *, interval: int, latest_epoch: int = NO_LEADER_EPOCH) -> None:
        self.position = 0  # all batches before it are sound
        self.error: FormatError | None = None  # what is wrong with the batch at `position`
        end = file.size()
        self._base_offset = base_offset
        self._interval = interval
        self._on_table: OnTable | None = None
        self._kernels = kernels(end)
        self._reader = BlockReader(self._kernels, min(_BLOCK, max(end, 1)), _ROWS)
        self._reader.begin(file, 0, end)
        self._offset_entries = np.empty((_ROWS, 2), np.int64)
        self._time_entries = np.empty((_ROWS, 2), np.int64)
        self._epochs = np.empty((_ROWS, 2), np.int64)
        self._state = np.zeros(index.STATE, np.int64)
        self._state[index.NEXT_OFFSET] = base_offset
        self._state[index.LARGEST_TIMESTAMP] = self._state[index.INDEXED_TIMESTAMP] = NO_TIMESTAMP
        self._state[index.LARGEST_OFFSET] = base_offset
        self._state[index.EPOCH] = latest_epoch

    @property
    def end_offset(self) -> int:
        """The offset after the last sound batch."""
        return int(self._state[index.NEXT_OFFSET])

    @property
    def largest(self) -> TimeEntry:
        """The largest timestamp so far, and the last offset of its batch."""
        return TimeEntry(int(self._state[index.LARGEST_TIMESTAMP]), int(self._state[index.LARGEST_OFFSET]))

    def run(
        self, take: Callable[[Found], None], on_bytes: Callable[[int], None], on_table: OnTable | None = None
    ) -> None:
        """Scan the file, and call back with what is found.

        `take` gets what the indexes should hold, in portions. `on_bytes` gets the number of bytes checked. `on_table`
        gets the headers of sound batches (see `kernels.scan`), and the file position to which theirs are relative.
        """
        self._on_table = on_table
        reader = self._reader
        while self.error is None and (met := reader.next()) != scan.DONE:
            before = self.position
            if met == scan.MORE:
                self._index(self._verified(), take)
            elif met == LARGE:
                self.error = reader.check_large()
                if self.error is None:
                    self._index(1, take)
                    reader.pass_large()
            else:
                self.error = reader.error()
            if self.position > before:
                on_bytes(self.position - before)

    def _verified(self) -> int:
        """Return the number of batches in the table before the first whose checksum is wrong."""
        memory, table = self._reader.memory, self._reader.table
        wrong = first_mismatch(self._kernels, memory, table)
        if wrong is None:
            return len(table)
        self.error = mismatch(memory, table[wrong], self._reader.shift)
        return wrong

    def _index(self, rows: int, take: Callable[[Found], None]) -> None:
        """Process the first `rows` batches of the table, up to the first whose offsets make no sense."""
        table, shift = self._reader.table, self._reader.shift
        sound = self._kernels.index_batches(
            table,
            rows,
            shift,
            self._base_offset,
            self._interval,
            self._state,
            self._offset_entries,
            self._time_entries,
            self._epochs,
        )
        if sound < rows:
            at = shift + int(table[sound, scan.POSITION])
            self.error = BadRecord(at, "the batch's offsets do not follow those before it")
        offset_count, time_count, epoch_count = self._state[index.OFFSET_ENTRIES : index.STATE].tolist()
        if offset_count or epoch_count:
            take(
                Found(
                    packed_offsets(self._offset_entries[:offset_count], self._base_offset),
                    packed_times(self._time_entries[:time_count], self._base_offset),
                    [EpochEntry(*entry) for entry in self._epochs[:epoch_count].tolist()],
                )
            )
        if sound:
            if self._on_table is not None:
                self._on_table(table[:sound], shift)
            self.position = shift + int(table[sound - 1, scan.POSITION] + table[sound - 1, scan.SIZE])

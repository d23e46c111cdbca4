"""Check every batch of a segment file, and compute what its indexes should hold: recovery's work on one file.

The file is read in blocks into the same memory, and the kernels process one block of batches per call. The memory does
not grow with the file, nor with the length that a damaged header claims.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from octavo.errors import BadRecord, ChecksumMismatch, FormatError, Truncated
from octavo.log.files.leader_epochs import EpochEntry
from octavo.log.segment.index import TimeEntry
from octavo.log.segment.index_entries import Int64s, packed_offsets, packed_times
from octavo.log.storage import File
from octavo.records.checksum import covered_from, crc32, crc32c
from octavo.records.kernels import index, kernels, rules, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.layout import (
    BATCH_HEADER,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_INT64,
    MIN_INT64,
    MIN_LENGTH,
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
)

_BLOCK: Final = 4 << 20  # bytes: many batches per call, still in the processor's cache when they are checked
_ROWS: Final = 1 << 15
_EVERYTHING: Final = (MIN_INT64, MAX_INT64, MIN_INT64, MAX_INT64)

OnTable = Callable[[Int64s, int], None]


class Found(NamedTuple):
    """What a range of sound batches adds to the indexes, with the entries packed as in the files."""

    offsets: bytes
    times: bytes
    epochs: list[EpochEntry]


class Scanner:
    """One walk through one segment file, from its first byte to its end or to the first batch that is not sound."""

    def __init__(self, file: File, base_offset: int, *, interval: int, latest_epoch: int = NO_LEADER_EPOCH) -> None:
        self.position = 0  # all batches before it are sound
        self.error: FormatError | None = None  # what is wrong with the batch there
        self._file = file
        self._end = file.size()
        self._base_offset = base_offset
        self._interval = interval
        self._on_table: OnTable | None = None
        self._kernels = kernels(self._end)
        self._memory = np.empty(min(_BLOCK, max(self._end, 1)), np.uint8)
        self._table = np.empty((_ROWS, scan.COLUMNS), np.int64)
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
        gets the headers of sound batches (see `kernels.scan`), and the file position from which their positions count.
        """
        self._on_table = on_table
        while self.error is None and self.position < self._end:
            before = self.position
            size = self._file.read_into(self._memory.data, before)
            self._scan_block(min(size, self._end - before), take)
            on_bytes(self.position - before)

    def _scan_block(self, size: int, take: Callable[[Found], None]) -> None:
        """Process the batches in the first `size` bytes of the memory, which come from `position` of the file."""
        shift = self.position
        at = 0
        outcome = scan.MORE
        while outcome == scan.MORE:
            behind, rows, outcome, rule = self._kernels.scan(self._memory, at, size, self._table, size, *_EVERYTHING)
            if rows:
                at = self._take_rows(rows, shift, take)
            if self.error is None and outcome == scan.BROKEN:
                self.error = rules.broken(rule, shift + behind)
            if self.error is not None:
                return
        if outcome != scan.TORN:
            return
        if shift + size == self._end:
            self.error = Truncated(self.position, "the file ends inside a batch")
        elif at == 0:
            self._take_large(shift, take)

    def _take_rows(self, rows: int, shift: int, take: Callable[[Found], None]) -> int:
        """Process the batches of the table up to the first that is not sound. Returns where in memory they end."""
        table = self._table[:rows]
        wrong = first_mismatch(self._kernels, self._memory, table)
        if wrong is not None:
            found = mismatch(self._memory, table[wrong])
            self.error = ChecksumMismatch(shift + found.position, found.stored, found.computed)
        return self._index(rows if wrong is None else wrong, shift, take)

    def _index(self, rows: int, shift: int, take: Callable[[Found], None]) -> int:
        sound = self._kernels.index_batches(
            self._table,
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
            at = shift + int(self._table[sound, scan.POSITION])
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
        if sound == 0:
            return int(self._table[0, scan.POSITION])
        if self._on_table is not None:
            self._on_table(self._table[:sound], shift)
        end = int(self._table[sound - 1, scan.POSITION] + self._table[sound - 1, scan.SIZE])
        self.position = shift + end
        return end

    def _take_large(self, position: int, take: Callable[[Found], None]) -> None:
        """Process one batch that is larger than the memory. Its header is in memory; the file may end inside it."""
        header = bytes(self._memory[: BATCH_HEADER.size])
        size = int.from_bytes(header[LENGTH_AT : LENGTH_AT + 4], "big", signed=True) + LOG_OVERHEAD
        assert size >= MIN_LENGTH  # the scan has checked that
        if position + size > self._end:
            self.error = Truncated(position, "the file ends inside a batch")
            return
        scan.read_row(memoryview(header), 0, size, self._table.data, 0)
        magic = header[MAGIC_AT]
        checksum = 0
        at = covered_from(magic)
        while at < size:
            got = self._file.read_into(self._memory.data[: size - at], position + at)
            if not got:
                self.error = Truncated(position, "the file ends inside a batch")
                return
            checksum = (crc32c if magic == 2 else crc32)(self._memory.data[:got], checksum)
            at += got
        stored = int(self._table[0, scan.CRC])
        if checksum != stored:
            self.error = ChecksumMismatch(position, stored, checksum)
            return
        self._index(1, position, take)

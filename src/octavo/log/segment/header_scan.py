"""Scan the headers of many batches of a segment file with kernels. Records are not read.

The file is read in blocks into the same memory. A walk ends at bytes that are not a batch, or not a complete one. With
an `OnDamage`, it also verifies what decides transactions, reports what is wrong, and goes on where the callback says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.errors import ChecksumMismatch, CorruptFile, FormatError, Truncated
from octavo.log.segment.batch_walk import Entry, check
from octavo.log.segment.damage import MARKER_SIZE, WRONG_CRC, OnDamage, wrong_with
from octavo.log.storage import File
from octavo.records.kernels import Kernels, kernels, rules, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.layout import (
    BATCH_HEADER,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAX_INT64,
    MIN_INT64,
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
    Attributes,
)
from octavo.records.offset_order import HEAD_SIZE, base_offset_at, first_misplaced, is_misplaced, misplaced

Table = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_BLOCK: Final = 1 << 20  # bytes
_ROWS: Final = 1 << 13
_MARKER: Final = int(Attributes.TRANSACTIONAL | Attributes.CONTROL)
_SHARE: Final = 16  # a scan looks at one byte in so many, at the most; only these count as work for the kernels
_EVERYTHING: Final = (MIN_INT64, MAX_INT64, MIN_INT64, MAX_INT64)


class BlockFile(File):
    """A file that keeps the last block that was read, so that reading from it again costs nothing."""

    __slots__ = ("_at", "_block", "_file")

    def __init__(self, file: File) -> None:
        self.path = file.path
        self._file = file
        self._block = memoryview(b"")
        self._at = 0

    def size(self) -> int:
        """Return the number of bytes in the file."""
        return self._file.size()

    def next_data(self, position: int) -> int:
        """Return where the data go on after a hole."""
        return self._file.next_data(position)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`. Returns the number of bytes read."""
        size = self._file.read_into(buffer, position)
        self._block, self._at = buffer[:size], position
        return size

    def read_at(self, size: int, position: int) -> bytes:
        """Read `size` bytes from `position`; fewer only at the end of the file."""
        at = position - self._at
        if at >= 0 and at + size <= len(self._block):
            return bytes(self._block[at : at + size])
        return self._file.read_at(size, position)


def scan_headers(file: File, position: int, end: int, on_damage: OnDamage | None = None) -> Iterator[tuple[Table, int]]:
    """Yield tables of the batches between `position` and `end` (see `kernels.scan`).

    With each table comes the file position from which the positions in it count. A table is valid until the next one is
    requested. `on_damage` is also called for a batch that extends beyond `end`, for wrong checksums of batches that are
    as small as markers, and for offsets that do not increase. Otherwise a caller that has to know every transaction
    would not notice a missing marker.
    """
    memory = np.empty(min(_BLOCK, max(end - position, 1)), np.uint8)
    table = np.empty((_ROWS, scan.COLUMNS), np.int64)
    kernel_set = kernels((end - position) // _SHARE)
    checker = None if on_damage is None else _Checker(kernel_set, position)
    while position < end:
        shift = position
        size = min(file.read_into(memory.data, shift), end - shift)
        at, outcome, rule = 0, scan.MORE, rules.OK
        error: FormatError | None = None
        while outcome == scan.MORE and error is None:
            behind, rows, outcome, rule = kernel_set.scan(memory, at, size, table, MAX_INT64, *_EVERYTHING)
            if not rows:
                break
            good = rows
            if checker is not None:
                good, error = checker.check(memory[:size], table[:rows], behind, shift)
            at = behind if error is None else int(table[good, scan.POSITION])
            if good:
                yield table[:good], shift
        position = shift + at
        if error is None:
            if outcome == scan.BROKEN:
                error = rules.broken(rule, position)
            elif at:
                continue
            else:  # a batch that is larger than the memory, or is not complete
                large = _large(memory[:size], table, end - position)
                error = checker.check_large(file, table[0], shift) if large and checker is not None else None
                if large and error is None:
                    yield table[:1], shift
                    position += large
                    continue
                error = error or Truncated(position, "the file ends inside a batch")
            if checker is not None:
                error = wrong_with(file, checker.last_position, position) or error
        if on_damage is None:
            return
        position = on_damage(file, error, end)


class _Checker:
    """Check the batches of a file in order, as far as needed to see every transaction correctly."""

    def __init__(self, kernel_set: Kernels, position: int) -> None:
        self.last_position = position  # of the last accepted batch
        self._last_offset = MIN_INT64
        self._kernels = kernel_set

    def check(self, memory: Bytes, table: Table, end: int, shift: int) -> tuple[int, FormatError | None]:
        """Return how many batches of a table are acceptable, and what is wrong with the next one.

        `end` is where the last batch of the table ends in memory. A batch that looks like a marker stays in the table
        even if its checksum is wrong; its checksum is then replaced by `WRONG_CRC`.
        """
        good, error = self._verify(memory, table, shift)
        behind = base_offset_at(memory.data, end) if error is None else None
        misplaced_row = first_misplaced(table[:good], self._last_offset, behind)
        if misplaced_row is not None:
            good, error = misplaced_row, misplaced(shift + int(table[misplaced_row, scan.POSITION]))
            if good and first_mismatch(self._kernels, memory, table[good - 1 : good]) is not None:
                good -= 1  # its last offset is wrong, and the batch after it is right
                error = _mismatch(memory, table[good], shift)
        if good:
            self._take(table[good - 1], shift)
        return good, error

    def _verify(self, memory: Bytes, table: Table, shift: int) -> tuple[int, FormatError | None]:
        """Verify the batches that are as small as markers, and the last one, which says where to go on."""
        rows = np.append(np.flatnonzero(table[:-1, scan.SIZE] <= MARKER_SIZE), len(table) - 1)
        while len(rows):
            wrong = first_mismatch(self._kernels, memory, table[rows])
            if wrong is None:
                break
            row = int(rows[wrong])
            if not _seems_marker(table[row]):
                return row, _mismatch(memory, table[row], shift)
            table[row, scan.CRC] = WRONG_CRC
            table[row, scan.LAST_OFFSET] = table[row, scan.BASE_OFFSET]
            rows = rows[wrong + 1 :]
        return len(table), None

    def check_large(self, file: File, row: Table, position: int) -> FormatError | None:
        """Return what is wrong with a batch that is larger than the memory; None if nothing is wrong."""
        size, base_offset, last_offset = row[[scan.SIZE, scan.BASE_OFFSET, scan.LAST_OFFSET]].tolist()
        behind = base_offset_at(file.read_at(HEAD_SIZE, position + size), 0)
        try:
            check(file, Entry(position, size, base_offset, last_offset, NO_TIMESTAMP))
        except CorruptFile as error:
            return error
        if is_misplaced(base_offset, last_offset, self._last_offset, behind):
            return misplaced(position)
        self._take(row, position)
        return None

    def _take(self, row: Table, shift: int) -> None:
        self.last_position = shift + int(row[scan.POSITION])
        self._last_offset = int(row[scan.LAST_OFFSET])


def _seems_marker(row: Table) -> bool:
    magic, attributes, producer_id, size = row[[scan.MAGIC, scan.ATTRIBUTES, scan.PRODUCER_ID, scan.SIZE]].tolist()
    is_end = magic == 2 and attributes & _MARKER == _MARKER and producer_id >= 0
    return bool(is_end and size <= MARKER_SIZE)


def _mismatch(memory: Bytes, row: Table, shift: int) -> FormatError:
    found = mismatch(memory, row)
    return ChecksumMismatch(shift + found.position, found.stored, found.computed)


def epochs_of(file: File, end: int) -> Iterator[tuple[int, int]]:
    """Yield the leader epochs of a segment file, each with the offset at which it begins."""
    latest = NO_LEADER_EPOCH
    for table, _ in scan_headers(file, 0, end):
        epochs = np.where(table[:, scan.MAGIC] == 2, table[:, scan.LEADER_EPOCH], NO_LEADER_EPOCH)
        before = np.maximum.accumulate(np.concatenate(([latest], epochs)))
        for row in np.flatnonzero(epochs > before[:-1]).tolist():
            yield int(epochs[row]), int(table[row, scan.BASE_OFFSET])
        latest = int(before[-1])


def _large(memory: npt.NDArray[np.uint8], table: Table, left: int) -> int:
    """Read the header of a batch that is larger than the memory. Returns its size, or 0 if it exceeds `left`."""
    header = bytes(memory[: BATCH_HEADER.size])
    size = int.from_bytes(header[LENGTH_AT : LENGTH_AT + 4], "big", signed=True) + LOG_OVERHEAD
    if len(header) < BATCH_HEADER.size or size > left:
        return 0
    scan.read_row(memoryview(header), 0, size, table.data, 0)
    return size

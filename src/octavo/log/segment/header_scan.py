"""Scan the headers of many batches of a segment file with kernels. Records are not read.

The file is read in blocks into the same memory. A walk ends at bytes that are not a batch, or not a complete one. With
an `OnDamage`, it also verifies batches that may decide transactions, reports damage, and goes on where that callback
says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from octavo.errors import FormatError
from octavo.log.segment.block_reader import LARGE, BlockReader
from octavo.log.segment.damage import MARKER_SIZE, WRONG_CRC, OnDamage, wrong_with
from octavo.log.storage import File
from octavo.records.kernels import Kernels, kernels, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.kernels.batch_table import Bytes, Table
from octavo.records.layout import MIN_INT64, NO_LEADER_EPOCH, Attributes
from octavo.records.offset_order import HEAD_SIZE, base_offset_at, first_misplaced, is_misplaced, misplaced

_BLOCK: Final = 1 << 20  # bytes
_ROWS: Final = 1 << 13
_MARKER: Final = int(Attributes.TRANSACTIONAL | Attributes.CONTROL)
_SHARE: Final = 16  # a scan looks at one byte in 16 at most; only these bytes count as work for the kernels


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
        """Return the end of the hole at `position`; `position` itself if there is no hole."""
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

    Each table comes with the file position to which its positions are relative. A table is valid until the next one is
    requested. `on_damage` is also called for a batch that extends beyond `end`, for wrong checksums of batches that are
    as small as markers, and for offsets that do not increase. Otherwise a caller that has to know every transaction
    would not notice a missing marker.
    """
    kernel_set = kernels((end - position) // _SHARE)
    reader = BlockReader(kernel_set, min(_BLOCK, max(end - position, 1)), _ROWS)
    reader.begin(file, position, end)
    checker = None if on_damage is None else _Checker(kernel_set, position)
    while (met := reader.next()) != scan.DONE:
        error: FormatError | None = None
        good = len(reader.table)
        if met == scan.MORE:
            if checker is not None:
                good, error = checker.check(reader)
        elif met == LARGE:
            if checker is not None:
                error = checker.check_large(reader)
                good = int(error is None)
        else:
            error = reader.error()
        if good:
            yield reader.table[:good], reader.shift
        if error is None:
            if met == LARGE:
                reader.pass_large()
        elif checker is None or on_damage is None:
            return
        else:
            if met != scan.MORE:
                error = wrong_with(file, checker.last_position, reader.position) or error
            reader.go_to(on_damage(file, error, end))


class _Checker:
    """Checks the batches of a file in order, as far as is needed to see every transaction correctly."""

    def __init__(self, kernel_set: Kernels, position: int) -> None:
        self.last_position = position  # of the last accepted batch
        self._last_offset = MIN_INT64
        self._kernels = kernel_set

    def check(self, reader: BlockReader) -> tuple[int, FormatError | None]:
        """Return how many batches of a table are acceptable, and what is wrong with the next one.

        A batch that looks like a marker stays in the table even if its checksum is wrong; its checksum is then replaced
        by `WRONG_CRC`.
        """
        memory, table, shift = reader.memory[: reader.size], reader.table, reader.shift
        good, error = self._verify(memory, table, shift)
        behind = base_offset_at(memory.data, reader.position - shift) if error is None else None
        misplaced_row = first_misplaced(table[:good], self._last_offset, behind)
        if misplaced_row is not None:
            good, error = misplaced_row, misplaced(shift + int(table[misplaced_row, scan.POSITION]))
            if good and first_mismatch(self._kernels, memory, table[good - 1 : good]) is not None:
                good -= 1  # its last offset is wrong, and the batch after it is right
                error = mismatch(memory, table[good], shift)
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
                return row, mismatch(memory, table[row], shift)
            table[row, scan.CRC] = WRONG_CRC
            table[row, scan.LAST_OFFSET] = table[row, scan.BASE_OFFSET]
            rows = rows[wrong + 1 :]
        return len(table), None

    def check_large(self, reader: BlockReader) -> FormatError | None:
        """Return what is wrong with a batch that is larger than the memory; None if nothing is wrong."""
        row, position = reader.table[0], reader.position
        base_offset, last_offset = row[[scan.BASE_OFFSET, scan.LAST_OFFSET]].tolist()
        error = reader.check_large()
        if error is not None:
            return error
        behind = base_offset_at(reader.file.read_at(HEAD_SIZE, position + reader.large), 0)
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


def epochs_of(file: File, end: int) -> Iterator[tuple[int, int]]:
    """Yield the leader epochs of a segment file, each with the offset at which it begins."""
    latest = NO_LEADER_EPOCH
    for table, _ in scan_headers(file, 0, end):
        epochs = np.where(table[:, scan.MAGIC] == 2, table[:, scan.LEADER_EPOCH], NO_LEADER_EPOCH)
        before = np.maximum.accumulate(np.concatenate(([latest], epochs)))
        for row in np.flatnonzero(epochs > before[:-1]).tolist():
            yield int(epochs[row]), int(table[row, scan.BASE_OFFSET])
        latest = int(before[-1])

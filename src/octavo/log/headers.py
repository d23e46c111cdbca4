"""Walk the headers of many batches of a segment file by kernels: for who needs no checksum and no record of them.

The file is read in blocks into the same memory. Where there is no batch, or not all of one, a walk ends, unless it was
given somebody to tell of it, who says where to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.errors import FormatError, Truncated
from octavo.log.damage import OnDamage
from octavo.log.small_file import CorruptFile
from octavo.log.storage import File
from octavo.records.kernels import kernels, rules, scan
from octavo.records.layout import BATCH_HEADER, LENGTH_AT, LOG_OVERHEAD, MAX_INT64, MIN_INT64, NO_LEADER_EPOCH
from octavo.records.reader import read_batches

Table = npt.NDArray[np.int64]

_BLOCK: Final = 1 << 20  # bytes
_ROWS: Final = 1 << 13
_SHARE: Final = 16  # of the bytes, at the least, that is not looked at
_EVERYTHING: Final = (MIN_INT64, MAX_INT64, MIN_INT64, MAX_INT64)


class BlockFile(File):
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


def scan_headers(file: File, position: int, end: int, on_damage: OnDamage | None = None) -> Iterator[tuple[Table, int]]:
    """Tables of the batches between `position` and `end` (see `kernels.scan`), and what their positions count from.

    A table is good until the next is asked for. To `on_damage`, a batch that reaches over `end` is damage too.
    """
    memory = np.empty(min(_BLOCK, max(end - position, 1)), np.uint8)
    table = np.empty((_ROWS, scan.COLUMNS), np.int64)
    kernel = kernels((end - position) // _SHARE).scan
    last = position  # where the last batch begins
    while position < end:
        size = min(file.read_into(memory.data, position), end - position)
        at, outcome, rule = 0, scan.MORE, rules.OK
        while outcome == scan.MORE:
            behind, rows, outcome, rule = kernel(memory, at, size, table, MAX_INT64, *_EVERYTHING)
            if rows:
                last = position + int(table[rows - 1, scan.POSITION])
                yield table[:rows], position
                at = behind
        position += at
        if outcome == scan.BROKEN:
            error = rules.broken(rule, position)
        elif at:
            continue
        else:  # a batch that is larger than the memory, or one that is not all there
            large = _large(memory[:size], table, end - position)
            if large:
                last = position
                yield table[:1], position
                position += large
                continue
            error = Truncated(position, "the file ends inside a batch")
        if on_damage is None:
            return
        position = on_damage(file, _wrong_with(file, last, position) or error, end)


def epochs_of(file: File, end: int) -> Iterator[tuple[int, int]]:
    """The leaders' epochs of the batches of a segment file, each with the offset at which it begins."""
    latest = NO_LEADER_EPOCH
    for table, _ in scan_headers(file, 0, end):
        epochs = np.where(table[:, scan.MAGIC] == 2, table[:, scan.LEADER_EPOCH], NO_LEADER_EPOCH)
        before = np.maximum.accumulate(np.concatenate(([latest], epochs)))
        for row in np.flatnonzero(epochs > before[:-1]).tolist():
            yield int(epochs[row]), int(table[row, scan.BASE_OFFSET])
        latest = int(before[-1])


def _large(memory: npt.NDArray[np.uint8], table: Table, left: int) -> int:
    """Read the header of a batch of which the memory has only the beginning; its size, 0 where that is not `left`."""
    header = bytes(memory[: BATCH_HEADER.size])
    size = int.from_bytes(header[LENGTH_AT : LENGTH_AT + 4], "big", signed=True) + LOG_OVERHEAD
    if len(header) < BATCH_HEADER.size or size > left:
        return 0
    scan.read_row(memoryview(header), 0, size, table.data, 0)
    return size


def _wrong_with(file: File, position: int, end: int) -> FormatError | None:
    """What is wrong with a batch whose length has led to where there is none: it may be the length."""
    try:
        next(read_batches(file.read_at(end - position, position)), None)
    except FormatError as error:
        return CorruptFile(file.path, position + error.position, error.rule)
    return None

"""Walk the headers of many batches of a segment file by kernels: for who needs no checksum and no record of them.

The file is read in blocks into the same memory. A walk ends where there is no batch, or not all of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.log.storage import File
from octavo.records.kernels import kernels, scan
from octavo.records.layout import BATCH_HEADER, LENGTH_AT, LOG_OVERHEAD, MAX_INT64, MIN_INT64, NO_LEADER_EPOCH

_BLOCK: Final = 1 << 20  # bytes
_ROWS: Final = 1 << 13
_SHARE: Final = 16  # of the bytes, at the least, that is not looked at
_EVERYTHING: Final = (MIN_INT64, MAX_INT64, MIN_INT64, MAX_INT64)


def scan_headers(file: File, position: int, end: int) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
    """Tables of the batches between `position` and `end` (see `kernels.scan`), and what their positions count from.

    A table is good until the next is asked for.
    """
    memory = np.empty(min(_BLOCK, max(end - position, 1)), np.uint8)
    table = np.empty((_ROWS, scan.COLUMNS), np.int64)
    kernel = kernels((end - position) // _SHARE).scan
    while position < end:
        size = min(file.read_into(memory.data, position), end - position)
        at, outcome = 0, scan.MORE
        while outcome == scan.MORE:
            behind, rows, outcome, _ = kernel(memory, at, size, table, MAX_INT64, *_EVERYTHING)
            if rows:
                yield table[:rows], position
                at = behind
        if outcome == scan.BROKEN or not size:
            return
        if at == 0:  # a batch that is larger than the memory, or one that is not all there
            at = _large(memory[:size], table, end - position)
            if not at:
                return
            yield table[:1], position
        position += at


def epochs_of(file: File, end: int) -> Iterator[tuple[int, int]]:
    """The leaders' epochs of the batches of a segment file, each with the offset at which it begins."""
    latest = NO_LEADER_EPOCH
    for table, _ in scan_headers(file, 0, end):
        epochs = np.where(table[:, scan.MAGIC] == 2, table[:, scan.LEADER_EPOCH], NO_LEADER_EPOCH)
        before = np.maximum.accumulate(np.concatenate(([latest], epochs)))
        for row in np.flatnonzero(epochs > before[:-1]).tolist():
            yield int(epochs[row]), int(table[row, scan.BASE_OFFSET])
        latest = int(before[-1])


def _large(memory: npt.NDArray[np.uint8], table: npt.NDArray[np.int64], left: int) -> int:
    """Read the header of a batch of which the memory has only the beginning; its size, 0 where that is not `left`."""
    header = bytes(memory[: BATCH_HEADER.size])
    size = int.from_bytes(header[LENGTH_AT : LENGTH_AT + 4], "big", signed=True) + LOG_OVERHEAD
    if len(header) < BATCH_HEADER.size or size > left:
        return 0
    scan.read_row(memoryview(header), 0, size, table.data, 0)
    return size

"""Read small slices together, so that many small segments cost about as much as one large one.

A `Window` describes the bytes of several slices, one after the other in memory, which are decoded together. Slices are
joined only if every batch in them is wanted and their headers are in order. The code that reads slices one by one
handles everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.records.kernels import kernels, scan
from octavo.records.kernels.batch_table import BatchTable
from octavo.records.layout import Attributes
from octavo.spark.slices import Slice

Int64s = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

# Measured: reading a slice alone costs as much as decoding some 100 KiB.
SMALL: Final = 256 << 10  # the most bytes of a slice that is read together with others
_FEW_ROWS: Final = 4096  # batches with fewer rows and bytes are joined before Spark gets them
_FEW_BYTES: Final = 1 << 20
_ROWS: Final = 4096  # number of rows in a table of headers
_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)
_HEADER: Final = [scan.POSITION, scan.BASE_OFFSET, scan.LAST_OFFSET, scan.MAGIC, scan.ATTRIBUTES]


def group_small(slices: Iterable[Slice], room: int) -> Iterator[list[Slice]]:
    """Group slices that are read together: small slices of up to `room` bytes in all, or one large slice alone."""
    group: list[Slice] = []
    size = 0
    for piece in slices:
        if group and (piece.size > SMALL or size + piece.size > room):
            yield group
            group, size = [], 0
        group.append(piece)
        size += piece.size
        if piece.size > SMALL:
            yield group
            group, size = [], 0
    if group:
        yield group


class Window:
    """The positions of several slices that are in memory, one after the other."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        self.slices: Final = slices
        sizes = np.array([piece.size for piece in slices], np.int64)
        self.starts: Final[Int64s] = np.cumsum(sizes) - sizes  # position in memory where each slice begins
        self.size: Final = int(sizes.sum())

    def part_of(self, positions: Int64s) -> Int64s:
        """Return the number of the slice that contains each position."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def locate(self, position: int) -> tuple[int, int]:
        """Return the number of the slice that contains a position, and the same position in the slice's file."""
        number = int(self.part_of(np.array([position], np.int64))[0])
        return number, position - int(self.starts[number]) + self.slices[number].position

    def runs(self, data: npt.NDArray[np.uint8], *, committed: bool) -> Iterator[tuple[int, int]]:
        """Yield runs of slices as pairs: the number of the first slice, and that of the last slice plus one.

        Slices in a run of two or more can be decoded together: their batches begin where they should, have only offsets
        that are wanted, and are in the order of their offsets. With `committed`, they also have no transactional data,
        so that no marker has to be found. Any other slice is a run of its own.
        """
        is_sound = self._sound(data[: self.size], committed)
        changes = np.flatnonzero(~is_sound[1:] | ~is_sound[:-1]) + 1
        yield from pairwise([0, *changes.tolist(), len(is_sound)])

    def _sound(self, data: npt.NDArray[np.uint8], committed: bool) -> Truths:
        headers, end = _scan(data)
        position, base_offset, last_offset, magic, attributes = headers.T
        part = self.part_of(position)
        firsts = np.array([piece.first_offset for piece in self.slices], np.int64)
        ends = np.array([piece.end_offset for piece in self.slices], np.int64)
        good: Truths = (magic == 2) & (base_offset >= firsts[part]) & (last_offset < ends[part])
        good &= last_offset >= base_offset
        good[1:] &= (part[1:] != part[:-1]) | (base_offset[1:] > last_offset[:-1])
        if committed:
            good &= (attributes & _TRANSACTIONAL == 0) | (attributes & _CONTROL != 0)
        is_sound = np.ones(len(self.slices), bool)
        is_sound[part[~good]] = False
        missing = np.flatnonzero(~np.isin(self.starts, position))
        if len(missing):  # no batch begins where the slice begins; one of the slice before may extend into it
            is_sound[max(0, int(missing[0]) - 1) :] = False
        elif end < self.size:
            is_sound[self.locate(end)[0] :] = False
        return is_sound


def _scan(data: npt.NDArray[np.uint8]) -> tuple[Int64s, int]:
    """Scan the batch headers. Return the fields in `_HEADER`, and the position where the last valid batch ends."""
    table = BatchTable(kernels(len(data)), _ROWS)
    found = []
    outcome = scan.MORE
    while outcome == scan.MORE:
        outcome = table.scan(data, table.position, len(data))
        found.append(table.batches[:, _HEADER])
    return np.concatenate(found), table.position


def join_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small Arrow batches, because each batch costs Spark about as much as a thousand rows."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows < _FEW_ROWS and (bytes_of_batch := batch.nbytes) < _FEW_BYTES:
            waiting.append(batch)
            rows += batch.num_rows
            size += bytes_of_batch
            if rows < _FEW_ROWS and size < _FEW_BYTES:
                continue
            batch = None
        if waiting:
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
        if batch is not None:
            yield batch
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined

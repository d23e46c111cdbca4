"""Read the batches of segment files block by block, check them, and decompress those that are needed.

A damaged batch raises `FormatError`. It must neither decide which records are kept, nor be rewritten with a correct
checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.errors import FormatError
from octavo.log.segment.block_reader import LARGE, BlockReader
from octavo.log.storage import File
from octavo.records.compression import Inflater
from octavo.records.kernels import Kernels, rules, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.kernels.batch_inflation import BatchInflation, has_stream

BLOCK: Final = 4 << 20  # bytes: many batches per call, and still in the processor's cache when they are filtered
_ROWS: Final = 1 << 14
_INFLATED: Final = 8 << 20  # bytes to decompress at once; the last batch may exceed this

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Block(NamedTuple):
    """Batches in memory. Valid until the next block is requested."""

    memory: Bytes
    table: Int64s  # see `kernels.scan`
    position: int  # position of the memory's first byte in the file
    size: int  # total size of the batches in the table

    def broken(self, rule: int, row: int, at: int) -> FormatError:
        """Return the error for a batch that breaks a rule at `at`. For a compressed batch, it has the batch's start."""
        if self.table[row, scan.INFLATED]:
            at = int(self.table[row, scan.POSITION])
        return rules.broken(rule, self.position + at)


class Source:
    """Reads segment files one after the other, into the same memory."""

    def __init__(self, kernels: Kernels, block_size: int = BLOCK) -> None:
        self._kernels = kernels
        self._reader: Final = BlockReader(kernels, block_size, _ROWS)
        self._inflater = Inflater()

    def blocks(self, file: File, position: int, end: int) -> Iterator[Block]:
        """Yield the batches between two positions, which must be batch boundaries. Raises `FormatError`."""
        reader = self._reader
        reader.begin(file, position, end)
        while (met := reader.next()) != scan.DONE:
            if met == scan.MORE:
                yield self._checked(reader)
            elif met == LARGE:
                reader.grow()
            else:
                raise reader.error()

    def _checked(self, reader: BlockReader) -> Block:
        memory, table, shift = reader.memory, reader.table, reader.shift
        wrong = first_mismatch(self._kernels, memory, table)
        if wrong is not None:
            raise mismatch(memory, table[wrong], shift)
        return Block(memory, table, shift, reader.position - shift - int(table[0, scan.POSITION]))

    def inflate(self, block: Block, first: int, unwanted: Int64s) -> int:
        """Decompress batches from row `first` on, except `unwanted` ones. Return the row at which to go on.

        The table then has the positions of their records in `inflated`. Each call advances by at least one row.
        """
        self._inflater.clear()
        table = block.table
        rows = first + np.flatnonzero(has_stream(table[first:]) & (unwanted[first:] == 0))
        inflation = BatchInflation(self._kernels, self._inflater, block.memory, table, rows, shift=block.position)
        inflation.go_on(_INFLATED)
        if inflation.error is not None:
            raise inflation.error
        next_row = inflation.next_row
        return len(table) if next_row is None else next_row

    @property
    def inflated(self) -> Bytes:
        """The records that the last call of `inflate` decompressed."""
        return np.frombuffer(self._inflater.buffer, np.uint8)

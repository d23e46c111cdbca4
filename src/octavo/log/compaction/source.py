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
from octavo.records.kernels.message import walk_message
from octavo.records.layout import BATCH_HEADER, Attributes

BLOCK: Final = 4 << 20  # bytes: many batches per call, and still in the processor's cache when they are filtered
_ROWS: Final = 1 << 14
_INFLATED: Final = 8 << 20  # bytes to decompress at once; the last batch may exceed this
_CODEC: Final = int(Attributes.CODEC)
_TO_INFLATE: Final = [scan.POSITION, scan.SIZE, scan.MAGIC, scan.ATTRIBUTES, scan.COUNT]

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
        compressed = np.flatnonzero((table[first:, scan.ATTRIBUTES] & _CODEC != 0) & (unwanted[first:] == 0)) + first
        size = 0
        for row, batch in zip(compressed.tolist(), table[compressed][:, _TO_INFLATE].tolist(), strict=True):
            if size >= _INFLATED:
                return row
            position, batch_size, magic, attributes, count = batch
            if magic == 2 and count <= 0:
                continue  # an empty batch has no compressed stream
            start, end = self._inflate(block, position, batch_size, magic, attributes & _CODEC)
            table[row, scan.INFLATED : scan.END + 1] = (1, start, end)
            size += end - start
        return len(table)

    def _inflate(self, block: Block, position: int, size: int, magic: int, codec: int) -> tuple[int, int]:
        view = block.memory.data
        start, end = position + BATCH_HEADER.size, position + size
        if magic < 2:
            next_at, _, _, _, _, start, length = walk_message(view, position, end)
            if next_at < 0 or length < 0:
                raise rules.broken(-next_at if next_at < 0 else rules.WRAPPER_NULL, block.position + position)
            end = start + length
        return self._inflater.add(codec, view[start:end], magic, block.position + position)

    @property
    def inflated(self) -> Bytes:
        """The records that the last call of `inflate` decompressed."""
        return np.frombuffer(self._inflater.buffer, np.uint8)


assert (scan.INFLATED, scan.START, scan.END) == (scan.END - 2, scan.END - 1, scan.END)

"""Reads the batches of segment files block by block, checks them, and decompresses those that are needed.

A damaged batch raises. It must neither decide what stays nor be rewritten with a checksum that says it is good.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.errors import ChecksumMismatch, FormatError, Truncated
from octavo.log.storage import File
from octavo.records.compression import Inflater
from octavo.records.kernels import Kernels, rules, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.kernels.message import walk_message
from octavo.records.layout import BATCH_HEADER, LENGTH_AT, LOG_OVERHEAD, MAX_INT64, MIN_INT64, Attributes

BLOCK: Final = 4 << 20  # bytes: many batches per call, and still in the processor's cache when they are filtered
_ROWS: Final = 1 << 14
_INFLATED: Final = 8 << 20  # bytes of records decompressed at once, up to one batch more
_EVERYTHING: Final = (MIN_INT64, MAX_INT64, MIN_INT64, MAX_INT64)
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
        """The error for a rule that a batch breaks at `at`. For a compressed batch, it has the batch's position."""
        if self.table[row, scan.INFLATED]:
            at = int(self.table[row, scan.POSITION])
        return rules.broken(rule, self.position + at)


class Source:
    """Reads one file after the other into the same memory."""

    def __init__(self, kernels: Kernels, block_size: int = BLOCK) -> None:
        self._kernels = kernels
        self._block_size = block_size
        self._memory = np.empty(block_size, np.uint8)
        self._table: Final = np.empty((_ROWS, scan.COLUMNS), np.int64)
        self._inflater = Inflater()

    def blocks(self, file: File, position: int, end: int) -> Iterator[Block]:
        """Yield the batches between two positions, which must be batch boundaries. Raises `FormatError`."""
        while position < end:
            size = min(len(self._memory), end - position)
            if file.read_into(self._memory.data[:size], position) < size:
                raise Truncated(position, "the file ends inside a batch")
            done = 0
            outcome = scan.MORE
            while outcome == scan.MORE:
                behind, rows, outcome, rule = self._kernels.scan(
                    self._memory, done, size, self._table, size, *_EVERYTHING
                )
                if rows:
                    yield self._checked(rows, position, behind - done)
                done = behind
            if outcome == scan.BROKEN:
                raise rules.broken(rule, position + done)
            if done == 0:
                self._make_room(position, size, end)
            elif len(self._memory) > self._block_size:
                self._memory = np.empty(self._block_size, np.uint8)
            position += done

    def _checked(self, rows: int, position: int, size: int) -> Block:
        table = self._table[:rows]
        wrong = first_mismatch(self._kernels, self._memory, table)
        if wrong is not None:
            found = mismatch(self._memory, table[wrong])
            raise ChecksumMismatch(position + found.position, found.stored, found.computed)
        return Block(self._memory, table, position, size)

    def _make_room(self, position: int, size: int, end: int) -> None:
        """Allocate memory for a batch that is larger than a block but complete in the file."""
        length = int.from_bytes(self._memory[LENGTH_AT : LENGTH_AT + 4].tobytes(), "big") if size >= LOG_OVERHEAD else 0
        if length <= size - LOG_OVERHEAD or position + LOG_OVERHEAD + length > end:
            raise Truncated(position, "the file ends inside a batch")
        self._memory = np.empty(LOG_OVERHEAD + length, np.uint8)

    def inflate(self, block: Block, first: int, unwanted: Int64s) -> int:
        """Decompress batches from row `first` on, except `unwanted` ones. Return the row after the last.

        The table then tells where their records lie in `inflated`. Each call advances by at least one row.
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
        """The records decompressed last."""
        return np.frombuffer(self._inflater.buffer, np.uint8)


assert (scan.INFLATED, scan.START, scan.END) == (scan.END - 2, scan.END - 1, scan.END)

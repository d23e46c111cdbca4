"""Read the batches of segment files in blocks: the one place that knows how.

A block of the file is read into memory, and the kernel finds the batches in it, a table at a time. A batch that the
block cuts begins the next block. The memory does not grow with the file, nor with the length that a damaged header
claims.

    blocks.begin(file, position, end)
    while (met := blocks.next()) != DONE:
        MORE      `table` has the next batches
        LARGE     the next batch is complete in the file, but larger than the memory: `grow` for it, or `pass_large`
        TORN      the file ends inside the next batch
        BROKEN    there is no batch

No checksum is verified unasked, and damage is only reported: the caller decides whether to go on, and where (`go_to`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from octavo.errors import FormatError, Truncated
from octavo.log.segment.batch_walk import Entry, check
from octavo.log.storage import File
from octavo.records.kernels import Kernels, rules, scan
from octavo.records.kernels.batch_table import BatchTable, Bytes, Table
from octavo.records.kernels.scan import BROKEN, DONE, MORE, TORN, entry_extent
from octavo.records.layout import NO_TIMESTAMP

LARGE: Final = 4  # an outcome in addition to those of `scan`


class Blocks:
    """Reads blocks of one file after the other, always into the same memory."""

    def __init__(self, block_size: int) -> None:
        self.memory: Bytes = np.empty(block_size, np.uint8)
        self.size = 0  # bytes of the block, up to the end of the walk
        self.shift = 0  # position of the block in the file
        self.position = 0  # in the file: end of the batches found so far
        self.end = 0  # in the file: end of the walk
        self.large = 0  # size of the next batch, if it is larger than the memory
        self._block_size = block_size
        self._read_size = 0  # bytes of the block, with those after the end of the walk
        self._file: File | None = None

    def begin(self, file: File, position: int, end: int) -> None:
        """Begin a walk through a file between two positions. Memory that has grown shrinks to a block."""
        if len(self.memory) > self._block_size:
            self.memory = np.empty(self._block_size, np.uint8)
        self._file, self.end = file, end
        self.position = position

    @property
    def file(self) -> File:
        """The file that is being read."""
        assert self._file is not None
        return self._file

    def read(self, behind: int = 0) -> memoryview:
        """Read the block that begins at `position`; return it with up to `behind` bytes after the end of the walk."""
        self.shift = self.position
        left = self.end - self.position
        self._read_size = self.file.read_into(self.memory.data[: left + behind], self.position)
        self.size = min(self._read_size, left)
        return self.memory.data[: self._read_size]

    def meet_cut(self) -> int:
        """Return why the block ends inside the batch at `position`: it is `LARGE`, or `TORN` at the end of the walk."""
        _, size, _ = entry_extent(self.memory.data, self.position - self.shift, self.size)
        is_full = self._read_size == len(self.memory)
        self.large = size if is_full and size <= self.end - self.position else 0
        return LARGE if self.large else TORN

    def grow(self) -> None:
        """Make the memory as large as the batch that was too large. The next `begin` shrinks it again."""
        self.memory = np.empty(self.large, np.uint8)


class BlockReader(Blocks):
    """Reads the batches of one file after the other, as tables of their headers."""

    def __init__(self, kernels: Kernels, block_size: int, rows: int) -> None:
        super().__init__(block_size)
        self._table = BatchTable(kernels, rows)
        self._is_used_up = True  # the block has no more complete batches
        self._is_broken = False

    def begin(self, file: File, position: int, end: int) -> None:
        """Begin a walk through a file between two positions. Memory that has grown shrinks to a block."""
        super().begin(file, position, end)
        self._is_used_up = True

    @property
    def table(self) -> Table:
        """The batches that `next` found (see `kernels.scan`), with positions in `memory`. Valid until the next call."""
        return self._table.batches

    def next(self) -> int:
        """Find the next batches. Returns `MORE`, `LARGE`, `TORN`, `BROKEN` or `DONE`, as the module describes."""
        while self.position < self.end:
            if self._is_used_up:
                self.read()
            at = self.position - self.shift
            outcome = self._table.scan(self.memory, at, self.size)
            self.position = self.shift + self._table.position
            is_last = self.shift + self.size == self.end
            self._is_used_up = outcome in (DONE, TORN) and not is_last
            self._is_broken = outcome == BROKEN
            if len(self.table):
                return MORE
            if outcome == BROKEN:
                return BROKEN
            if at == 0 or is_last:
                met = self.meet_cut()
                if met == LARGE:
                    self._table.read_one(self.memory, 0, self.large)
                return met
        return DONE

    def go_to(self, position: int, *, reread: bool = True) -> None:
        """Go on at a position that is not the end of the last batch.

        `reread`: read the file again, even if the block has the position, because the file may have changed.
        """
        self.position = position
        self._is_used_up = reread or not self.shift <= position < self.shift + self.size

    def grow(self) -> None:
        """Make the memory as large as the batch that was too large, so that `next` can read it."""
        super().grow()
        self._is_used_up = True

    def check_large(self) -> FormatError | None:
        """Return what is wrong with the batch that was too large; None if nothing is. It is read a piece at a time."""
        base_offset, last_offset = self.table[0, [scan.BASE_OFFSET, scan.LAST_OFFSET]].tolist()
        try:
            entry = Entry(self.position, self.large, base_offset, last_offset, NO_TIMESTAMP)
            check(self.file, entry, self.memory.data)
        except FormatError as error:
            return error
        return None

    def pass_large(self) -> None:
        """Skip the batch that was too large."""
        self.go_to(self.position + self.large)

    def error(self) -> FormatError:
        """Return the error, after `next` has returned `TORN` or `BROKEN`."""
        if self._is_broken:
            return rules.broken(self._table.rule, self.position)
        return Truncated(self.position, "the file ends inside a batch")

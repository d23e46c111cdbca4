"""Decompress the batches of a table (see `scan`): many in one kernel call, the rest one by one with codec libraries."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.errors import FormatError
from octavo.records.compression import Inflater
from octavo.records.kernels import Kernels, rules, scan
from octavo.records.kernels.inflation import inflate
from octavo.records.kernels.inflation.copy import SLACK
from octavo.records.kernels.message import walk_message
from octavo.records.layout import HEADER_SIZE, Attributes, Codec

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_CODEC: Final = int(Attributes.CODEC)
_OF_KERNEL: Final = (int(Codec.SNAPPY), int(Codec.LZ4))
_COLUMNS: Final = [scan.POSITION, scan.SIZE, scan.MAGIC, scan.ATTRIBUTES]
_RATIO: Final = 4  # at first, room is made for so many times the compressed bytes
_MORE: Final = 64 << 10  # and then at least for one block more
_FEW: Final = 64  # rows
_SHORT_RUN: Final = 8  # rows for the kernel or not, for which a call of their own does not pay


def has_stream(table: Int64s) -> npt.NDArray[np.bool_]:
    """Return for each batch of a table whether it has compressed records. An empty one has none."""
    is_compressed: npt.NDArray[np.bool_] = table[:, scan.ATTRIBUTES] & _CODEC != 0
    return is_compressed & ((table[:, scan.MAGIC] < 2) | (table[:, scan.COUNT] > 0))


class BatchInflation:
    """Decompress some batches of a table, in order, some bytes at a time.

    When a batch is decompressed, the table says where its records are in `inflater.buffer`.

    rows: those batches; each has a stream (`has_stream`)
    shift: what to add to positions in the table for errors
    """

    def __init__(
        self, kernels: Kernels, inflater: Inflater, data: Bytes, table: Int64s, rows: Int64s, *, shift: int = 0
    ) -> None:
        self.error: FormatError | None = None  # what is wrong with the next batch
        self._done = 0  # number of rows that are decompressed
        self._kernels = kernels
        self._inflater = inflater
        self._data = data
        self._table = table
        self._rows = rows
        self._shift = shift
        codecs = table[rows, scan.ATTRIBUTES] & _CODEC
        self._is_for_kernel = (table[rows, scan.MAGIC] == 2) & np.isin(codecs, _OF_KERNEL)
        if not kernels.compiled:
            self._is_for_kernel[:] = False  # a library is faster than a kernel that is interpreted
        changes = np.flatnonzero(self._is_for_kernel[1:] != self._is_for_kernel[:-1]) + 1
        self._run_ends = np.append(changes, len(rows))

    @property
    def next_row(self) -> int | None:
        """The row of the next batch to decompress; None if all are done."""
        return int(self._rows[self._done]) if self._done < len(self._rows) else None

    def go_on(self, size: int) -> None:
        """Decompress until there are about `size` more bytes, all are done, or there is an `error`."""
        enough = self._inflater.end + size
        while self._done < len(self._rows) and self.error is None and self._inflater.end < enough:
            end = int(self._run_ends[np.searchsorted(self._run_ends, self._done, side="right")])
            left = enough - self._inflater.end
            if end - self._done < _SHORT_RUN and end < len(self._rows):
                self._done += self._by_turns(left)
            elif self._is_for_kernel[self._done]:
                self._done += self._with_kernel(self._rows[self._done : end], left)
            else:
                self._done += self._with_library(self._rows[self._done : end], left)

    def _by_turns(self, size: int) -> int:
        """Decompress the next batches, a few with libraries and then those between them with a kernel.

        Returns the number of batches up to the first that is not decompressed. Each way makes up to `size` bytes.
        """
        rows = self._rows[self._done : self._done + _FEW]
        sizes = np.cumsum(self._table[rows, scan.SIZE])
        rows = rows[: 1 + int(np.searchsorted(sizes, size // 2))]
        is_for_kernel = self._is_for_kernel[self._done : self._done + len(rows)]
        others = rows[~is_for_kernel]
        done = self._with_library(others, size)
        if done < len(others):
            rows = rows[: np.searchsorted(rows, others[done])]
        ours = rows[is_for_kernel[: len(rows)]]
        later, self.error = self.error, None
        done = self._with_kernel(ours, size)
        if done < len(ours):
            return int(np.searchsorted(rows, ours[done]))
        self.error = later
        return len(rows)

    def _with_kernel(self, rows: Int64s, size: int) -> int:
        """Decompress batches with a kernel, and those with a library that it leaves to one; returns how many."""
        if not len(rows):
            return 0
        inflater = self._inflater
        enough = inflater.end + size
        room = size
        if len(rows) < _FEW:
            room = min(room, _RATIO * int(self._table[rows, scan.SIZE].sum()))
        room = max(room, min(_RATIO * int(self._table[rows[0], scan.SIZE]), inflater.limit))
        done = 0
        while done < len(rows) and inflater.end < enough and self.error is None:
            memory = np.frombuffer(inflater.reserve(room + SLACK), np.uint8)
            done, inflater.end, outcome = self._kernels.inflate(
                self._data, self._table, rows, done, len(rows), memory, inflater.end, enough, inflater.limit
            )
            free = len(memory) - SLACK - inflater.end
            del memory  # so that it can grow where it is
            room = 0
            if outcome == inflate.NO_ROOM:
                room = max(2 * free, _MORE)
            elif outcome == inflate.OTHER:
                done += self._with_library(rows[done : done + 1], size)
        return done

    def _with_library(self, rows: Int64s, size: int) -> int:
        """Decompress batches one by one; returns how many.

        Looking up a number in an array costs more than the rest of the work for a batch, so the numbers are read as
        lists and written back as lists.
        """
        view, inflater = self._data.data, self._inflater
        enough = inflater.end + size
        done = 0
        while done < len(rows) and inflater.end < enough and self.error is None:
            some = rows[done : done + _FEW]
            starts, ends = [], []
            for position, length, magic, attributes in self._table[some][:, _COLUMNS].tolist():
                if inflater.end >= enough:
                    break
                try:
                    start, end = position + HEADER_SIZE, position + length
                    if magic < 2:
                        start, end = self._old_stream(position, length)
                    start, end = inflater.add(attributes & _CODEC, view[start:end], magic, position + self._shift)
                except FormatError as error:
                    self.error = error
                    break
                starts.append(start)
                ends.append(end)
            some = some[: len(starts)]
            self._table[some, scan.INFLATED] = 1
            self._table[some, scan.START] = starts
            self._table[some, scan.END] = ends
            done += len(starts)
        return done

    def _old_stream(self, position: int, size: int) -> tuple[int, int]:
        """Return the range of the compressed stream in a message of magic 0 or 1."""
        next_at, _, _, _, _, start, length = walk_message(self._data.data, position, position + size)
        if next_at < 0 or length < 0:
            raise rules.broken(-next_at if next_at < 0 else rules.WRAPPER_NULL, position + self._shift)
        return start, start + length

"""Decompress the batches of a table (see `scan`): many in one kernel call, the rest one by one with codec libraries."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.errors import FormatError
from octavo.records.compression import Inflater
from octavo.records.kernels import Kernels, inflate, rules, scan
from octavo.records.kernels.inflate_copy import SLACK
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
        is_for_kernel = (table[rows, scan.MAGIC] == 2) & np.isin(codecs, _OF_KERNEL)
        if not kernels.compiled:
            is_for_kernel[:] = False  # a library is faster than a kernel that is interpreted
        changes = (np.flatnonzero(is_for_kernel[1:] != is_for_kernel[:-1]) + 1).tolist()
        self._runs = [(end, bool(is_for_kernel[end - 1])) for end in (*changes, len(rows)) if end]

    @property
    def next_row(self) -> int | None:
        """The row of the next batch to decompress; None if all are done."""
        return int(self._rows[self._done]) if self._done < len(self._rows) else None

    def go_on(self, size: int) -> None:
        """Decompress until there are `size` more bytes, all are done, or there is an `error`."""
        enough = self._inflater.end + size
        while self._runs and self.error is None and self._inflater.end < enough:
            end, is_for_kernel = self._runs[0]
            if is_for_kernel:
                self._by_kernel(end, enough)
            else:
                self._by_library(end, enough)
            if self._done == end:
                del self._runs[0]

    def _by_kernel(self, last: int, enough: int) -> None:
        """Decompress batches with a kernel, and those with a library that it leaves to one."""
        inflater = self._inflater
        left = self._rows[self._done : last]
        room = enough - inflater.end
        if len(left) < _FEW:
            room = min(room, _RATIO * int(self._table[left, scan.SIZE].sum()))
        room = max(room, min(_RATIO * int(self._table[left[0], scan.SIZE]), inflater.limit))
        while self._done < last and inflater.end < enough and self.error is None:
            memory = np.frombuffer(inflater.reserve(room + SLACK), np.uint8)
            self._done, inflater.end, outcome = self._kernels.inflate(
                self._data, self._table, self._rows, self._done, last, memory, inflater.end, enough, inflater.limit
            )
            free = len(memory) - SLACK - inflater.end
            del memory  # so that it can grow where it is
            room = 0
            if outcome == inflate.NO_ROOM:
                room = max(2 * free, _MORE)
            elif outcome == inflate.OTHER:
                self._by_library(self._done + 1, enough)

    def _by_library(self, last: int, enough: int) -> None:
        """Decompress batches one by one.

        Looking up a number in an array costs more than the rest of the work for a batch, so the numbers are read as
        lists and written back as lists.
        """
        view, inflater = self._data.data, self._inflater
        while self._done < last and inflater.end < enough and self.error is None:
            rows = self._rows[self._done : min(last, self._done + _FEW)]
            starts, ends = [], []
            for position, size, magic, attributes in self._table[rows][:, _COLUMNS].tolist():
                if inflater.end >= enough:
                    break
                try:
                    start, end = position + HEADER_SIZE, position + size
                    if magic < 2:
                        start, end = self._old_stream(position, size)
                    start, end = inflater.add(attributes & _CODEC, view[start:end], magic, position + self._shift)
                except FormatError as error:
                    self.error = error
                    break
                starts.append(start)
                ends.append(end)
            rows = rows[: len(starts)]
            self._table[rows, scan.INFLATED] = 1
            self._table[rows, scan.START] = starts
            self._table[rows, scan.END] = ends
            self._done += len(starts)

    def _old_stream(self, position: int, size: int) -> tuple[int, int]:
        """Return the range of the compressed stream in a message of magic 0 or 1."""
        next_at, _, _, _, _, start, length = walk_message(self._data.data, position, position + size)
        if next_at < 0 or length < 0:
            raise rules.broken(-next_at if next_at < 0 else rules.WRAPPER_NULL, position + self._shift)
        return start, start + length

"""Scan the batches of a buffer with the kernel `scan`, one table of headers at a time."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.records.kernels import Kernels, rules, scan
from octavo.records.layout import MAX_INT64, MIN_INT64

Table = npt.NDArray[np.int64]  # see `scan` for its columns
Bytes = npt.NDArray[np.uint8]

_EVERYTHING: Final = (MIN_INT64, MAX_INT64, MIN_INT64, MAX_INT64)


class BatchTable:
    """A reusable table of batch headers. Each scan fills it with the next batches of a buffer."""

    def __init__(self, kernels: Kernels, rows: int) -> None:
        self.position = 0  # end of the batches in the table
        self.rule = rules.OK  # the rule that the next batch breaks, if that stopped the last scan
        self._kernels = kernels
        self._table = np.empty((rows, scan.COLUMNS), np.int64)
        self._rows = 0

    @property
    def batches(self) -> Table:
        """The rows that the last scan filled, valid until the next scan."""
        return self._table[: self._rows]

    def scan(self, data: Bytes, position: int, end: int, window: int = MAX_INT64) -> int:
        """Fill the table with the batches of `data[position:end]`; returns the reason for stopping (see `scan`).

        Stops when the table is full or its batches take `window` bytes. The attribute `position` is where to continue.
        """
        self.position, self._rows, outcome, self.rule = self._kernels.scan(
            data, position, end, self._table, window, *_EVERYTHING
        )
        return int(outcome)

    def read_one(self, data: Bytes, position: int, size: int) -> None:
        """Fill the table with only the batch at `position`; just its header has to be in `data`."""
        scan.read_row(data.data, position, size, self._table.data, 0)
        self._rows = 1

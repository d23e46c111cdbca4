"""Find the batches of a buffer that are to be read, and check them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.errors import FormatError
from octavo.records.arrow.ranges import EVERYTHING, Range
from octavo.records.arrow.sink import Int64s
from octavo.records.kernels import Kernels, rules, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.layout import MAX_INT64, MIN_INT64, Attributes
from octavo.records.offset_order import base_offset_at, first_misplaced, misplaced

_ALL: Final = (*EVERYTHING, *EVERYTHING)
_CODEC: Final = int(Attributes.CODEC)

Keep = Callable[[Int64s], npt.NDArray[np.bool_]]  # takes a table of batches (`kernels.scan`), returns which to read


class BatchSelection:
    """Fills a table (`kernels.scan`) with the batches to read, again and again, until the buffer ends.

    Batches are verified before they are left out, where headers alone may mislead, and compressed ones before they are
    decompressed. A fast decoder verifies other batches itself, just before it decodes them (`decoder_verifies`).
    """

    def __init__(
        self,
        kernels: Kernels,
        view: memoryview,
        table: Int64s,
        *,
        start: int,
        end: int,
        offsets: Range,
        timestamps: Range,
        verify: bool,
        keep: Keep | None,
        follows: int | None,
    ) -> None:
        self.data: Final = np.frombuffer(view, np.uint8)
        self.table: Final = table
        self.rows = 0  # filled rows of the table
        self.position = start  # end of the batches that were found
        self.is_over = False  # whether the last scan has reached the end, or something that is no batch
        self.has_compressed = False  # whether a batch of the table may be compressed
        self.torn_tail: int | None = None
        self.error: FormatError | None = None  # the error found after the last row of the table
        self.last_offset = MIN_INT64 if follows is None else follows  # last offset of the last batch scanned
        self.decoder_verifies: Final = verify and keep is None and kernels.checks_fast
        self._kernels: Final = kernels
        self._view: Final = view
        self._end: Final = end
        self._offsets: Final = offsets
        self._timestamps: Final = timestamps
        self._verify: Final = verify
        self._keep: Final = keep
        self._is_log: Final = follows is not None
        self._is_limited: Final = offsets != EVERYTHING or timestamps != EVERYTHING
        self._last_before = self.last_offset  # last offset before the table was last filled

    def scan(self, max_bytes: int) -> None:
        """Fill the table with the next batches, of about `max_bytes` in all, and check them."""
        begin = self.position
        looks_at_all = self._verify or self._is_log
        ranges = _ALL if looks_at_all else (*self._offsets, *self._timestamps)
        self.position, self.rows, outcome, rule = self._kernels.scan(
            self.data, begin, self._end, self.table, max_bytes, *ranges
        )
        self.is_over = outcome != scan.MORE
        if outcome == scan.TORN:
            self.torn_tail = self.position
        elif outcome == scan.BROKEN:
            self.error = rules.broken(rule, self.position)
        table = self.table[: self.rows]
        self.has_compressed = bool((table[:, scan.ATTRIBUTES] & _CODEC).any())
        end = self.position  # the batch that begins there may be beyond the end of the reading
        self._last_before = self.last_offset
        if self._is_log:
            wrong = first_misplaced(table, self.last_offset, base_offset_at(self._view, end))
            if wrong is not None:
                self.give_up_at(wrong, misplaced(int(self.table[wrong, scan.POSITION])))
        if self._verify and self._keep is not None:
            self._check(np.arange(self.rows))
        if self.rows:
            self.last_offset = int(self.table[self.rows - 1, scan.LAST_OFFSET])
        if self._is_limited and looks_at_all:
            self._leave_out_of_range(begin, end)
        if self._keep is not None and self.rows:
            self._leave_out(self._keep(self.table[: self.rows]))
        elif self._verify and not self.decoder_verifies:
            self._check(np.arange(self.rows))
        elif self._verify and self.has_compressed:
            self._check(np.flatnonzero(self.table[: self.rows, scan.ATTRIBUTES] & _CODEC))

    def give_up_at(self, row: int, error: FormatError) -> None:
        """End the table and the reading before a damaged batch."""
        self.rows = row
        self.last_offset = int(self.table[row - 1, scan.LAST_OFFSET]) if row else self._last_before
        self.error = error
        self.torn_tail = None
        self.position = int(self.table[row, scan.POSITION])

    def _leave_out_of_range(self, begin: int, end: int) -> None:
        """Drop the batches of the table, those of `data[begin:end]`, that are outside the ranges.

        A header's offsets are believed if the batches around it agree with them: the next batch begins where this one
        ends, or this batch is after the range and begins where the previous one ends. Otherwise its checksum is
        verified first. A batch that is dropped because of its timestamps is always verified.
        """
        table = self.table[: self.rows]
        if not len(table):
            return
        is_open = self._offsets.last == MAX_INT64 and self._timestamps == EVERYTHING
        if is_open and int(table[:, scan.LAST_OFFSET].min()) >= self._offsets.first:
            return
        inside = np.empty((len(table), scan.COLUMNS), np.int64)
        last = int(table[-1, scan.POSITION] + table[-1, scan.SIZE])
        _, rows, _, _ = self._kernels.scan(self.data, begin, last, inside, MAX_INT64, *self._offsets, *self._timestamps)
        if rows == len(table):
            return
        kept = np.zeros(len(table), bool)
        kept[np.searchsorted(table[:, scan.POSITION], inside[:rows, scan.POSITION])] = True
        if self._verify and self._keep is None:
            behind = base_offset_at(self._view, end)
            self._check(np.flatnonzero(~kept & ~self._is_agreed_on(table, behind)))
        self._leave_out(kept[: self.rows])

    def _is_agreed_on(self, table: Int64s, behind: int | None) -> npt.NDArray[np.bool_]:
        """Return for each batch whether the batches around it agree that it is outside the offset range."""
        if self._timestamps != EVERYTHING:
            return np.zeros(len(table), bool)
        bases, ends = table[:, scan.BASE_OFFSET], table[:, scan.LAST_OFFSET] + 1
        goes_on = bases[1:] == ends[:-1]
        begins_behind = np.insert(goes_on, 0, False) & (bases > self._offsets.last)
        return np.append(goes_on, behind == int(ends[-1])) | begins_behind

    def _leave_out(self, kept: npt.NDArray[np.bool_]) -> None:
        """Keep only the wanted batches in the table."""
        rows = int(np.count_nonzero(kept))
        if rows < self.rows:
            self.table[:rows] = self.table[: self.rows][kept]
            self.rows = rows

    def _check(self, rows: Int64s) -> None:
        """Verify these batches of the table, and end the table before the first damaged one."""
        if not len(rows):
            return
        wrong = first_mismatch(self._kernels, self.data, self.table[rows])
        if wrong is not None:
            row = int(rows[wrong])
            self.give_up_at(row, mismatch(self.data, self.table[row]))

"""Verify the checksums of many batches at once, with a kernel; if kernels are slow, with a library call per batch."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from octavo.errors import ChecksumMismatch
from octavo.records.checksum import crc_of
from octavo.records.kernels import Kernels, scan
from octavo.records.kernels.checksum import CASTAGNOLI, IEEE, LONG, SHORT, Tables, slicing_tables, zeros_tables

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@cache
def checksum_tables() -> Tables:
    """Return the tables that the checksum kernels look up."""
    castagnoli = slicing_tables(CASTAGNOLI)
    tables = slicing_tables(IEEE), castagnoli, zeros_tables(LONG, castagnoli), zeros_tables(SHORT, castagnoli)
    return Tables(*(np.array(table, np.int64) for table in tables))


def first_mismatch(kernels: Kernels, data: Bytes, table: Int64s) -> int | None:
    """Return the first row of a batch table whose checksum does not match its bytes, or None."""
    if kernels.checks_fast:
        row = kernels.verify(checksum_tables(), data, table)
        return None if row < 0 else int(row)
    view = data.data
    columns = table[:, [scan.POSITION, scan.SIZE, scan.MAGIC, scan.CRC]].tolist()
    for row, (position, size, magic, stored) in enumerate(columns):
        if crc_of(view[position : position + size], magic) != stored:
            return row
    return None


def mismatch(data: Bytes, row: Int64s, shift: int = 0) -> ChecksumMismatch:
    """Return the error for a batch with a wrong checksum, given its row of a batch table.

    `shift` is the position of `data` in the file, which is added to the position in the error.
    """
    position, size, magic, stored = (int(row[at]) for at in (scan.POSITION, scan.SIZE, scan.MAGIC, scan.CRC))
    return ChecksumMismatch(shift + position, stored, crc_of(data.data[position : position + size], magic))

"""Kernels whose checksums were held to a library first.

The functions that compute checksums in kernels are the only ones that writers use, too. A mistake in them would be
repeated here, and wrong checksums would be found right. So the kernel has to tell right from wrong for some batches
whose checksums a library has computed, once in each process.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from crc32c import crc32c

from octavo.errors import LogError
from octavo.records.kernels import Kernels, kernels
from octavo.records.kernels.batch_checksums import checksum_tables
from octavo.records.kernels.verification import examine
from octavo.records.layout import ATTRIBUTES_AT, BATCH_HEADER, BatchHeader

_SIZES: Final = (0, 1, 7, 8, 63, 64, 255, 767, 1000, 4099, 6144, 20_011)  # around the steps of every way to compute it
_ODD: Final = 37  # any odd number: bytes that do not repeat


def trusted_kernels(size: int) -> Kernels:
    """Return the kernels with which to check `size` more bytes. Raises `LogError` if their checksums are wrong.

    To be called again for each block: kernels may have been compiled meanwhile.
    """
    chosen = kernels(size)
    if chosen.compiled and not _is_right(chosen):
        raise LogError("compiled kernels compute wrong checksums on this machine: set OCTAVO_KERNELS=interpreted")
    return chosen


@cache
def _is_right(chosen: Kernels) -> bool:
    return all(_accepts(chosen, _batch(size)) and not _accepts(chosen, _flipped(_batch(size))) for size in _SIZES)


def _batch(size: int) -> bytearray:
    header = BatchHeader(0, BATCH_HEADER.size - 12 + size, -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    data = bytearray(BATCH_HEADER.write(header)) + bytes(_ODD * at & 0xFF for at in range(size))
    at = BATCH_HEADER.at("crc")
    data[at : at + 4] = crc32c(bytes(data[ATTRIBUTES_AT:])).to_bytes(4)
    return data


def _flipped(data: bytearray) -> bytearray:
    data[-1] ^= 1
    return data


def _accepts(chosen: Kernels, data: bytearray) -> bool:
    memory = np.frombuffer(data, np.uint8)
    table, found = np.empty((1, examine.COLUMNS), np.int64), np.empty((examine.AT_ONCE, examine.FOUND), np.int64)
    state = np.full(examine.STATE, -1, np.int64)
    _, rows, _, _, _ = chosen.examine(checksum_tables(), memory, 0, len(memory), 0, state, table, found)
    return int(rows) == 1

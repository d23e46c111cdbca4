"""Compare verifying the checksums of batches with the checksum library alone."""

from __future__ import annotations

from typing import Final

import numpy as np
from crc32c import crc32c

from benchmarks.data import DataSet
from benchmarks.measure import Contender, Peer, Result, compare, timed
from octavo.records.kernels import kernels, scan
from octavo.records.kernels.batch_checksums import first_mismatch

_PIECE: Final = 24 << 10
_TARGET: Final = 0.7
_WINDOW: Final = 8 << 20
_ALL: Final = (-(2**63), 2**63 - 1)


def verify(*, repeat: int, scale: int) -> list[Result]:
    """Measure finding all batches of a buffer and verifying their checksums, as `to_arrow` does."""
    data_set = DataSet(count=1_000_000 // scale)
    data = data_set.read()
    pieces = [memoryview(data)[at : at + _PIECE] for at in range(0, len(data), _PIECE)]
    array = np.frombuffer(data, np.uint8)
    table = np.empty((8192, scan.COLUMNS), np.int64)
    kernel_set = kernels(len(data) * scale)

    def ours() -> None:
        position, outcome = 0, scan.MORE
        while outcome == scan.MORE:
            position, rows, outcome, _ = kernel_set.scan(array, position, len(data), table, _WINDOW, *_ALL, *_ALL)
            assert first_mismatch(kernel_set, array, table[:rows]) is None
        assert position == len(data)

    def bare() -> None:
        for piece in pieces:
            crc32c(piece)

    peer = Peer(Contender("bare CRC-32C", len(data), timed(bare)), _TARGET)
    return compare("verify checksums", Contender("octavo", len(data), timed(ours)), [peer], unit="B/s", repeat=repeat)

"""Foresee how much memory the next chunk needs."""

from __future__ import annotations

import numpy as np

from octavo.records.arrow.sink import Int64s, Room
from octavo.records.kernels import decode, scan
from octavo.records.kernels.record import MIN_RECORD_SIZE
from octavo.records.layout import MIN_SIZE

_SIZES = slice(scan.COUNT, scan.END + 1)
assert tuple(range(scan.COUNT, scan.COUNT + 4)) == (scan.COUNT, scan.INFLATED, scan.START, scan.END)


class Forecast:
    """What the records of the next chunk are like: probably like those of the last one."""

    def __init__(self) -> None:
        self._headers = 1024
        self._key_share = self._value_share = 1.0  # share of keys and of values in the last chunk's bytes

    def learn(self, cursor: list[int]) -> None:
        """Remember what the chunk was like that the decoder has just finished."""
        taken = max(1, cursor[decode.TAKEN])
        self._headers = max(self._headers, 2 * cursor[decode.HEADERS])
        self._key_share = cursor[decode.KEY_BYTES] / taken
        self._value_share = cursor[decode.VALUE_BYTES] / taken

    def room_for_all(self, loaded: Int64s) -> Room:
        """Return the most that these batches can need; `loaded` are rows of a table (see `scan`)."""
        total, size = _most(loaded)
        return Room(total, size, size, size // 2 + 1, size)

    def room(self, loaded: Int64s, rest: Int64s, max_rows: int, max_bytes: int) -> Room:
        """Return what the next chunk probably needs, within its limits.

        loaded: batches that are decompressed, if they were compressed
        rest: these, and the batches after them
        """
        total, size = _most(loaded)
        if len(loaded) < len(rest):  # these are like the rest, as far as anybody can tell before it is decompressed
            share = 1.1 * float(rest[:, scan.SIZE].sum()) / max(1, int(loaded[:, scan.SIZE].sum()))
            total, size = int(share * total) + 1, int(share * size) + 1
        rows = min(total, max_rows)
        allowed = min(size, max_bytes)
        likely = 1.25 * size * rows / max(1, total)
        return Room(
            rows,
            min(allowed, int(self._key_share * likely) + 4096),
            min(allowed, int(self._value_share * likely) + 4096),
            self._headers,
            allowed,
        )


def _most(loaded: Int64s) -> tuple[int, int]:
    """Return the most records that these batches can have, whatever their headers say, and the size of all records."""
    counts = loaded[:, scan.COUNT]
    total, _, start, end = loaded[:, _SIZES].sum(axis=0).tolist()
    if len(counts) and counts.min() >= 0:
        return min(total, (end - start) // MIN_RECORD_SIZE), end - start
    sizes = loaded[:, scan.END] - loaded[:, scan.START]
    most = sizes // np.where(loaded[:, scan.MAGIC] == 2, MIN_RECORD_SIZE, MIN_SIZE)
    counted = (counts >= 0) & (counts < most)
    return int(np.where(counted, counts, most).sum()), end - start

"""Pack many index entries at once: from the arrays that kernels return to the file format that `Index` appends."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.log.segment.index import OffsetIndex, TimeIndex

Int64s = npt.NDArray[np.int64]

_OFFSET_ENTRY: Final[np.dtype[np.void]] = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final[np.dtype[np.void]] = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
assert _OFFSET_ENTRY.itemsize == OffsetIndex.ENTRY_SIZE
assert _TIME_ENTRY.itemsize == TimeIndex.ENTRY_SIZE


def packed_offsets(entries: Int64s, base_offset: int) -> bytes:
    """Pack rows of offset and position for a segment with this base offset."""
    packed = np.empty(len(entries), _OFFSET_ENTRY)
    packed["offset"] = entries[:, 0] - base_offset
    packed["position"] = entries[:, 1]
    return packed.tobytes()


def packed_times(entries: Int64s, base_offset: int) -> bytes:
    """Pack rows of timestamp and offset for a segment with this base offset."""
    packed = np.empty(len(entries), _TIME_ENTRY)
    packed["timestamp"] = entries[:, 0]
    packed["offset"] = entries[:, 1] - base_offset
    return packed.tobytes()

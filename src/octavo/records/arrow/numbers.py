"""Turn Arrow's columns of numbers into NumPy's arrays, and back, without pandas.

`pa.array` and `to_numpy` import pandas, if it is installed, to check whether they deal with an object of pandas. That
takes longer than decoding a segment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def to_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """Return a column of integers or booleans as an array, which may be read-only. Nulls have any value."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    sign = "u" if pa.types.is_unsigned_integer(array.type) else "i"
    kind = np.dtype(f"{sign}{array.type.bit_width // 8}")
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, kind)
    numbers: npt.NDArray[Any] = np.frombuffer(data, kind, len(array), array.offset * kind.itemsize)
    return numbers


def from_numpy(numbers: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of numbers that has the memory of an array of the same type."""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])

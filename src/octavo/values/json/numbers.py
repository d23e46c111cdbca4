"""Compute the numbers that the kernel for JSON leaves as digits and a power of ten, or as text."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.records.kernels.shredding.json import POWER, TEXT
from octavo.values.columns import Bytes, Longs

_POWERS: Final = 10.0 ** np.arange(23)  # all of them are exact
_DECIMAL_POWERS: Final = 10 ** np.arange(19, dtype=np.uint64)
_LOW: Final = np.uint64(0xFFFFFFFF)
_32: Final = np.uint64(32)


def float_values(valid: Bytes, slots: Longs, data: Bytes, kind: pa.DataType) -> npt.NDArray[Any]:
    """Return a column of doubles or floats. Each is rounded once, from what the text says."""
    powers = valid.astype(np.int64) - POWER
    powers[(valid == 0) | (valid == TEXT)] = 0
    exact = slots.astype(np.float64)
    numbers: npt.NDArray[Any] = np.where(
        powers < 0, exact / _POWERS[np.maximum(-powers, 0)], exact * _POWERS[np.maximum(powers, 0)]
    )
    if pa.types.is_float32(kind):
        numbers = numbers.astype(np.float32)
    as_text = np.flatnonzero(valid == TEXT)
    if len(as_text):
        numbers[as_text] = _parsed(slots[as_text], data, kind)
    return numbers


def _parsed(places: Longs, data: Bytes, kind: pa.DataType) -> npt.NDArray[Any]:
    starts, sizes = places >> 10, places & 1023
    ends = np.zeros(len(places) + 1, np.int32)
    np.cumsum(sizes, out=ends[1:])
    text = data[np.repeat(starts - ends[:-1], sizes) + np.arange(int(ends[-1]))]
    texts = pa.Array.from_buffers(pa.string(), len(places), [None, pa.py_buffer(ends), pa.py_buffer(text)])
    numbers: npt.NDArray[Any] = texts.cast(kind).to_numpy()
    return numbers


def decimal_words(valid: Bytes, slots: Longs) -> npt.NDArray[np.uint64]:
    """Return a column of decimals: 128-bit integers, as two words each."""
    powers = valid.astype(np.int64) - POWER
    powers[valid == 0] = 0
    size = np.abs(slots).astype(np.uint64)
    factor = _DECIMAL_POWERS[powers]
    # Both have less than 64 bits. Multiplied in halves of 32 bits, as on paper.
    size_low, size_high = size & _LOW, size >> _32
    factor_low, factor_high = factor & _LOW, factor >> _32
    low = size_low * factor_low
    middle = size_high * factor_low + (low >> _32)
    other = size_low * factor_high + (middle & _LOW)
    words = np.empty((len(slots), 2), np.uint64)
    words[:, 0] = (other << _32) | (low & _LOW)
    words[:, 1] = size_high * factor_high + (middle >> _32) + (other >> _32)
    negative = slots < 0
    words[negative] = ~words[negative]
    words[negative, 0] += np.uint64(1)
    words[negative, 1] += (words[negative, 0] == 0).astype(np.uint64)
    return words

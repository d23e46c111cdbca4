"""Memory for batches that are being encoded, used again when its batches have been dropped.

Fresh memory is slow: the operating system clears each page when it is first written to. That can take longer than
encoding. Most callers write a result to a file and drop it before they ask for the next.
"""

from __future__ import annotations

import weakref
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SMALLEST: Final = 1 << 20  # less is not worth keeping
_LARGEST: Final = 32 << 20  # as much as a process may be asked to hold for nothing

_spare: list[pa.Buffer] = []  # at most one


def take_memory(size: int) -> npt.NDArray[np.uint8]:
    """Return memory for at least `size` bytes. It is kept for the next call when nothing refers to it any more."""
    memory = _taken_spare(size)
    if memory is None:
        # Not from Arrow's own pool, which takes huge pages: they take longer to clear, or to find.
        memory = pa.allocate_buffer(size, pa.system_memory_pool())
    array = np.frombuffer(memory, np.uint8)
    if _SMALLEST <= memory.size <= _LARGEST:
        weakref.finalize(array, _give_back, memory).atexit = False
    return array


def _taken_spare(size: int) -> pa.Buffer | None:
    """Return the spare memory, if there is some that is large enough and not much too large."""
    try:
        memory = _spare.pop()  # atomic: no two threads get the same
    except IndexError:
        return None
    if size <= memory.size <= 2 * size:
        return memory
    if size < _SMALLEST:
        _give_back(memory)
    return None


def _give_back(memory: pa.Buffer) -> None:
    if not _spare:
        _spare.append(memory)

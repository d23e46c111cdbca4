"""Memory between two pages that nobody may touch: one byte too far and the process dies.

`Guarded` holds the bytes that a test reads. `guard_allocations` puts guard pages around what Octavo allocates itself,
decompressed batches and Arrow's buffers, so that neither is read or written outside.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final

import numpy as np
import pyarrow as pa

from octavo.records.arrow import sink
from octavo.records.compression import Inflater

_PAGE: Final = mmap.PAGESIZE
_PROT_NONE: Final = 0
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Guarded:
    """`capacity` bytes or a few more, between two guard pages."""

    def __init__(self, capacity: int) -> None:
        self.capacity = -(-max(capacity, 1) // _PAGE) * _PAGE
        self._map = mmap.mmap(-1, self.capacity + 2 * _PAGE)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for page in (first, first + _PAGE + self.capacity):
            if _LIBC.mprotect(page, _PAGE, _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._usable = memoryview(self._map)[_PAGE : _PAGE + self.capacity]

    def room(self, size: int, *, at_end: bool = True) -> memoryview:
        """`size` bytes, of which the last is the last before the guard page, or the first the first behind one."""
        assert size <= self.capacity
        return self._usable[self.capacity - size :] if at_end else self._usable[:size]

    def put(self, data: bytes, *, at_end: bool = True) -> memoryview:
        """A copy of `data` there."""
        room = self.room(len(data), at_end=at_end)
        room[:] = data
        return room


class Arena:
    """Guarded memory for many arrays at once, all given back together."""

    _SMALL: Final = 1 << 16
    _KEPT: Final = 256  # as many arrays as some small chunks have

    def __init__(self) -> None:
        self.at_end = True
        self._small: list[Guarded] = []
        self._used = 0
        self._large: list[Guarded] = []

    def room(self, size: int) -> memoryview:
        if size > self._SMALL:
            self._large.append(Guarded(size))
            return self._large[-1].room(size, at_end=self.at_end)
        if self._used == len(self._small):
            self._small.append(Guarded(self._SMALL))
        self._used += 1
        return self._small[self._used - 1].room(size, at_end=self.at_end)

    def clear(self) -> None:
        """Whoever still looks at what was handed out sees it overwritten."""
        self._used = 0
        del self._small[self._KEPT :]
        self._large = []


ARENA: Final = Arena()


def guard_allocations() -> None:
    """From now on, in this process, Octavo's decompressed bytes and Arrow buffers lie in `ARENA`."""
    real_buffer = Inflater.buffer

    def reserve(self: sink.Memory, count: int) -> None:
        room = ARENA.room(count * self.dtype.itemsize)
        self._buffer = pa.py_buffer(room)  # always a new one: `ARENA.clear` has taken back the last
        self.array = np.frombuffer(room, self.dtype)

    def buffer(self: Inflater) -> memoryview:
        real = real_buffer.__get__(self)
        room = ARENA.room(len(real))
        room[:] = real
        return room

    replace: Any = setattr
    replace(sink.Memory, "reserve", reserve)
    replace(Inflater, "buffer", property(buffer))

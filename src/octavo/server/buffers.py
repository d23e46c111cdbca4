"""Memory for requests that do not come in one piece: `BufferPool`, and `RequestMemory`, the bound for all of them.

A new buffer of a megabyte for each request would cost more time in the kernel, which has to provide its pages, than all
the rest. So buffers are kept and used again. Their sizes are powers of two. A buffer is a mapping, whose pages exist as
soon as something is written to them: a client that announces much and sends little costs little.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

SMALLEST: Final = 64 << 10
LARGEST: Final = 4 << 20  # larger ones are not kept, and are made only as the bytes arrive
_KEPT_BYTES: Final = 32 << 20  # of all buffers that nobody uses
_PRIVATE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_PART_OF_MACHINE: Final = 4
_ASSUMED_MACHINE: Final = 4 << 30


class BufferPool:
    """Buffers that are lent and given back. For one thread."""

    def __init__(self) -> None:
        self._free: Final[dict[int, list[mmap.mmap]]] = {}
        self._kept = 0

    def take(self, size: int) -> mmap.mmap:
        """Return a buffer of at least `size` bytes. What it contains is undefined. Raises `OSError`."""
        rounded = max(SMALLEST, 1 << (size - 1).bit_length())
        free = self._free.get(rounded)
        if free:
            self._kept -= rounded
            return free.pop()
        buffer = mmap.mmap(-1, rounded, flags=_PRIVATE)
        if hasattr(mmap, "MADV_NOHUGEPAGE"):  # one byte would cost a page of 2 MiB
            buffer.madvise(mmap.MADV_NOHUGEPAGE)
        return buffer

    def give_back(self, buffer: mmap.mmap) -> None:
        """Take a buffer back. Nobody may look at it any more."""
        size = len(buffer)
        if size <= LARGEST and self._kept + size <= _KEPT_BYTES:
            self._free.setdefault(size, []).append(buffer)
            self._kept += size


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):  # not every system tells
        return _ASSUMED_MACHINE


class RequestMemory:
    """The bytes that requests may take which have not arrived as a whole, or wait for their answers.

    Kafka's `queued.max.request.bytes` counts a request with the size that it announces. Here it counts with twice what
    has arrived of it, but with no more than it announces, and more is received as long as there is any room: who only
    announces takes nothing from others. One request at a time may go on where there is no room, so that those that have
    arrived in part do not wait for one another. So the sum may pass the limit by one request. For one thread.
    """

    def __init__(self, limit: int, largest_request: int) -> None:
        """`limit`: 0 or less stands for a part of the machine's memory."""
        if limit <= 0:
            limit = max(_machine_bytes() // _PART_OF_MACHINE, 2 * largest_request)
        self._limit: Final = limit
        self._used = 0

    @property
    def has_room(self) -> bool:
        """Whether another request is let in."""
        return self._used < self._limit

    def take(self, size: int) -> bool:
        """Count a request, if there is room."""
        if not self.has_room:
            return False
        self._used += size
        return True

    def hold(self, size: int) -> None:
        """Count a request that has arrived, whether there is room or not."""
        self._used += size

    def give_back(self, size: int) -> None:
        """Count a request no more."""
        self._used -= size

"""Buffers for requests that do not come in one piece: `BufferPool`.

A new buffer of a megabyte for each request would cost more time in the kernel, which has to provide its pages, than all
the rest. So buffers are kept and used again. Their sizes are powers of two.
"""

from __future__ import annotations

from typing import Final

SMALLEST: Final = 64 << 10
LARGEST: Final = 4 << 20  # larger ones are not kept, and are made only as the bytes arrive
_KEPT_BYTES: Final = 32 << 20  # of all buffers that nobody uses


class BufferPool:
    """Buffers that are lent and given back. For one thread."""

    def __init__(self) -> None:
        self._free: Final[dict[int, list[bytearray]]] = {}
        self._kept = 0

    def take(self, size: int) -> bytearray:
        """Return a buffer of at least `size` bytes. What it contains is undefined."""
        rounded = max(SMALLEST, 1 << (size - 1).bit_length())
        free = self._free.get(rounded)
        if free:
            self._kept -= rounded
            return free.pop()
        return bytearray(rounded)

    def give_back(self, buffer: bytearray) -> None:
        """Take a buffer back. Nobody may look at it any more."""
        size = len(buffer)
        if size <= LARGEST and self._kept + size <= _KEPT_BYTES:
            self._free.setdefault(size, []).append(buffer)
            self._kept += size

"""Growing memory for decompressors, with a limit on each buffer that is written to it."""

from __future__ import annotations

import mmap
from typing import Final

from octavo.errors import BadCompression, LimitExceeded, Truncated

_WHAT: Final = "the decompressed batch"
_STEP: Final = 1 << 20
LARGE: Final = 4 << 20  # larger memory is a mapping of its own
_PRIVATE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class Output:
    """Growing memory that is written at its end.

    A decompressor asks for `room`, writes there, and reports with `wrote` how many bytes are valid. Bytes after `end`
    have no meaning. The limit applies to the bytes written since `begin`.

    Large memory is a mapping, which goes back to the system as soon as nobody needs it. The C library would keep up to
    64 MiB of it for each thread, in case it is asked for as much again.
    """

    __slots__ = ("_memory", "_view", "end", "limit", "position", "start")

    def __init__(self, limit: int) -> None:
        self._memory: bytearray | mmap.mmap = bytearray()
        self._view = memoryview(self._memory)
        self.limit = limit
        self.position = 0  # position of the current batch in its source; for errors only
        self.start = 0
        self.end = 0

    def begin(self, position: int) -> None:
        """Begin the output of another batch, the one at `position`; the limit counts from here."""
        self.start = self.end
        self.position = position

    @property
    def size(self) -> int:
        """The number of bytes written since `begin`."""
        return self.end - self.start

    @property
    def capacity(self) -> int:
        """The bytes of all memory."""
        return len(self._memory)

    @property
    def left(self) -> int:
        """The number of bytes that the limit still allows."""
        return self.start + self.limit - self.end

    def check(self, size: int) -> None:
        """Raises `LimitExceeded` if `size` more bytes would exceed the limit."""
        if size > self.start + self.limit - self.end:
            raise LimitExceeded(self.position, _WHAT, self.size + size, self.limit)

    def room(self, size: int) -> memoryview:
        """Return `size` writable bytes at the end. They become part of the output with `wrote`."""
        needed = self.end + size
        if needed > len(self._memory):
            self._grow(needed)
        return self._view[self.end : needed]

    def reserve(self, size: int) -> memoryview:
        """Return all memory, of which at least `size` bytes after `end` are free."""
        if self.end + size > len(self._memory):
            self._grow(self.end + size)
        return self._view

    def wrote(self, size: int) -> None:
        """Make the first `size` bytes of the room part of the output. Raises `LimitExceeded` if they are too many."""
        if size > self.start + self.limit - self.end:
            raise LimitExceeded(self.position, _WHAT, None, self.limit)
        self.end += size

    def append(self, piece: bytes | memoryview) -> None:
        """Copy `piece` to the end. Raises `LimitExceeded`, before copying, if that would exceed the limit."""
        end = self.end + len(piece)
        if end > self.start + self.limit:
            raise LimitExceeded(self.position, _WHAT, None, self.limit)
        if end > len(self._memory):
            self._grow(end)
        self._view[self.end : end] = piece
        self.end = end

    def view(self) -> memoryview:
        """Return everything that was written."""
        return self._view[: self.end]

    def forget(self, end: int = 0) -> None:
        """Forget everything after `end`."""
        self.start = self.end = end

    def bad(self, why: str) -> BadCompression:
        """Return the error for a stream that does not decompress."""
        return BadCompression(self.position, why)

    def cut(self, why: str) -> Truncated:
        """Return the error for a stream that ends too early."""
        return Truncated(self.position, why)

    def _grow(self, needed: int) -> None:
        # Small memory doubles, large memory grows by a quarter, but never beyond what the limit allows anyway.
        capacity = len(self._memory)
        wanted = min(capacity + max(capacity // 4, min(capacity, _STEP)), self.start + self.limit)
        more = max(needed, wanted) - capacity
        self._view.release()
        try:
            if isinstance(self._memory, mmap.mmap):
                self._memory.resize(capacity + more)  # without a copy: the page table says where it is
            elif capacity + more > LARGE:
                self._move(capacity + more)
            else:
                self._memory += bytes(more)
        except (BufferError, SystemError):  # somebody holds a view of it, or this system does not resize mappings
            self._move(capacity + more)
        self._view = memoryview(self._memory)

    def _move(self, capacity: int) -> None:
        is_large = capacity > LARGE
        memory = mmap.mmap(-1, capacity, flags=_PRIVATE) if is_large else bytearray(capacity)
        with memoryview(self._memory) as before, memoryview(memory) as after:
            after[: self.end] = before[: self.end]
        self._memory = memory

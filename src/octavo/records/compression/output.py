"""Where decompressors write: memory that grows at its end, and the limit on each buffer put into it."""

from __future__ import annotations

from typing import Final

from octavo.errors import BadCompression, LimitExceeded, Truncated

_WHAT: Final = "the decompressed batch"
_STEP: Final = 1 << 20


class Output:
    """Growing memory that is written at its end.

    A decompressor asks for `room`, writes there and says with `wrote` how much of it counts. What lies behind
    `end` is scratch. The limit is for the bytes written since `begin`.
    """

    __slots__ = ("_memory", "_view", "end", "limit", "position", "start")

    def __init__(self, limit: int) -> None:
        self._memory = bytearray()
        self._view = memoryview(self._memory)
        self.limit = limit
        self.position = 0  # of the batch at hand in whatever it was read from: for errors only
        self.start = 0
        self.end = 0

    def begin(self, position: int) -> None:
        """From here on another buffer is decompressed, that of the batch at `position`."""
        self.start = self.end
        self.position = position

    @property
    def size(self) -> int:
        """How many bytes were written since `begin`."""
        return self.end - self.start

    @property
    def left(self) -> int:
        """How many bytes the limit still allows."""
        return self.start + self.limit - self.end

    def check(self, size: int) -> None:
        """Raises `LimitExceeded` where `size` bytes more are over the limit."""
        if size > self.start + self.limit - self.end:
            raise LimitExceeded(self.position, _WHAT, self.size + size, self.limit)

    def room(self, size: int) -> memoryview:
        """`size` writable bytes at the end, which do not count until `wrote`."""
        needed = self.end + size
        if needed > len(self._memory):
            self._grow(needed)
        return self._view[self.end : needed]

    def wrote(self, size: int) -> None:
        """The first `size` bytes of the room count. Raises `LimitExceeded` where they are too many."""
        if size > self.start + self.limit - self.end:
            raise LimitExceeded(self.position, _WHAT, None, self.limit)
        self.end += size

    def append(self, piece: bytes | memoryview) -> None:
        """Copies `piece` to the end. Raises `LimitExceeded`, before it does, where that is too much."""
        end = self.end + len(piece)
        if end > self.start + self.limit:
            raise LimitExceeded(self.position, _WHAT, None, self.limit)
        if end > len(self._memory):
            self._grow(end)
        self._view[self.end : end] = piece
        self.end = end

    def view(self) -> memoryview:
        """All that was written."""
        return self._view[: self.end]

    def forget(self, end: int = 0) -> None:
        """Goes back to where the end was `end`."""
        self.start = self.end = end

    def bad(self, why: str) -> BadCompression:
        """The error for a stream that does not decompress."""
        return BadCompression(self.position, why)

    def cut(self, why: str) -> Truncated:
        """The error for a stream that ends too early."""
        return Truncated(self.position, why)

    def _grow(self, needed: int) -> None:
        # Small memory doubles, large grows by a quarter, and not for what the limit will not let in anyway.
        capacity = len(self._memory)
        wanted = min(capacity + max(capacity // 4, min(capacity, _STEP)), self.start + self.limit)
        more = max(needed, wanted) - capacity
        self._view.release()
        try:
            self._memory += bytes(more)  # where it lies, mostly: large memory is moved by the page table
        except BufferError:  # somebody has a view of it
            grown = bytearray(capacity + more)
            grown[: self.end] = memoryview(self._memory)[: self.end]
            self._memory = grown
        self._view = memoryview(self._memory)

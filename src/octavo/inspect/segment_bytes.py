"""The bytes of a file that others may change meanwhile, at their own positions in memory.

A file that is mapped would kill the process (SIGBUS) once another process cuts it. So memory is only reserved for the
whole file, and filled from it step by step. What was read and is done with is given back, so that files of any
size take little memory.
"""

from __future__ import annotations

import mmap
import sys
from typing import Final

from octavo.errors import Unreadable
from octavo.log.storage import File

_STEP: Final = 1 << 24  # bytes that are read at a time
_PAGE: Final = 1 << 21  # bytes of a huge page, which is given back as a whole
_MAP_NORESERVE: Final = 0x4000 if sys.platform == "linux" else 0  # the mmap module names it only since Python 3.13


class SegmentBytes:
    """A file as it was when this object was made, from `start` on. `data` is valid up to `filled`.

    Raises `Unreadable` if there is no room for the file.
    """

    def __init__(self, file: File, start: int) -> None:
        self._file: Final = file
        self.size: Final = file.size()
        self.data: Final[mmap.mmap | bytes] = self._reserved() if self.size else b""  # an empty map is not possible
        self.filled = start
        self._kept = start  # where the bytes begin that are still there

    def _reserved(self) -> mmap.mmap:
        try:
            data = mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        except OSError as error:
            raise Unreadable(self._file.path, f"there is no room for {self.size:,} bytes: {error.strerror}") from None
        if hasattr(mmap, "MADV_HUGEPAGE") and self.size >= _STEP:  # it saves most of the cost of filling memory
            data.madvise(mmap.MADV_HUGEPAGE)
        return data

    @property
    def is_complete(self) -> bool:
        """Whether everything is read."""
        return self.filled >= self.size

    def fill(self, to: int) -> None:
        """Read on to a position, and a step further. Raises `Unreadable` if the file was cut meanwhile."""
        end = min(self.size, to + _STEP)
        view = memoryview(self.data)
        while self.filled < end:
            self.filled = min(end, max(self.filled, self._file.next_data(self.filled)))  # holes stay zeros
            count = min(_STEP, end - self.filled)
            if self._file.read_into(view[self.filled : self.filled + count], self.filled) < count:
                break
            self.filled += count
        if self.filled < end or self._file.size() < end:  # a cut file looks like one that ends in a hole
            raise self.cut()

    def release(self, before: int) -> None:
        """Give back the memory of everything before a position, which then reads as zeros."""
        first, last = (position // _PAGE * _PAGE for position in (self._kept, before))
        if last > first and isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.data.madvise(mmap.MADV_DONTNEED, first, last - first)
        self._kept = before

    def cut(self) -> Unreadable:
        """Return the error for a file that has become shorter."""
        now = self._file.size()
        return Unreadable(self._file.path, f"it was cut from {self.size:,} to {now:,} bytes while it was read")

"""Files on disks that fail: `PatientFile` reads around pages that cannot be read."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from octavo.log.storage import File

_PAGE: Final = 4096


class PatientFile(File):
    """A file that is only read. Pages that the disk cannot read come out as zeros, and so are damage like any other."""

    __slots__ = ("unreadable",)

    def __init__(self, path: Path) -> None:
        """Open a regular file for reading. Raises `OSError`, and `BadDirectory` for other kinds of files."""
        super().__init__(path, os.O_RDONLY)
        self.unreadable: set[int] = set()  # positions of pages that could not be read

    def read_at(self, size: int, position: int) -> bytes:
        """Read `size` bytes from `position`; fewer only at the end of the file."""
        try:
            return super().read_at(size, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        buffer = bytearray(size)
        return bytes(buffer[: self._read_pages(memoryview(buffer), position)])

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`. Returns the number of bytes read."""
        try:
            return super().read_into(buffer, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        return self._read_pages(buffer, position)

    def _read_pages(self, buffer: memoryview, position: int) -> int:
        done, size = 0, min(len(buffer), max(self.size() - position, 0))
        while done < size:
            at = position + done
            piece = min(_PAGE - at % _PAGE, size - done)
            try:
                got = super().read_into(buffer[done : done + piece], at)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                self.unreadable.add(at - at % _PAGE)
                buffer[done : done + piece] = bytes(piece)
                got = piece
            if not got:
                break
            done += got
        return done

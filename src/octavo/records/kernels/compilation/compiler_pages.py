"""Give back the memory of LLVM's code, about 45 MiB that only loading and compiling kernels needs: `give_back_pages`.

The pages are those of a file and were never changed. The system reads them again if they are needed after all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_LIBRARY: Final = "/libllvmlite.so"
_MAPPING: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ *(.*)")
_CHANGED: Final = "Anonymous:"  # pages that are no longer those of the file
_DONT_NEED: Final = 4  # MADV_DONTNEED of Linux


class Mapping(NamedTuple):
    """A part of a file in the memory of this process."""

    begin: int
    end: int
    access: str
    path: str
    changed_kib: int

    @property
    def is_as_in_the_file(self) -> bool:
        """Whether no page was changed, or could be."""
        return "w" not in self.access and not self.changed_kib


def mappings(lines: Iterable[str]) -> Iterator[Mapping]:
    """Read the lines of /proc/self/smaps."""
    found: re.Match[str] | None = None
    for line in lines:
        found = _MAPPING.fullmatch(line.rstrip("\n")) or found
        if found is not None and line.startswith(_CHANGED):
            begin, end, access, path = found.groups()
            yield Mapping(int(begin, 16), int(end, 16), access, path, int(line.split()[1]))


def give_back_pages() -> int:
    """Give back what this process has of LLVM's code. Returns the number of bytes that it spanned; 0 without Linux."""
    try:
        with Path("/proc/self/smaps").open() as lines:
            unneeded = [each for each in mappings(lines) if each.path.endswith(_LIBRARY) and each.is_as_in_the_file]
    except OSError:
        return 0
    if not unneeded:
        return 0
    import ctypes

    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return sum(each.end - each.begin for each in unneeded if not madvise(each.begin, each.end - each.begin, _DONT_NEED))

"""Copy pieces of compressed data: many bytes at once, so that bytes behind the piece are overwritten too.

Output needs `SLACK` bytes beyond the room that may be filled; what is written there does not count.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, copy, copy8, copy16

SLACK = 32

# Where an end is not near, a sequence of literals and a copy is decompressed with few checks if they are not longer.
USUAL_LITERALS = 32
USUAL_COPY = 32

# Reasons to decompress no further, in place of a position.
UNUSUAL = -1  # for a library to judge
FULL = -2


def copy_literals(out: Array, to: int, data: Array, at: int, size: int) -> None:
    """Copy `size` bytes; up to 16 more bytes are overwritten."""
    if size <= 16 and at + 16 <= len(data):
        copy16(out, to, data, at)
    else:
        copy(out, to, data, at, size)


def copy_match(out: Array, to: int, offset: int, size: int) -> None:
    """Copy `size` bytes from `offset` bytes before `to`, which may overlap; up to 31 more bytes are overwritten."""
    source = to - offset
    stop = to + size
    if offset >= 16:
        copy16(out, to, out, source)
        copy16(out, to + 16, out, source + 16)
        while size > 32:
            size -= 16
            copy16(out, to + 32, out, source + 32)
            to += 16
            source += 16
        return
    if offset < 8:
        for step in range(8):
            out[to + step] = out[source + step]
        to += 8
        # The bytes repeat with a period of `offset`, so any multiple of it leads to the same ones.
        source = to - (7 // offset + 1) * offset
    while to < stop:
        copy8(out, to, out, source)
        to += 8
        source += 8

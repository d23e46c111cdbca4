"""Decompress snappy, in the framing of snappy-java ("xerial") or raw (see `inflate`)."""

from __future__ import annotations

from octavo.records.kernels.inflation.copy import (
    FULL,
    UNUSUAL,
    USUAL_COPY,
    USUAL_LITERALS,
    copy_literals,
    copy_match,
)
from octavo.records.kernels.machine import Array, copy8, copy16, read_i32, read_le16, read_u8

_XERIAL = 16  # size of the header of snappy-java
_XERIAL_MAGIC = 0x82534E41  # its first four bytes
_XERIAL_NEXT = 0x50505900


def snappy_stream(data: Array, at: int, end: int, out: Array, to: int, room: int) -> int:
    """Decompress snappy in the framing of snappy-java, or raw. Returns the end of the output, or a negative reason."""
    if end - at < _XERIAL or read_i32(data, at) & 0xFFFFFFFF != _XERIAL_MAGIC or read_i32(data, at + 4) != _XERIAL_NEXT:
        return snappy_block(data, at, end, out, to, room)
    at += _XERIAL
    while end - at >= 4:
        size = read_i32(data, at)
        at += 4
        if size < 0 or size > end - at:
            return UNUSUAL
        to = snappy_block(data, at, at + size, out, to, room)
        if to < 0:
            return to
        at += size
    return to


def snappy_block(data: Array, at: int, end: int, out: Array, to: int, room: int) -> int:
    """Decompress one raw block, which begins with its size."""
    declared = 0
    shift = 0
    while True:
        if at >= end or shift > 28:
            return UNUSUAL
        byte = data[at] & 0xFF
        at += 1
        declared |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if declared > 64 * (end - at):
        return UNUSUAL
    if declared > room - to:
        return FULL
    floor = to
    stop = to + declared
    while at < end:
        at, to = snappy_usual(data, at, end, out, to, stop, floor)
        if at >= end:
            break
        tag = read_u8(data, at)
        at += 1
        kind = tag & 3
        size = (tag >> 2) + 1
        if kind == 0:
            if size > 60:
                wide = size - 60
                if wide > end - at:
                    return UNUSUAL
                size = read_short(data, at, wide) + 1
                at += wide
            if size > end - at or size > stop - to:
                return UNUSUAL
            copy_literals(out, to, data, at, size)
            at += size
        else:
            wide = kind if kind < 3 else 4
            if wide > end - at:
                return UNUSUAL
            offset = read_short(data, at, wide)
            at += wide
            if kind == 1:
                size = (tag >> 2 & 7) + 4
                offset |= (tag >> 5) << 8
            if offset == 0 or offset > to - floor or size > stop - to:
                return UNUSUAL
            copy_match(out, to, offset, size)
        to += size
    return to if to == stop else UNUSUAL


def snappy_usual(data: Array, at: int, end: int, out: Array, to: int, stop: int, floor: int) -> tuple[int, int]:
    """Decompress elements as long as they are usual and not near an end: perhaps literals, then a copy.

    Returns where that ended in the input and the output. Whether literals come first, and how wide an offset is, cannot
    be predicted, so both are computed without branches.
    """
    last_at = end - 1 - 64 - 3
    last_to = stop - USUAL_LITERALS - USUAL_COPY
    while at <= last_at and to <= last_to:
        tag = read_u8(data, at)
        literals = (tag >> 2) + 1
        start = at + 1 + literals
        following = read_u8(data, start)
        copy16(out, to, data, at + 1)
        copy16(out, to + 16, data, at + 17)
        if tag & 3:  # there are no literals
            literals = 0
            start = at
            following = tag
        kind = following & 3
        is_short = -(kind & 1)  # a mask
        high = following >> 2
        size = (high & (63 ^ 56 & is_short)) + 1 + (3 & is_short)
        offset = read_le16(data, start + 1) & (0xFFFF ^ 0xFF00 & is_short) | (high >> 3 << 8) & is_short
        after = to + literals
        source = after - offset
        if literals > USUAL_LITERALS or kind - 1 >> 1 or offset < 8 or source < floor:
            break
        if size > USUAL_COPY:
            break
        copy8(out, after, out, source)
        copy8(out, after + 8, out, source + 8)
        copy8(out, after + 16, out, source + 16)
        copy8(out, after + 24, out, source + 24)
        at = start + 1 + kind
        to = after + size
    return at, to


def read_short(data: Array, at: int, wide: int) -> int:
    """Read an unsigned little-endian number of `wide` bytes."""
    number = 0
    for step in range(wide):
        number |= read_u8(data, at + step) << 8 * step
    return number

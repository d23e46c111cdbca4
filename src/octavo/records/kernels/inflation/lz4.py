"""Decompress lz4 frames with independent blocks, as every client of Kafka writes them (see `inflate`).

Kafka verifies the checksums of the header and of blocks, and ignores the content's size and checksum. So does this.
"""

from __future__ import annotations

from octavo.records.kernels.inflation.copy import (
    FULL,
    UNUSUAL,
    USUAL_COPY,
    USUAL_LITERALS,
    copy_literals,
    copy_match,
)
from octavo.records.kernels.machine import Array, copy, copy8, copy16, read_le16, read_le32, read_le64, read_u8

_MAGIC = 0x184D2204
_HEADER = 7  # size of magic number, FLG, BD, HC
_KAFKA = 0x824060  # FLG, BD and HC of the header that Kafka writes
# A block ends with literals: whatever begins or ends a match within so many bytes of the end is for a library to judge.
_LAST_INPUT = 8
_LAST_OUTPUT = 12
_LAST_LITERALS = 5
_ENDLESS = 1 << 40  # a size that is too large for whatever it is compared with

_MASK_32 = 0xFFFFFFFF
_PRIME_1 = 2654435761  # of XXH32
_PRIME_2 = 2246822519
_PRIME_3 = 3266489917
_PRIME_4 = 668265263
_PRIME_5 = 374761393


def lz4_frame(data: Array, at: int, end: int, out: Array, to: int, room: int, limit: int) -> int:
    """Decompress one frame with independent blocks. Returns the end of the output, or a negative reason."""
    if end - at < _HEADER + 4 or read_le32(data, at) != _MAGIC:
        return UNUSUAL
    most = 64 << 10
    check_size = 0
    if read_le32(data, at + 3) >> 8 != _KAFKA:
        flags = read_u8(data, at + 4)
        descriptor = read_u8(data, at + 5)
        # Version 1, independent blocks, nothing reserved; sizes and checksums may be there.
        if flags & 0xE3 != 0x60 or descriptor & 0x8F or descriptor < 0x40:
            return UNUSUAL
        most = 1 << (8 + 2 * (descriptor >> 4))
        size = 2
        if flags & 8:
            size = 10
            if end - at < _HEADER + 12:
                return UNUSUAL
            content = read_le64(data, at + 6)
            if content < 0 or content > limit:
                return UNUSUAL
        if xxh32(data, at + 4, size) >> 8 & 0xFF != read_u8(data, at + 4 + size):
            return UNUSUAL
        at += size - 2
        check_size = flags >> 2 & 4
        end -= flags & 4
    at += _HEADER
    while True:
        if end - at < 4:
            return UNUSUAL
        size = read_le32(data, at)
        at += 4
        if size == 0:
            return to
        is_stored = size >> 31
        size &= 0x7FFFFFFF
        if size > most or size > end - at - check_size:
            return UNUSUAL
        if check_size and xxh32(data, at, size) != read_le32(data, at + size):
            return UNUSUAL
        if is_stored:
            if size > room - to:
                return FULL
            copy(out, to, data, at, size)
            to += size
        else:
            to = lz4_block(data, at, at + size, out, to, room, to + most)
            if to < 0:
                return to
        at += size + check_size


def lz4_block(data: Array, at: int, end: int, out: Array, to: int, room: int, most: int) -> int:
    """Decompress one block. `most` is the output's end for a block of the largest size."""
    floor = to
    while True:
        at, to = lz4_usual(data, at, end, out, to, min(room, most - _LAST_OUTPUT), floor)
        if at >= end:
            return UNUSUAL
        token = read_u8(data, at)
        at, size = lz4_size(data, at + 1, end, token >> 4)
        if size > end - at:
            return UNUSUAL
        if size > room - to:
            return FULL
        copy_literals(out, to, data, at, size)
        at += size
        to += size
        if end - at < _LAST_INPUT or to > most - _LAST_OUTPUT:
            return to if at == end and to <= most else UNUSUAL
        offset = read_le16(data, at)
        at, size = lz4_size(data, at + 2, end, token & 15)
        size += 4
        if offset == 0 or offset > to - floor or size > most - _LAST_LITERALS - to:
            return UNUSUAL
        if size > room - to:
            return FULL
        copy_match(out, to, offset, size)
        to += size


def lz4_usual(data: Array, at: int, end: int, out: Array, to: int, stop: int, floor: int) -> tuple[int, int]:
    """Decompress sequences as long as they are of the usual size and not near an end.

    Returns where that ended in the input and the output. One comparison with each end is enough for such a sequence.
    """
    last_at = end - 2 - USUAL_LITERALS - _LAST_INPUT
    last_to = stop - USUAL_LITERALS - USUAL_COPY
    while at <= last_at and to <= last_to:
        token = read_u8(data, at)
        start = at + 1
        size = token >> 4
        if size == 15:
            size += read_u8(data, start)
            start += 1
            if size > USUAL_LITERALS:
                break
            copy16(out, to + 16, data, start + 16)
        copy16(out, to, data, start)
        after = to + size
        start += size
        offset = read_le16(data, start)
        start += 2
        source = after - offset
        if offset < 8 or source < floor:
            break
        size = token & 15
        if size == 15:
            more = read_u8(data, start)
            start += 1
            size += more
            if size > USUAL_COPY - 4 or offset < 16:
                break
            copy16(out, after, out, source)
            copy16(out, after + 16, out, source + 16)
        else:
            copy8(out, after, out, source)
            copy8(out, after + 8, out, source + 8)
            copy8(out, after + 16, out, source + 16)
        to = after + size + 4
        at = start
    return at, to


def lz4_size(data: Array, at: int, end: int, size: int) -> tuple[int, int]:
    """Read the rest of a size that begins with these four bits. Returns the position after it, and the whole size."""
    if size == 15:
        more = 255
        while more == 255:
            if at >= end:
                return at, _ENDLESS
            more = read_u8(data, at)
            at += 1
            size += more
    return at, size


def xxh32(data: Array, at: int, size: int) -> int:
    """Compute the XXH32 of `size` bytes."""
    end = at + size
    value = _PRIME_5
    if size >= 16:
        first, second, third, fourth = (_PRIME_1 + _PRIME_2) & _MASK_32, _PRIME_2, 0, -_PRIME_1 & _MASK_32
        while at + 16 <= end:
            first = xxh32_round(first, read_le32(data, at))
            second = xxh32_round(second, read_le32(data, at + 4))
            third = xxh32_round(third, read_le32(data, at + 8))
            fourth = xxh32_round(fourth, read_le32(data, at + 12))
            at += 16
        value = rotate32(first, 1) + rotate32(second, 7) + rotate32(third, 12) + rotate32(fourth, 18)
    value = (value + size) & _MASK_32
    while at + 4 <= end:
        value = rotate32((value + read_le32(data, at) * _PRIME_3) & _MASK_32, 17) * _PRIME_4 & _MASK_32
        at += 4
    while at < end:
        value = rotate32((value + read_u8(data, at) * _PRIME_5) & _MASK_32, 11) * _PRIME_1 & _MASK_32
        at += 1
    value = (value ^ value >> 15) * _PRIME_2 & _MASK_32
    value = (value ^ value >> 13) * _PRIME_3 & _MASK_32
    return value ^ value >> 16


def xxh32_round(lane: int, word: int) -> int:
    """Add four bytes to one of the four sums of an XXH32."""
    return rotate32((lane + word * _PRIME_2) & _MASK_32, 13) * _PRIME_1 & _MASK_32


def rotate32(number: int, bits: int) -> int:
    """Rotate an unsigned 32-bit number left."""
    return (number << bits | number >> (32 - bits)) & _MASK_32

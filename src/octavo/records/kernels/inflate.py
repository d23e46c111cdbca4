"""Decompress the records of many batches in one call: lz4 in Kafka's framing, and snappy.

The kernel decompresses what is well-formed, which is nearly everything. At anything else it stops and names the batch:
a codec library then decides, as strictly as Kafka's, and its error is the one that callers get. So no rule about
damaged streams stands here, and none may be missing: whatever is written is checked against the room, and whatever is
read against the end of the batch.

Sixteen bytes are copied at once where both arrays have them. So output needs `SLACK` bytes beyond the room that may be
filled; what is written there does not count.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, copy, copy8, copy16, read_i32, read_le32, read_le64
from octavo.records.kernels.scan import ATTRIBUTES, END, INFLATED, POSITION, SIZE, START
from octavo.records.layout import HEADER_SIZE, Attributes, Codec

SLACK = 32

# Outcomes: everything is done, `room` is too small for the next batch, or a library has to decompress it.
DONE = 0
NO_ROOM = 1
OTHER = 2

_CODEC = int(Attributes.CODEC)
_SNAPPY = int(Codec.SNAPPY)
_LZ4 = int(Codec.LZ4)

_UNUSUAL = -1  # for a library to judge
_FULL = -2

_LZ4_MAGIC = 0x184D2204
_LZ4_HEADER = 7  # magic number, FLG, BD, HC
_LZ4_KAFKA = 0x824060  # FLG, BD and HC of the header that Kafka writes
# A block ends with literals: whatever begins or ends a match within so many bytes of the end is for a library to judge.
_LZ4_LAST_INPUT = 8
_LZ4_LAST_OUTPUT = 12
_LZ4_LAST_LITERALS = 5

_XERIAL = 16  # size of the header of snappy-java
_XERIAL_MAGIC = 0x82534E41  # its first four bytes
_XERIAL_NEXT = 0x50505900


def inflate(
    data: Array, table: Array, rows: Array, first: int, last: int, out: Array, at: int, enough: int, limit: int
) -> tuple[int, int, int]:
    """Decompress the batches of `rows[first:last]` of a table into `out`, from `at` on.

    Returns how far in `rows` it came, the end of the output, and the outcome. It ends when the output reaches `enough`.
    `limit` is the most bytes of one batch.
    """
    while first < last and at < enough:
        row = rows[first]
        start = table[row, POSITION] + HEADER_SIZE
        end = table[row, POSITION] + table[row, SIZE]
        room = min(len(out) - SLACK, at + limit)
        codec = table[row, ATTRIBUTES] & _CODEC
        if codec == _LZ4:
            to = lz4_frame(data, start, end, out, at, room, limit)
        elif codec == _SNAPPY:
            to = snappy_stream(data, start, end, out, at, room)
        else:
            to = _UNUSUAL
        if to < 0:
            return first, at, NO_ROOM if to == _FULL and room < at + limit else OTHER
        table[row, INFLATED] = 1
        table[row, START] = at
        table[row, END] = to
        at = to
        first += 1
    return first, at, DONE


def lz4_frame(data: Array, at: int, end: int, out: Array, to: int, room: int, limit: int) -> int:
    """Decompress one frame with independent blocks. Returns the end of the output, or a negative reason."""
    if end - at < _LZ4_HEADER + 4 or read_le32(data, at) != _LZ4_MAGIC:
        return _UNUSUAL
    most = 64 << 10
    if read_le32(data, at + 3) >> 8 != _LZ4_KAFKA:
        flags = data[at + 4] & 0xFF
        descriptor = data[at + 5] & 0xFF
        # Version 1, independent blocks, no block checksums, nothing reserved; a content size and checksum may be there.
        if flags & 0xF3 != 0x60 or descriptor & 0x8F or descriptor < 0x40:
            return _UNUSUAL
        most = 1 << (8 + 2 * (descriptor >> 4))
        size = 2
        if flags & 8:
            size = 10
            if end - at < _LZ4_HEADER + 12:
                return _UNUSUAL
            content = read_le64(data, at + 6)
            if content < 0 or content > limit:
                return _UNUSUAL
        if xxh32_second_byte(data, at + 4, size) != data[at + 4 + size] & 0xFF:
            return _UNUSUAL
        at += size - 2
        if flags & 4:
            end -= 4
    at += _LZ4_HEADER
    while True:
        if end - at < 4:
            return _UNUSUAL
        size = read_le32(data, at)
        at += 4
        if size == 0:
            return to
        is_stored = size >> 31
        size &= 0x7FFFFFFF
        if size > most or size > end - at:
            return _UNUSUAL
        if is_stored:
            if size > room - to:
                return _FULL
            copy(out, to, data, at, size)
            to += size
        else:
            to = lz4_block(data, at, at + size, out, to, room, to + most)
            if to < 0:
                return to
        at += size


def lz4_block(data: Array, at: int, end: int, out: Array, to: int, room: int, most: int) -> int:
    """Decompress one block. `most` is the output's end for a block of the largest size."""
    floor = to
    safe = len(data) - 16
    # Up to here neither a few literals nor a short match can come near an end, so they need no checks of their own.
    short_at = end - 14 - 2 - _LZ4_LAST_INPUT
    short_to = min(room, most - _LZ4_LAST_OUTPUT) - 14 - 18
    while True:
        if at >= end:
            return _UNUSUAL
        token = data[at] & 0xFF
        at += 1
        size = token >> 4
        if size != 15 and at <= short_at and to <= short_to:
            copy16(out, to, data, at)
            at += size
            to += size
            offset = read_le32(data, at) & 0xFFFF
            at += 2
            size = token & 15
            if size != 15 and 8 <= offset <= to - floor:
                source = to - offset
                copy8(out, to, out, source)
                copy8(out, to + 8, out, source + 8)
                copy8(out, to + 16, out, source + 16)
                to += size + 4
                continue
        else:
            if size == 15:
                more = 255
                while more == 255:
                    if at >= end:
                        return _UNUSUAL
                    more = data[at] & 0xFF
                    at += 1
                    size += more
            if size > end - at:
                return _UNUSUAL
            if size > room - to:
                return _FULL
            if size > 16 or at > safe:
                copy(out, to, data, at, size)
            else:
                copy16(out, to, data, at)
            at += size
            to += size
            if end - at < _LZ4_LAST_INPUT or to > most - _LZ4_LAST_OUTPUT:
                return to if at == end and to <= most else _UNUSUAL
            offset = read_le32(data, at) & 0xFFFF
            at += 2
            size = token & 15
        if size == 15:
            more = 255
            while more == 255:
                if at >= end:
                    return _UNUSUAL
                more = data[at] & 0xFF
                at += 1
                size += more
        size += 4
        if offset == 0 or offset > to - floor or size > most - _LZ4_LAST_LITERALS - to:
            return _UNUSUAL
        if size > room - to:
            return _FULL
        copy_match(out, to, offset, size)
        to += size


def copy_match(out: Array, to: int, offset: int, size: int) -> None:
    """Copy `size` bytes from `offset` bytes before `to`, which may overlap; up to 15 more bytes are overwritten."""
    source = to - offset
    stop = to + size
    if offset >= 16:
        copy16(out, to, out, source)
        while size > 16:
            size -= 16
            to += 16
            source += 16
            copy16(out, to, out, source)
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


def xxh32_second_byte(data: Array, at: int, size: int) -> int:
    """Return the second byte of the XXH32 of fewer than 16 bytes: the header checksum of an lz4 frame."""
    value = (374761393 + size) & 0xFFFFFFFF
    end = at + size
    while at + 4 <= end:
        value = (value + read_le32(data, at) * 3266489917) & 0xFFFFFFFF
        value = rotate32(value, 17) * 668265263 & 0xFFFFFFFF
        at += 4
    while at < end:
        value = (value + (data[at] & 0xFF) * 374761393) & 0xFFFFFFFF
        value = rotate32(value, 11) * 2654435761 & 0xFFFFFFFF
        at += 1
    value = (value ^ value >> 15) * 2246822519 & 0xFFFFFFFF
    value = (value ^ value >> 13) * 3266489917 & 0xFFFFFFFF
    return (value ^ value >> 16) >> 8 & 0xFF


def rotate32(number: int, bits: int) -> int:
    """Rotate an unsigned 32-bit number left."""
    return (number << bits | number >> (32 - bits)) & 0xFFFFFFFF


def snappy_stream(data: Array, at: int, end: int, out: Array, to: int, room: int) -> int:
    """Decompress snappy in the framing of snappy-java, or raw. Returns the end of the output, or a negative reason."""
    if end - at < _XERIAL or read_i32(data, at) & 0xFFFFFFFF != _XERIAL_MAGIC or read_i32(data, at + 4) != _XERIAL_NEXT:
        return snappy_block(data, at, end, out, to, room)
    at += _XERIAL
    while end - at >= 4:
        size = read_i32(data, at)
        at += 4
        if size < 0 or size > end - at:
            return _UNUSUAL
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
            return _UNUSUAL
        byte = data[at] & 0xFF
        at += 1
        declared |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if declared > 64 * (end - at):
        return _UNUSUAL
    if declared > room - to:
        return _FULL
    floor = to
    stop = to + declared
    short_at = end - 1 - 60 - 4  # up to here the longest of the usual elements, and what follows it, are there
    while at < end:
        tag = data[at] & 0xFF
        kind = tag & 3
        if at <= short_at and kind != 3 and tag < 240:
            at += 1
            size = (tag >> 2) + 1
            if kind == 0:
                if size > stop - to:
                    return _UNUSUAL
                copy16(out, to, data, at)
                if size > 16:
                    copy(out, to + 16, data, at + 16, size - 16)
                at += size
                to += size
                continue
            offset = read_le32(data, at)
            if kind == 1:
                size = (tag >> 2 & 7) + 4
                offset = (tag >> 5) << 8 | offset & 0xFF
            else:
                offset &= 0xFFFF
            at += kind
        else:
            at += 1
            if kind == 0:
                size = (tag >> 2) + 1
                if size > 60:
                    extra = size - 60
                    if extra > end - at:
                        return _UNUSUAL
                    size = 0
                    for step in range(extra):
                        size |= (data[at + step] & 0xFF) << 8 * step
                    size += 1
                    at += extra
                if size > end - at or size > stop - to:
                    return _UNUSUAL
                copy(out, to, data, at, size)
                at += size
                to += size
                continue
            wide = kind if kind < 3 else 4
            if wide > end - at:
                return _UNUSUAL
            size = (tag >> 2 & 7) + 4 if kind == 1 else (tag >> 2) + 1
            offset = 0
            for step in range(wide):
                offset |= (data[at + step] & 0xFF) << 8 * step
            if kind == 1:
                offset |= (tag >> 5) << 8
            at += wide
        if offset == 0 or offset > to - floor or size > stop - to:
            return _UNUSUAL
        copy_match(out, to, offset, size)
        to += size
    return to if to == stop else _UNUSUAL

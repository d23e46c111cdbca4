"""Read and write zig-zag varints with Kafka's exact limits (Kafka's `ByteUtils`); also write big-endian integers.

A varint has at most five bytes and a varlong at most ten. Kafka's reader accepts encodings that are longer than
necessary, and drops the bits of the last byte beyond the number's width; so does this one. Everything stays within 64
signed bits, because compiled code has no wider integers.

The readers return the value and the position after it. A negative position says what is wrong: `CUT` if the bytes end
first, `UNENDING` if the number continues after its last possible byte.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array

CUT = -1
UNENDING = -2


def read_varint(data: Array, position: int, end: int) -> tuple[int, int]:
    """Read a varint, a signed 32-bit number, from `data[position:end]`; returns it and the position after it."""
    second = position + 1
    if second < end:  # most take one or two bytes, and a loop is slow when interpreted
        low = data[position] & 0xFF
        if low < 0x80:
            return (low >> 1) ^ -(low & 1), second
        high = data[second] & 0xFF
        if high < 0x80:
            return ((low >> 1) & 0x3F | high << 6) ^ -(low & 1), position + 2
    raw = 0
    shift = 0
    while position < end:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
        if shift == 35:
            return 0, UNENDING
    return 0, CUT


def read_varlong(data: Array, position: int, end: int) -> tuple[int, int]:
    """Read a varlong, a signed 64-bit number, from `data[position:end]`; returns it and the position after it."""
    second = position + 1
    if second < end:
        low = data[position] & 0xFF
        if low < 0x80:
            return (low >> 1) ^ -(low & 1), second
        high = data[second] & 0xFF
        if high < 0x80:
            return ((low >> 1) & 0x3F | high << 6) ^ -(low & 1), position + 2
    raw = 0
    shift = 0
    while position < end:
        byte = data[position]
        position += 1
        if shift == 63:  # the tenth byte has room for the topmost bit only
            if byte >= 0x80:
                return 0, UNENDING
            return ((raw >> 1) | ((byte & 1) << 62)) ^ -(raw & 1), position
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, CUT


def zigzag(number: int) -> int:
    """Return the unsigned number that stands for a signed one in a varint; its topmost bit may make it negative."""
    return (number << 1) ^ (number >> 63)


def varint_size(number: int) -> int:
    """Return the number of bytes that `write_varint` writes for `number`."""
    raw = zigzag(number)
    if raw < 0:  # compiled only: the topmost of the 64 bits is set
        return 10
    if raw < 0x80:  # the usual case
        return 1
    size = 1
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


def write_varint(out: Array, position: int, number: int) -> int:
    """Write a signed number of up to 64 bits; returns the position after it.

    A varint and a varlong of the same number are the same bytes.
    """
    low = zigzag(number)
    if 0 <= low < 0x80:
        out[position] = low
        return position + 1
    while low < 0 or low >= 0x80:
        out[position] = (low & 0x7F) | 0x80
        position += 1
        low = (low >> 7) & 0x01FFFFFFFFFFFFFF
    out[position] = low
    return position + 1


def write_u32(out: Array, position: int, number: int) -> None:
    """Write the low 32 bits of `number`, big-endian."""
    out[position] = (number >> 24) & 0xFF
    out[position + 1] = (number >> 16) & 0xFF
    out[position + 2] = (number >> 8) & 0xFF
    out[position + 3] = number & 0xFF


def write_i64(out: Array, position: int, number: int) -> None:
    """Write a signed 64-bit number, big-endian."""
    write_u32(out, position, number >> 32)
    write_u32(out, position + 4, number)


def write_i16(out: Array, position: int, number: int) -> None:
    """Write a signed 16-bit number, big-endian."""
    out[position] = (number >> 8) & 0xFF
    out[position + 1] = number & 0xFF

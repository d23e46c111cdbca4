"""Read varints as Kafka does: any encoding of at most five bytes (ten for a long), the excess bits of the last dropped.

Both return the number and the position after it. A negative position means that there is no number: the bytes end in
it, or it does not end where it must.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, read_u8, wrap64


def take_int(data: Array, at: int, end: int) -> tuple[int, int]:
    """Read a 32-bit number in zig-zag order from `data[at:end]`."""
    if at >= end:
        return 0, -1
    byte = read_u8(data, at)
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    raw = byte & 127
    for shift in range(7, 35, 7):
        at += 1
        if at >= end:
            return 0, -1
        byte = read_u8(data, at)
        raw |= (byte & 127) << shift
        if byte < 128:
            raw &= 0xFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), at + 1
    return 0, -1


def take_long(data: Array, at: int, end: int) -> tuple[int, int]:
    """Read a 64-bit number in zig-zag order from `data[at:end]`."""
    if at >= end:
        return 0, -1
    byte = read_u8(data, at)
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    raw = byte & 127
    for shift in range(7, 70, 7):
        at += 1
        if at >= end:
            return 0, -1
        byte = read_u8(data, at)
        raw |= (byte & 127) << shift
        if byte < 128:
            raw = wrap64(raw)
            return ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1), at + 1
    return 0, -1

"""The few operations that plain Python and compiled code have to do differently.

A kernel is a plain Python function over flat arrays. It runs unchanged on memoryviews, and Numba turns the same source
into machine code on NumPy arrays. These functions are the seam: the code here defines their meaning, and two modules of
`compilation`, `instructions` and `checksum_instructions`, replace each by one machine operation with that meaning.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32 as _crc32

from crc32c import crc32c

# Any flat array of bytes or of 64-bit integers: a memoryview when interpreted, a NumPy array when compiled.
Array = Any

SLACK = 128  # how far after the end of a copy `copy_loosely` may write

_I16 = struct.Struct(">h").unpack_from
_I32 = struct.Struct(">i").unpack_from
_U32 = struct.Struct(">I").unpack_from
_I64 = struct.Struct(">q").unpack_from
_LE16 = struct.Struct("<H").unpack_from
_LE32 = struct.Struct("<I").unpack_from
_PUT_LE32 = struct.Struct("<I").pack_into
_LE64 = struct.Struct("<q").unpack_from


def copy(target: Array, at: int, source: Array, start: int, size: int) -> None:
    """Copy `size` bytes; the caller has checked that both ranges are inside their arrays."""
    target[at : at + size] = source[start : start + size]


def copy_loosely(target: Array, at: int, source: Array, start: int, size: int) -> None:
    """Copy `size` bytes like `copy`, but up to `SLACK` bytes after them may change, which the target must have."""
    target[at : at + size] = source[start : start + size]


def copy32(target: Array, at: int, source: Array, start: int) -> None:
    """Copy 32 bytes, all read before any is written; the caller has checked that both arrays have them."""
    target[at : at + 32] = bytes(source[start : start + 32])


def copy8(target: Array, at: int, source: Array, start: int) -> None:
    """Copy eight bytes, all read before any is written; the caller has checked that both arrays have them."""
    target[at : at + 8] = bytes(source[start : start + 8])


def copy16(target: Array, at: int, source: Array, start: int) -> None:
    """Copy sixteen bytes, all read before any is written; the caller has checked that both arrays have them."""
    target[at : at + 16] = bytes(source[start : start + 16])


def wrap64(number: int) -> int:
    """Return `number` as a 64-bit integer that wraps around like Java's `long`."""
    return ((number + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def read_i16(data: Array, position: int) -> int:
    """Read a signed big-endian 16-bit number. The caller checks the bounds, as for the next three functions."""
    number: int = _I16(data, position)[0]
    return number


def read_i32(data: Array, position: int) -> int:
    """Read a signed big-endian 32-bit number."""
    number: int = _I32(data, position)[0]
    return number


def read_u32(data: Array, position: int) -> int:
    """Read an unsigned big-endian 32-bit number."""
    number: int = _U32(data, position)[0]
    return number


def read_i64(data: Array, position: int) -> int:
    """Read a signed big-endian 64-bit number."""
    number: int = _I64(data, position)[0]
    return number


def read_u8(data: Array, position: int) -> int:
    """Read one byte; the caller checks the bounds. Compiled, it is faster than an index, which may be negative."""
    number: int = data[position]
    return number


def read_le16(data: Array, position: int) -> int:
    """Read an unsigned little-endian 16-bit number; the caller checks the bounds."""
    number: int = _LE16(data, position)[0]
    return number


def read_le32(data: Array, position: int) -> int:
    """Read an unsigned little-endian 32-bit number; the caller checks the bounds."""
    number: int = _LE32(data, position)[0]
    return number


def read_le64(data: Array, position: int) -> int:
    """Read a signed little-endian 64-bit number; the caller checks the bounds."""
    number: int = _LE64(data, position)[0]
    return number


def write_le32(target: Array, position: int, number: int) -> None:
    """Write an unsigned 32-bit number, little-endian; the caller checks the bounds."""
    _PUT_LE32(target, position, number)


def rotate_left(number: int, bits: int) -> int:
    """Rotate a 64-bit number left by `bits`."""
    number &= 0xFFFFFFFFFFFFFFFF
    return wrap64(number << bits | number >> (64 - bits))


def crc32(tables: Array, data: Array, start: int, end: int) -> int:
    """Compute the CRC-32 of `data[start:end]`; the caller checks the bounds. `tables` are for compiled code."""
    return _crc32(data[start:end])


def crc32c_of(tables: Array, data: Array, start: int, end: int, before: int) -> int:
    """Compute the CRC-32C of `data[start:end]`, continuing from the checksum `before`; the caller checks the bounds."""
    return crc32c(data[start:end], before)


def prefetch(data: Array, at: int) -> None:
    """Hint that the bytes at `at` are needed soon; harmless beyond the end of `data`."""


def crc32c_step(value: int, data: Array, at: int) -> int:
    """Advance the register of a CRC-32C by eight bytes; the caller checks the bounds."""
    return crc32c(data[at : at + 8], value ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def crc32c_folded(value: int, data: Array, at: int, end: int) -> tuple[int, int]:
    """Advance the register of a CRC-32C over as much of `data[at:end]` as vector instructions take: here nothing.

    Returns the position after it and the register. The caller checks the bounds.
    """
    return at, value

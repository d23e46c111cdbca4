"""Read and write unsigned varints and the lengths of strings, bytes and arrays, with Java's 32-bit arithmetic.

In flexible versions (KIP-482) a length is a varint of the length plus one, and 0 is null. In old versions it is an
integer, and -1 is null. As in Kafka, any negative length is null.
"""

from __future__ import annotations

import struct
from typing import Final

from octavo.errors import BadLength, BadVarint

_SHIFTS: Final = range(0, 35, 7)  # of the at most five bytes of a varint
_ONE_BYTE: Final = [bytes((number,)) for number in range(0x80)]
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned varint; returns it and the position after it. Raises `BadLength` or `BadVarint`."""
    number = 0
    for behind, shift in enumerate(_SHIFTS, position + 1):
        if behind > len(data):
            raise BadLength(position, "the bytes end inside a varint")
        byte = data[behind - 1]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFF, behind
    raise BadVarint(position, "a varint goes on after its last possible byte")


def varint(number: int) -> bytes:
    """Return an unsigned varint."""
    if 0 <= number < 0x80:  # nearly always
        return _ONE_BYTE[number]
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def as_int32(number: int) -> int:
    """Return the number that Java has in an int after the same arithmetic."""
    return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def read_compact_length(data: bytes, position: int) -> tuple[int, int]:
    """Read a length of a flexible version, negative for null; returns it and the position after it."""
    number, behind = read_varint(data, position)
    return as_int32(number - 1), behind


def read_short_length(data: bytes, position: int) -> tuple[int, int]:
    """Read the length of a string of an old version, negative for null; returns it and the position after it."""
    return _read_length(_INT16, data, position)


def read_long_length(data: bytes, position: int) -> tuple[int, int]:
    """Read the length of bytes or of an array of an old version, as `read_short_length` does."""
    return _read_length(_INT32, data, position)


def _read_length(form: struct.Struct, data: bytes, position: int) -> tuple[int, int]:
    if position + form.size > len(data):
        raise BadLength(position, "the bytes end inside a length")
    length: int = form.unpack_from(data, position)[0]
    return length, position + form.size


def compact_length(length: int) -> bytes:
    """Return a length of a flexible version; -1 is null."""
    return varint(length + 1)


short_length: Final = _INT16.pack  # returns the length of a string of an old version; -1 is null
long_length: Final = _INT32.pack  # returns the length of bytes or of an array of an old version; -1 is null

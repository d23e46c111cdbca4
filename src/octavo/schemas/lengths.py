"""Read and write unsigned varints and the lengths of strings, bytes and arrays, with Java's 32-bit arithmetic.

In flexible versions (KIP-482) a length is a varint of the length plus one, and 0 is null. In old versions it is an
integer, and -1 is null. As in Kafka, any negative length is null.
"""

from __future__ import annotations

import io

from kio.serial import readers, writers
from kio.serial.errors import BufferUnderflow
from kio.static.primitive import i16, i32, uvarint

from octavo.errors import BadLength, BadVarint


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned varint; returns it and the position after it. Raises `BadLength` or `BadVarint`."""
    try:
        number, size = readers.read_unsigned_varint(data, position)
    except BufferUnderflow:
        raise BadLength(position, "the bytes end inside a varint") from None
    except ValueError:
        raise BadVarint(position, "a varint goes on after its last possible byte") from None
    return number & 0xFFFFFFFF, position + size


def write_varint(buffer: io.BytesIO, number: int) -> None:
    """Write an unsigned varint."""
    writers.write_unsigned_varint(buffer, uvarint(number))


def as_int32(number: int) -> int:
    """Return the number that Java has in an int after the same arithmetic."""
    return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def read_compact_length(data: bytes, position: int) -> tuple[int, int]:
    """Read a length of a flexible version, negative for null; returns it and the position after it."""
    number, behind = read_varint(data, position)
    return as_int32(number - 1), behind


def read_short_length(data: bytes, position: int) -> tuple[int, int]:
    """Read the length of a string of an old version, negative for null; returns it and the position after it."""
    try:
        length, size = readers.read_int16(data, position)
    except BufferUnderflow:
        raise BadLength(position, "the bytes end inside a length") from None
    return length, position + size


def read_long_length(data: bytes, position: int) -> tuple[int, int]:
    """Read the length of bytes or of an array of an old version, as `read_short_length` does."""
    try:
        length, size = readers.read_int32(data, position)
    except BufferUnderflow:
        raise BadLength(position, "the bytes end inside a length") from None
    return length, position + size


def write_compact_length(buffer: io.BytesIO, length: int) -> None:
    """Write a length of a flexible version; -1 is null."""
    write_varint(buffer, length + 1)


def write_short_length(buffer: io.BytesIO, length: int) -> None:
    """Write the length of a string of an old version; -1 is null."""
    writers.write_int16(buffer, i16(length))


def write_long_length(buffer: io.BytesIO, length: int) -> None:
    """Write the length of bytes or of an array of an old version; -1 is null."""
    writers.write_int32(buffer, i32(length))

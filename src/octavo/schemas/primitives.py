"""Read and write the primitive types of Kafka's messages, in flexible and in old versions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar
from uuid import UUID

from octavo.errors import BadLength, InvalidInput
from octavo.records.text import read_text, write_text
from octavo.schemas.lengths import (
    compact_length,
    long_length,
    read_compact_length,
    read_long_length,
    read_short_length,
    short_length,
)

MAX_STRING: Final = 0x7FFF
NO_UUID: Final = UUID(int=0)
_UUID_SIZE: Final = 16
_END: Final = "the bytes end inside a value"

T = TypeVar("T")


Reader = Callable[[bytes, int], tuple[Any, int]]  # takes a position; returns the value there and its size in bytes
Writer = Callable[[Any], bytes]


def primitive(kafka_type: str, *, flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    """Return the functions that read and write a type, in flexible or in old versions.

    The reader raises `BadLength` if bytes are missing, and `ValueError` for a value that Kafka refuses.
    """
    if kafka_type == "string":
        return _string(flexible, nullable)
    if kafka_type == "bytes":
        return _bytes(flexible, nullable)
    assert not nullable, kafka_type
    return _FIXED[kafka_type]


def _string(flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    read_content = _content_reader(read_compact_length if flexible else read_short_length, nullable, MAX_STRING)
    write_length: Writer = compact_length if flexible else short_length

    def read(data: bytes, position: int) -> tuple[str | None, int]:
        content, size = read_content(data, position)
        return None if content is None else read_text(content), size

    def write(value: str | None) -> bytes:
        if value is None and nullable:
            return write_length(-1)
        encoded = write_text(_not_null(value))
        if len(encoded) > MAX_STRING:
            raise InvalidInput(f"a string of {len(encoded)} bytes is longer than {MAX_STRING}")
        return write_length(len(encoded)) + encoded

    return read, write


def _bytes(flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    write_length: Writer = compact_length if flexible else long_length

    def write(value: bytes | None) -> bytes:
        if value is None and nullable:
            return write_length(-1)
        return write_length(len(_not_null(value))) + _not_null(value)

    return _content_reader(read_compact_length if flexible else read_long_length, nullable, None), write


def _content_reader(
    read_length: Callable[[bytes, int], tuple[int, int]], nullable: bool, max_length: int | None
) -> Callable[[bytes, int], tuple[bytes | None, int]]:
    def read(data: bytes, position: int) -> tuple[bytes | None, int]:
        length, begin = read_length(data, position)
        if length < 0:
            if not nullable:
                raise ValueError("it is null")
            return None, begin - position
        if max_length is not None and length > max_length:
            raise ValueError(f"a string is longer than {max_length} bytes")
        if length > len(data) - begin:
            raise BadLength(position, _END)
        return data[begin : begin + length], begin + length - position

    return read


def _not_null(value: T | None) -> T:
    if value is None:
        raise TypeError("it is not nullable")
    return value


def _number(form: str) -> tuple[Reader, Writer]:
    layout = struct.Struct(form)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        if position + layout.size > len(data):
            raise BadLength(position, _END)
        return layout.unpack_from(data, position)[0], layout.size

    return read, layout.pack


def _read_bool(data: bytes, position: int) -> tuple[bool, int]:
    if position >= len(data):
        raise BadLength(position, _END)
    return data[position] != 0, 1


def _write_bool(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _read_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    content = data[position : position + _UUID_SIZE]
    if len(content) < _UUID_SIZE:
        raise BadLength(position, _END)
    return UUID(bytes=content), _UUID_SIZE


def _write_uuid(value: UUID) -> bytes:
    return value.bytes


_FIXED: Final[dict[str, tuple[Reader, Writer]]] = {
    "bool": (_read_bool, _write_bool),
    "int8": _number(">b"),
    "int16": _number(">h"),
    "uint16": _number(">H"),
    "int32": _number(">i"),
    "int64": _number(">q"),
    "float64": _number(">d"),
    "uuid": (_read_uuid, _write_uuid),
}

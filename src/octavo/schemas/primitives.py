"""Read and write the primitive types of Kafka's messages, in flexible and in old versions."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final, TypeVar
from uuid import UUID

from kio.serial import readers, writers
from kio.serial.errors import BufferUnderflow

from octavo.errors import InvalidInput
from octavo.records.text import read_text, write_text
from octavo.schemas.lengths import (
    read_compact_length,
    read_long_length,
    read_short_length,
    write_compact_length,
    write_long_length,
    write_short_length,
)

MAX_STRING: Final = 0x7FFF
NO_UUID: Final = UUID(int=0)

T = TypeVar("T")

Reader = Callable[[bytes, int], tuple[Any, int]]  # takes a position; returns the value there and its size in bytes
Writer = Callable[[io.BytesIO, Any], None]


def primitive(kafka_type: str, *, flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    """Return the functions that read and write a type, in flexible or in old versions.

    The reader raises kio's `BufferUnderflow` or a `FormatError` if bytes are missing, and `ValueError` for a value that
    Kafka refuses.
    """
    if kafka_type == "string":
        return _string(flexible, nullable)
    if kafka_type == "bytes":
        return _bytes(flexible, nullable)
    assert not nullable, kafka_type
    return _FIXED[kafka_type]


def _string(flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    read_content = _content_reader(read_compact_length if flexible else read_short_length, nullable, MAX_STRING)
    write_length = write_compact_length if flexible else write_short_length

    def read(data: bytes, position: int) -> tuple[str | None, int]:
        content, size = read_content(data, position)
        return None if content is None else read_text(content), size

    def write(buffer: io.BytesIO, value: str | None) -> None:
        if value is None and nullable:
            write_length(buffer, -1)
            return
        encoded = write_text(_not_null(value))
        if len(encoded) > MAX_STRING:
            raise InvalidInput(f"a string of {len(encoded)} bytes is longer than {MAX_STRING}")
        write_length(buffer, len(encoded))
        buffer.write(encoded)

    return read, write


def _bytes(flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    write_length = write_compact_length if flexible else write_long_length

    def write(buffer: io.BytesIO, value: bytes | None) -> None:
        if value is None and nullable:
            write_length(buffer, -1)
            return
        write_length(buffer, len(_not_null(value)))
        buffer.write(_not_null(value))

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
            raise BufferUnderflow
        return data[begin : begin + length], begin + length - position

    return read


def _not_null(value: T | None) -> T:
    if value is None:
        raise TypeError("it is not nullable")
    return value


def _read_bool(data: bytes, position: int) -> tuple[bool, int]:
    number, size = readers.read_int8(data, position)
    return number != 0, size


def _read_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    uuid, size = readers.read_uuid(data, position)
    return uuid or NO_UUID, size


_FIXED: Final[dict[str, tuple[Reader, Writer]]] = {
    "bool": (_read_bool, writers.write_boolean),
    "int8": (readers.read_int8, writers.write_int8),
    "int16": (readers.read_int16, writers.write_int16),
    "uint16": (readers.read_uint16, writers.write_uint16),
    "int32": (readers.read_int32, writers.write_int32),
    "int64": (readers.read_int64, writers.write_int64),
    "float64": (readers.read_float64, writers.write_float64),
    "uuid": (_read_uuid, writers.write_uuid),
}

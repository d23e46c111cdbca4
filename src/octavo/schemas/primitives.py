"""Read and write the primitive types of Kafka's messages, in flexible and in old versions."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from kio.serial import readers, writers
from kio.serial.errors import BufferUnderflow
from kio.static.primitive import i16, uvarint

from octavo.errors import InvalidInput
from octavo.records.text import read_text, write_text

MAX_STRING: Final = 0x7FFF
NO_UUID: Final = UUID(int=0)

Reader = Callable[[bytes, int], tuple[Any, int]]  # takes a position; returns the value there and its size in bytes
Writer = Callable[[io.BytesIO, Any], None]


def _read_bool(data: bytes, position: int) -> tuple[bool, int]:
    number, size = readers.read_int8(data, position)
    return number != 0, size


def _read_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    uuid, size = readers.read_uuid(data, position)
    return uuid or NO_UUID, size


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    text, size = readers.read_compact_string_as_bytes(data, position)
    return _text(text), size


def _read_nullable_string(data: bytes, position: int) -> tuple[str | None, int]:
    text, size = readers.read_compact_string_as_bytes_nullable(data, position)
    return None if text is None else _text(text), size


def _text(text: bytes) -> str:
    if len(text) > MAX_STRING:
        raise ValueError(f"a string is longer than {MAX_STRING} bytes")
    return read_text(text)


def _write_string(buffer: io.BytesIO, value: str) -> None:
    encoded = write_text(value)
    if len(encoded) > MAX_STRING:
        raise InvalidInput(f"a string of {len(encoded)} bytes is longer than {MAX_STRING}")
    writers.write_compact_string(buffer, encoded)


def _write_nullable_string(buffer: io.BytesIO, value: str | None) -> None:
    if value is None:
        writers.write_unsigned_varint(buffer, uvarint(0))
    else:
        _write_string(buffer, value)


def _read_old_string(data: bytes, position: int) -> tuple[str, int]:
    length, size = readers.read_int16(data, position)
    if length < 0:
        raise ValueError("it is null")
    if length > len(data) - position - size:
        raise BufferUnderflow
    return read_text(data[position + size : position + size + length]), size + length


def _write_old_string(buffer: io.BytesIO, value: str) -> None:
    encoded = write_text(value)
    if len(encoded) > MAX_STRING:
        raise InvalidInput(f"a string of {len(encoded)} bytes is longer than {MAX_STRING}")
    writers.write_int16(buffer, i16(len(encoded)))
    buffer.write(encoded)


PRIMITIVES: Final[dict[str, tuple[Reader, Writer]]] = {
    "bool": (_read_bool, writers.write_boolean),
    "int8": (readers.read_int8, writers.write_int8),
    "int16": (readers.read_int16, writers.write_int16),
    "uint16": (readers.read_uint16, writers.write_uint16),
    "int32": (readers.read_int32, writers.write_int32),
    "int64": (readers.read_int64, writers.write_int64),
    "float64": (readers.read_float64, writers.write_float64),
    "uuid": (_read_uuid, writers.write_uuid),
    "string": (_read_string, _write_string),
    "bytes": (readers.read_compact_string_as_bytes, writers.write_compact_string),
}
OLD_PRIMITIVES: Final[dict[str, tuple[Reader, Writer]]] = {  # for versions that are not flexible
    "string": (_read_old_string, _write_old_string),
}
NULLABLES: Final[dict[str, tuple[Reader, Writer]]] = {
    "string": (_read_nullable_string, _write_nullable_string),
}

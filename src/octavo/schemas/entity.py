"""Structures of Kafka's messages, declared as dataclasses; read and written as Kafka does (KIP-482, flexible versions).

    @entity
    class TopicRecord:
        name: str = kafka("string")
        topic_id: UUID = kafka("uuid")

A field says its type as Kafka's definitions do ("[]int32" is an array, "[]" an array of the structure that its
annotation names), the version that it came with, its tag, and whether it may be null. `read_entity` and
`write_entity` go by that, in every version. Numbers, varints and byte strings are read and written by kio's functions
for them.

Where kio's own reader of whole structures differs from Kafka, Kafka is followed: unknown tagged fields are passed
over, the zero uuid is a uuid, any byte but 0 is true, and what is no UTF-8 reads as in Java. A count is believed only
as far as there are bytes behind it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import Any, Final, NamedTuple, TypeVar, dataclass_transform, get_args, get_type_hints
from uuid import UUID

from kio.serial import readers, writers
from kio.serial.errors import BufferUnderflow, SerialError
from kio.static.primitive import uvarint

from octavo.errors import BadLength, BadRecord, BadVarint, InvalidInput
from octavo.records.text import read_text, write_text

MAX_STRING: Final = 0x7FFF
NO_UUID: Final = UUID(int=0)

T = TypeVar("T")

Reader = Callable[[bytes, int], tuple[Any, int]]  # from a position: what stands there, and how many bytes it takes
Writer = Callable[[io.BytesIO, Any], None]


def kafka(
    kafka_type: str,
    *,
    since: int = 0,
    tag: int | None = None,
    nullable: bool = False,
    default: Any = MISSING,
) -> Any:
    """A field as Kafka's definition has it. `since`: the first version with it; a tagged one needs a default."""
    assert default is not MISSING or (tag is None and not since)
    metadata = {"kafka_type": kafka_type, "since": since, "tag": tag, "nullable": nullable}
    return field(metadata=metadata, default=default)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(kafka,))
def entity(declared: type[T]) -> type[T]:
    """A class that declares a structure."""
    return dataclass(frozen=True, slots=True, kw_only=True)(declared)


class _Field(NamedTuple):
    name: str
    since: int
    tag: int | None
    default: Any
    read: Callable[[bytes, int, int], tuple[Any, int]]  # data, position, version
    write: Callable[[io.BytesIO, Any, int], None]


def read_entity(kind: type[T], data: bytes, position: int, version: int) -> tuple[T, int]:
    """The structure at `position`, and the position behind it.

    Raises `BadLength`, `BadVarint` or `BadRecord`, with a position in `data`.
    """
    values: dict[str, Any] = {}
    untagged, tagged = _fields_of(kind)
    for each in untagged:
        if version >= each.since:
            values[each.name], position = each.read(data, position, version)
    count, position = _varint(data, position)
    for _ in range(count):  # each takes two bytes at least: a count that lies ends at the end of the data
        tag, position = _varint(data, position)
        size, position = _varint(data, position)
        known = tagged.get(tag)
        if known is not None:
            if version < known.since:
                raise BadRecord(position, f"{known.name} has no place in version {version}")
            values[known.name], position = known.read(data, position, version)  # by its type: Kafka ignores the size
        elif size > len(data) - position:
            raise BadLength(position, "a tagged field is longer than what is left")
        else:
            position += size
    return kind(**values), position


def write_entity(buffer: io.BytesIO, value: Any, version: int) -> None:
    """Writes a structure; raises `InvalidInput` for what `version` of it cannot hold."""
    untagged, tagged = _fields_of(type(value))
    for each in untagged:
        if version >= each.since:
            _write(buffer, each, value, version)
        elif getattr(value, each.name) != each.default:
            raise InvalidInput(f"{type(value).__name__} has no {each.name} in version {version}")
    present = [each for _, each in sorted(tagged.items()) if getattr(value, each.name) != each.default]
    writers.write_unsigned_varint(buffer, uvarint(len(present)))
    for each in present:
        if version < each.since:
            raise InvalidInput(f"{type(value).__name__} has no {each.name} in version {version}")
        assert each.tag is not None
        content = io.BytesIO()
        _write(content, each, value, version)
        writers.write_unsigned_varint(buffer, uvarint(each.tag))
        writers.write_unsigned_varint(buffer, uvarint(content.tell()))
        buffer.write(content.getvalue())


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned varint at `position`, and the position behind it; raises `BadLength` or `BadVarint`."""
    return _varint(data, position)


def write_varint(buffer: io.BytesIO, number: int) -> None:
    """Writes an unsigned varint."""
    writers.write_unsigned_varint(buffer, uvarint(number))


def _write(buffer: io.BytesIO, each: _Field, value: Any, version: int) -> None:
    content = getattr(value, each.name)
    try:
        each.write(buffer, content, version)
    except (struct.error, SerialError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{each.name} of {type(value).__name__} cannot be {content!r}: {error}") from None


# Fields


class _Declared(NamedTuple):
    untagged: tuple[_Field, ...]  # in their order
    tagged: dict[int, _Field]


_declared: Final[dict[type[Any], _Declared]] = {}


def _fields_of(kind: type[Any]) -> _Declared:
    """The fields that a structure was declared with."""
    known = _declared.get(kind)
    if known is None:
        hints = get_type_hints(kind)
        every = [_field(each, hints[each.name]) for each in fields(kind)]
        known = _Declared(
            tuple(each for each in every if each.tag is None),
            {each.tag: each for each in every if each.tag is not None},
        )
        _declared[kind] = known
    return known


def _field(declared: Any, hint: Any) -> _Field:
    kafka_type: str = declared.metadata["kafka_type"]
    nullable: bool = declared.metadata["nullable"]
    name: str = declared.name
    if kafka_type.startswith("[]"):
        item = kafka_type[2:]
        read, write = (_versioned(name, *_PRIMITIVES[item])) if item else _structure(_item_type(hint))
        read, write = _array(name, nullable, read, write)
    else:
        read, write = _versioned(name, *(_NULLABLES if nullable else _PRIMITIVES)[kafka_type])
    return _Field(name, declared.metadata["since"], declared.metadata["tag"], declared.default, read, write)


_Read = Callable[[bytes, int, int], tuple[Any, int]]
_Write = Callable[[io.BytesIO, Any, int], None]


def _versioned(name: str, reader: Reader, writer: Writer) -> tuple[_Read, _Write]:
    def read(data: bytes, position: int, version: int) -> tuple[Any, int]:
        try:
            value, size = reader(data, position)
        except BufferUnderflow:
            raise BadLength(position, f"the bytes end inside {name}") from None
        except (SerialError, ValueError) as error:
            raise BadRecord(position, f"{name} cannot be read: {error}") from None
        return value, position + size

    def write(buffer: io.BytesIO, value: Any, version: int) -> None:
        writer(buffer, value)

    return read, write


def _structure(kind: type[Any]) -> tuple[_Read, _Write]:
    def read(data: bytes, position: int, version: int) -> tuple[Any, int]:
        return read_entity(kind, data, position, version)

    return read, write_entity


def _array(name: str, nullable: bool, read_item: _Read, write_item: _Write) -> tuple[_Read, _Write]:
    def read(data: bytes, position: int, version: int) -> tuple[Any, int]:
        count, behind = _varint(data, position)
        if count == 0:
            if not nullable:
                raise BadRecord(position, f"{name} is null")
            return None, behind
        if count - 1 > len(data) - behind:  # every item takes a byte at least
            raise BadLength(position, f"{name} has {count - 1} items, more than there are bytes")
        items = []
        for _ in range(count - 1):
            item, behind = read_item(data, behind, version)
            items.append(item)
        return tuple(items), behind

    def write(buffer: io.BytesIO, value: Any, version: int) -> None:
        if value is None and not nullable:
            raise TypeError("it is not nullable")
        writers.write_unsigned_varint(buffer, uvarint(0 if value is None else len(value) + 1))
        for item in value or ():
            write_item(buffer, item, version)

    return read, write


def _item_type(hint: Any) -> type[Any]:
    """Of `tuple[X, ...]`, or of that or None."""
    if isinstance(hint, UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    item: type[Any] = get_args(hint)[0]
    return item


def _varint(data: bytes, position: int) -> tuple[int, int]:
    try:
        number, size = readers.read_unsigned_varint(data, position)
    except BufferUnderflow:
        raise BadLength(position, "the bytes end inside a varint") from None
    except ValueError:
        raise BadVarint(position, "a varint goes on after its last possible byte") from None
    return number & 0xFFFFFFFF, position + size


# Primitives


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


_PRIMITIVES: Final[dict[str, tuple[Reader, Writer]]] = {
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
_NULLABLES: Final[dict[str, tuple[Reader, Writer]]] = {
    "string": (_read_nullable_string, _write_nullable_string),
}

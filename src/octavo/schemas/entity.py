"""Declare the structures of Kafka's messages as dataclasses, and read and write them as Kafka does.

    @entity
    class TopicRecord:
        name: str = kafka("string")
        topic_id: UUID = kafka("uuid")

A field declares its type as Kafka's definitions do ("[]int32" is an array, "[]" an array of the structure in its
annotation, "struct" one such structure), the version that introduced it, its tag, and whether it may be null.
`read_entity` and `write_entity` follow these declarations, in every version. In flexible versions (KIP-482) lengths are
varints, and tagged fields come at the end. In old versions lengths are integers, and there are no tagged fields.

As in Kafka, unknown tagged fields are skipped, any byte but 0 is true, and malformed UTF-8 is decoded as in Java. A
count that is larger than the number of bytes that follow is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from types import UnionType
from typing import Any, Final, NamedTuple, TypeVar, dataclass_transform, get_args, get_type_hints

from octavo.errors import BadLength, BadRecord, InvalidInput
from octavo.schemas.lengths import (
    as_int32,
    compact_length,
    long_length,
    read_compact_length,
    read_long_length,
    read_varint,
    varint,
)
from octavo.schemas.primitives import Reader, Writer, primitive

_LAST_VERSION: Final = 0x7FFF

T = TypeVar("T")


def kafka(
    kafka_type: str,
    *,
    since: int = 0,
    until: int | None = None,
    tag: int | None = None,
    nullable: bool = False,
    default: Any = MISSING,
) -> Any:
    """Declare a field as in Kafka's definition, for versions `since` to `until`; a tagged field needs a default."""
    assert default is not MISSING or (tag is None and not since and until is None)
    metadata = {"kafka_type": kafka_type, "since": since, "until": until, "tag": tag, "nullable": nullable}
    return field(metadata=metadata, default=default)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(kafka,))
def entity(declared: type[T]) -> type[T]:
    """Turn a class into a frozen dataclass that declares a structure of Kafka's messages."""
    return dataclass(frozen=True, slots=True, kw_only=True)(declared)


class _Field(NamedTuple):
    name: str
    since: int
    until: int
    tag: int | None
    default: Any
    read: Callable[[bytes, int, int], tuple[Any, int]]  # data, position, version
    writer: Callable[[int], Writer]  # of a version


def read_entity(kind: type[T], data: bytes, position: int, version: int, *, flexible: bool = True) -> tuple[T, int]:
    """Read the structure at `position`; returns it and the position after it.

    flexible: whether `version` is a flexible version

    Raises `BadLength`, `BadVarint` or `BadRecord`, with a position in `data`.
    """
    values: dict[str, Any] = {}
    untagged, tagged = _fields_of(kind, flexible)
    for each in untagged:
        if each.since <= version <= each.until:
            values[each.name], position = each.read(data, position, version)
    if not flexible:
        return kind(**values), position
    count, position = read_varint(data, position)
    for _ in range(as_int32(count)):  # each takes at least two bytes, so a wrong count fails at the end of the data
        tag, position = read_varint(data, position)
        size, position = read_varint(data, position)
        known = tagged.get(tag)
        if known is not None:
            if version < known.since:
                raise BadRecord(position, f"{known.name} has no place in version {version}")
            values[known.name], position = known.read(data, position, version)  # like Kafka, ignore the size
        elif size > len(data) - position:
            raise BadLength(position, "a tagged field is longer than what is left")
        else:
            position += size
    return kind(**values), position


def write_entity(value: Any, version: int, *, flexible: bool = True) -> bytes:
    """Return a structure as bytes; raises `InvalidInput` for a field that `version` cannot hold."""
    return _writer(type(value), version, flexible)(value)


def _writer(kind: type[Any], version: int, flexible: bool) -> Writer:
    """Return the function that writes a structure in a version."""
    known = _writers.get((kind, version, flexible))
    if known is None:
        known = _writers[kind, version, flexible] = _new_writer(kind, version, flexible)
    return known


def _new_writer(kind: type[Any], version: int, flexible: bool) -> Writer:
    untagged, tagged = _fields_of(kind, flexible)
    steps = [(each.name, attrgetter(each.name), each.writer(version)) for each in untagged if _has(version, each)]
    absent = [(each.name, attrgetter(each.name), each.default) for each in untagged if not _has(version, each)]
    may_be_set = [(each, attrgetter(each.name)) for _, each in sorted(tagged.items())]
    no_tags = varint(0) if flexible else b""

    def write(value: Any) -> bytes:
        for name, get, default in absent:
            if get(value) != default:
                raise InvalidInput(f"{kind.__name__} has no {name} in version {version}")
        parts: list[bytes] = []
        at = ""
        try:
            for at, get, write_field in steps:  # noqa: B007 # an exception is told where it was
                parts.append(write_field(get(value)))
        except (struct.error, TypeError, AttributeError) as error:
            raise InvalidInput(f"{at} of {kind.__name__} cannot be {getattr(value, at)!r}: {error}") from None
        if not may_be_set:
            parts.append(no_tags)
            return b"".join(parts)
        present = [(each, get) for each, get in may_be_set if get(value) != each.default]
        parts.append(varint(len(present)) if flexible else b"")
        for each, get in present:
            if version < each.since or not flexible:
                raise InvalidInput(f"{kind.__name__} has no {each.name} in version {version}")
            parts += _tagged(each, get(value), version, kind)
        return b"".join(parts)

    return write


def _has(version: int, each: _Field) -> bool:
    return each.since <= version <= each.until


def _tagged(each: _Field, content: Any, version: int, kind: type[Any]) -> tuple[bytes, bytes, bytes]:
    assert each.tag is not None
    try:
        inside = each.writer(version)(content)
    except (struct.error, TypeError, AttributeError) as error:
        raise InvalidInput(f"{each.name} of {kind.__name__} cannot be {content!r}: {error}") from None
    return varint(each.tag), varint(len(inside)), inside


# Fields


class _Declared(NamedTuple):
    untagged: tuple[_Field, ...]  # in the order of their declaration
    tagged: dict[int, _Field]


_writers: Final[dict[tuple[type[Any], int, bool], Writer]] = {}
_declared: Final[dict[tuple[type[Any], bool], _Declared]] = {}


def _fields_of(kind: type[Any], flexible: bool) -> _Declared:
    """Return the declared fields of the structure `kind`, for flexible or for old versions."""
    known = _declared.get((kind, flexible))
    if known is None:
        hints = get_type_hints(kind)
        every = [_field(each, hints[each.name], flexible) for each in fields(kind)]
        known = _Declared(
            tuple(each for each in every if each.tag is None),
            {each.tag: each for each in every if each.tag is not None},
        )
        _declared[kind, flexible] = known
    return known


def _field(declared: Any, hint: Any, flexible: bool) -> _Field:
    kafka_type: str = declared.metadata["kafka_type"]
    nullable: bool = declared.metadata["nullable"]
    tag: int | None = declared.metadata["tag"]
    name: str = declared.name
    if kafka_type == "struct":
        read, writer = _structure(structure_type(hint), flexible)
        if nullable:
            read, writer = _nullable_structure(read, writer, tagged=tag is not None)
    elif kafka_type == "[]":
        read, writer = _array(name, nullable, flexible, *_structure(structure_type(hint), flexible))
    elif kafka_type.startswith("[]"):
        item = _versioned(name, *primitive(kafka_type[2:], flexible=flexible, nullable=False))
        read, writer = _array(name, nullable, flexible, *item)
    else:
        read, writer = _versioned(name, *primitive(kafka_type, flexible=flexible, nullable=nullable))
    since, until = declared.metadata["since"], declared.metadata["until"]
    return _Field(name, since, _LAST_VERSION if until is None else until, tag, declared.default, read, writer)


_Read = Callable[[bytes, int, int], tuple[Any, int]]
_WriterOf = Callable[[int], Writer]


def _versioned(name: str, reader: Reader, writer: Writer) -> tuple[_Read, _WriterOf]:
    def read(data: bytes, position: int, version: int) -> tuple[Any, int]:
        try:
            value, size = reader(data, position)
        except BadLength:
            raise BadLength(position, f"the bytes end inside {name}") from None
        except ValueError as error:
            raise BadRecord(position, f"{name} cannot be read: {error}") from None
        return value, position + size

    return read, lambda version: writer


def _structure(kind: type[Any], flexible: bool) -> tuple[_Read, _WriterOf]:
    def read(data: bytes, position: int, version: int) -> tuple[Any, int]:
        return read_entity(kind, data, position, version, flexible=flexible)

    return read, lambda version: _writer(kind, version, flexible)


def _nullable_structure(read_content: _Read, content_writer: _WriterOf, *, tagged: bool) -> tuple[_Read, _WriterOf]:
    """Return functions for a structure after a mark that it is not null: a varint in a tagged field, else a byte."""

    def read(data: bytes, position: int, version: int) -> tuple[Any, int]:
        if tagged:
            number, behind = read_varint(data, position)
            is_null = as_int32(number) <= 0
        elif position < len(data):
            is_null, behind = data[position] >= 0x80, position + 1
        else:
            raise BadLength(position, "the bytes end where a structure or null is meant")
        return (None, behind) if is_null else read_content(data, behind, version)

    def writer(version: int) -> Writer:
        write_content = content_writer(version)

        def write(value: Any) -> bytes:
            if value is None:
                return b"\x00" if tagged else b"\xff"
            return b"\x01" + write_content(value)  # the same as a varint and as a byte

        return write

    return read, writer


def _array(
    name: str, nullable: bool, flexible: bool, read_item: _Read, item_writer: _WriterOf
) -> tuple[_Read, _WriterOf]:
    read_count = read_compact_length if flexible else read_long_length
    write_count: Writer = compact_length if flexible else long_length

    def read(data: bytes, position: int, version: int) -> tuple[Any, int]:
        count, behind = read_count(data, position)
        if count < 0:
            if not nullable:
                raise BadRecord(position, f"{name} is null")
            return None, behind
        if count > len(data) - behind:  # every item takes at least one byte
            raise BadLength(position, f"{name} has {count} items, more than there are bytes")
        items = []
        for _ in range(count):
            item, behind = read_item(data, behind, version)
            items.append(item)
        return tuple(items), behind

    def writer(version: int) -> Writer:
        write_item = item_writer(version)

        def write(value: Any) -> bytes:
            if value is None:
                if not nullable:
                    raise TypeError("it is not nullable")
                return write_count(-1)
            return b"".join((write_count(len(value)), *map(write_item, value)))

        return write

    return read, writer


def structure_type(hint: Any) -> type[Any]:
    """Return the structure `X` of an annotation: `X` or `tuple[X, ...]`, either of them perhaps or None."""
    if isinstance(hint, UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    structure: type[Any] = get_args(hint)[0] if get_args(hint) else hint
    return structure

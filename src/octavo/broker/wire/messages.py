"""Read requests and write responses of any API in any version, from kio's declarations of their fields.

    request = read_request(METADATA, 12, body)      # request.topics[0].name
    body = write_response(METADATA, 12, {"brokers": [...], ...})

A handler sees one shape for all versions. A request has the fields of its own version and of the newest one; those that
its version lacks have the default of the newest. A response is a nested dict; fields that the version lacks are left
out, and fields that have a default may be missing in the dict. In a request every field has a default. kio calls
`throttle_time` what Kafka calls `throttleTimeMs`: fields that are times and durations get their `_ms` back, and are
plain numbers here.

kio's own reader is not used, because it differs from Kafka: unknown tagged fields are skipped here, any byte but 0 is
true, malformed UTF-8 is replaced, and a count is compared with the bytes that are left. Bytes after the message are
ignored. A uuid is `bytes`, which is what topics are looked up by.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, lru_cache
from itertools import groupby
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Final, NamedTuple, get_args, get_origin

from octavo.broker.wire.primitives import (
    ARRAYS,
    FIXED,
    NUMBERS,
    Read,
    ReadItems,
    Write,
    check_tags,
    count,
    read_uvarint,
    sized,
    take,
    uvarint,
)
from octavo.errors import MalformedRequest
from octavo.log.ownership.fork_safe import make_rlock

Struct = SimpleNamespace  # a structure of a request
Content = Mapping[str, Any]  # a structure of a response

_SIZED: Final = {"string", "bytes", "records"}
_NO_UUID: Final = bytes(16)
# Held while something of kio is imported. Its packages import their modules, and whoever imports a module imports its
# package first: if two threads do that, each waits for the other, and Python has one of them fail.
_IMPORTING: Final = make_rlock()
_SHORT_BODY: Final = 256  # bytes
_SHORT_BODIES: Final = 2048  # so that the heartbeats of very large groups are among them
_ABSENT: Final = b"\xff"  # stands before a structure that may be null, and is
_PRESENT: Final = b"\x01"


class _Field(NamedTuple):
    name: str
    tag: int | None
    default: Any  # MISSING if there is none
    read: Read
    write: Write
    layout: str | None  # for `struct`, if the size is fixed


class _Step(NamedTuple):
    """A field, or several of a fixed size one after the other, which are read and written at once."""

    names: tuple[str, ...]  # of the fields, if there are several
    unpack: Callable[[memoryview, int], tuple[Any, ...]]
    size: int
    name: str
    read: Read
    write: Write


class _Layout(NamedTuple):
    untagged: tuple[_Field, ...]
    tagged: dict[int, _Field]
    defaults: dict[str, Any]  # of the tagged fields, and of fields that only the newest version has
    is_flexible: bool


def read_request(api_key: int, version: int, body: memoryview) -> Struct:
    """Read the body of a request. Raises `MalformedRequest`.

    Clients ask the same again and again: two requests with the same bytes may be one object. Change nothing in it.
    """
    if len(body) <= _SHORT_BODY:
        return _read_short(api_key, version, bytes(body))
    return _read(api_key, version, body)


def _read(api_key: int, version: int, body: memoryview) -> Struct:
    request: Struct = _codec(api_key, version, "request")[0](body, 0)[0]
    return request


@lru_cache(_SHORT_BODIES)
def _read_short(api_key: int, version: int, body: bytes) -> Struct:
    return _read(api_key, version, memoryview(body))


def write_response(api_key: int, version: int, content: Content) -> bytes:
    """Return the body of a response."""
    parts: list[bytes] = []
    _codec(api_key, version, "response")[1](parts, content)
    return b"".join(parts)


def write_request(api_key: int, version: int, content: Content) -> bytes:
    """Return the body of a request, as a client writes it."""
    parts: list[bytes] = []
    _codec(api_key, version, "request")[1](parts, content)
    return b"".join(parts)


def read_response(api_key: int, version: int, body: memoryview) -> Struct:
    """Read the body of a response, as a client does. Raises `MalformedRequest`."""
    response: Struct = _codec(api_key, version, "response")[0](body, 0)[0]
    return response


@cache
def _codec(api_key: int, version: int, kind: str) -> tuple[Read, Write]:
    declared = declaration(api_key, version, kind)
    newest = declaration(api_key, _newest_version(api_key), kind)
    return _structure(declared, newest, is_request=kind == "request")


def _newest_version(api_key: int) -> int:
    with _IMPORTING:
        from kio.schema.index import api_key_map, schema_name_map

        return max(schema_name_map[api_key_map[api_key]])


def declaration(api_key: int, version: int, kind: str) -> Any:
    """Return kio's declaration of a request or a response. Any thread may ask for it."""
    with _IMPORTING:
        from pkgutil import resolve_name

        from kio.schema.index import api_key_map, schema_name_map
        from kio.static.constants import EntityType

        paths = schema_name_map[api_key_map[api_key]][version]
        return resolve_name(paths[EntityType.request] if kind == "request" else paths[EntityType.response])


# Structures


def _structure(declared: Any, newest: Any, *, is_request: bool) -> tuple[Read, Write]:
    layout = _layout(declared, newest, is_request=is_request)
    untagged, tagged, defaults, flexible = layout
    steps = _steps(untagged)
    missing = {each.name: each.default for each in untagged if each.default is not MISSING}

    def read(data: memoryview, position: int) -> tuple[Struct, int]:
        values = defaults.copy()
        for names, unpack, size, name, read_field, _ in steps:
            if not names:
                values[name], position = read_field(data, position)
                continue
            try:
                values.update(zip(names, unpack(data, position), strict=True))
            except struct.error:
                raise MalformedRequest(f"the bytes end inside a number, after byte {position}") from None
            position += size
        if flexible:
            position = _read_tagged(data, position, tagged, values)
        return Struct(**values), position

    def write(parts: list[bytes], content: Content) -> None:
        for names, _, _, name, _, write_field in steps:
            if not names:
                write_field(parts, content[name] if name in content else missing[name])
                continue
            try:
                values = [content[each] for each in names]
            except KeyError:
                values = [content[each] if each in content else missing[each] for each in names]
            write_field(parts, values)
        if tagged:
            _write_tagged(parts, tagged, content)
        elif flexible:
            parts.append(b"\0")

    return read, write


def _steps(untagged: Sequence[_Field]) -> list[_Step]:
    steps: list[_Step] = []
    for is_fixed, group in groupby(untagged, lambda each: each.layout is not None):
        several = list(group)
        if is_fixed and len(several) > 1:
            steps.append(_together(several))
        else:
            steps += [_Step((), struct.Struct("").unpack_from, 0, each.name, each.read, each.write) for each in several]
    return steps


def _together(several: Sequence[_Field]) -> _Step:
    packed = struct.Struct(">" + "".join(str(each.layout) for each in several))

    def write(parts: list[bytes], values: Sequence[Any]) -> None:
        parts.append(packed.pack(*values))

    first = several[0]
    names = tuple(each.name for each in several)
    return _Step(names, packed.unpack_from, packed.size, first.name, first.read, write)


def _read_tagged(data: memoryview, position: int, tagged: dict[int, _Field], values: dict[str, Any]) -> int:
    if position < len(data) and not data[position]:  # nearly always
        return position + 1
    number, position = read_uvarint(data, position)
    check_tags(number)
    for _ in range(number):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        known = tagged.get(tag)
        content, position = take(data, position, size)
        if known is not None:
            values[known.name], _ = known.read(content, 0)
    return position


def _write_tagged(parts: list[bytes], tagged: dict[int, _Field], content: Content) -> None:
    present = [each for each in tagged.values() if _is_set(content.get(each.name, each.default), each.default)]
    parts.append(uvarint(len(present)))
    for each in present:
        inside: list[bytes] = []
        each.write(inside, content[each.name])
        encoded = b"".join(inside)
        assert each.tag is not None
        parts += (uvarint(each.tag), uvarint(len(encoded)), encoded)


def _is_set(value: Any, default: Any) -> bool:
    """Return whether a tagged field has another value than its default; an empty list is like an empty tuple."""
    return bool(value) if default == () else value != default


def _layout(declared: Any, newest: Any, *, is_request: bool) -> _Layout:
    flexible: bool = declared.__flexible__
    newest_fields = {} if newest is None else {name_of(each): each for each in fields(newest)}
    every = [
        _field(each, newest_fields.get(name_of(each)), flexible=flexible, is_request=is_request)
        for each in fields(declared)
    ]
    tagged = {each.tag: each for each in sorted(every, key=lambda each: each.tag or 0) if each.tag is not None}
    own = {each.name for each in every}
    defaults = {each.name: None if each.default is MISSING else _struct(each.default) for each in tagged.values()}
    defaults |= {name: _struct(default_of(each)) for name, each in newest_fields.items() if name not in own}
    return _Layout(tuple(each for each in every if each.tag is None), tagged, defaults, flexible)


def _field(declared: Any, newest: Any, *, flexible: bool, is_request: bool) -> _Field:
    hint, is_array, nullable = type_of(declared.type)
    layout: str | None = None
    if is_dataclass(hint):
        other = None if newest is None else type_of(newest.type)[0]
        read, write = _structure(hint, other, is_request=is_request)
        if nullable and not is_array:
            read, write = _maybe(read, write)
    else:
        kafka_type: str = declared.metadata["kafka_type"]
        layout = None if is_array else FIXED.get(kafka_type)
        if kafka_type in _SIZED:
            read, write = sized(kafka_type, flexible=flexible, nullable=nullable)
        else:
            read, write = NUMBERS[kafka_type]
    if is_array:
        items = ARRAYS.get(declared.metadata.get("kafka_type", "")) or _items(read, write)
        read, write = _array(flexible, nullable, *items)
    has_default = declared.default is not MISSING or is_request
    default = default_of(declared) if has_default else MISSING
    return _Field(name_of(declared), declared.metadata.get("tag"), default, read, write, layout)


def _struct(default: Any) -> Any:
    """Return a default as a request has it."""
    return Struct(**default) if isinstance(default, dict) else default


def name_of(declared: Any) -> str:
    """Return the name of a field as contents have it."""
    name: str = declared.name
    is_time = declared.metadata.get("kafka_type", "").startswith(("timedelta", "datetime"))
    return f"{name}_ms" if is_time else name


def type_of(hint: Any) -> tuple[Any, bool, bool]:
    """Return the type of a field or of its items, whether it is an array, and whether it may be null."""
    nullable = is_array = False
    if get_origin(hint) is UnionType:
        nullable = NoneType in get_args(hint)
        hint = next(each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is tuple:
        is_array = True
        hint = get_args(hint)[0]
        if get_origin(hint) is UnionType:  # kio says so of arrays of uuids, whose items are never null
            hint = next(each for each in get_args(hint) if each is not NoneType)
    return hint, is_array, nullable


def default_of(declared: Any) -> Any:
    """Return the default of a field, which is also its value in versions that do not have it."""
    hint, is_array, nullable = type_of(declared.type)
    if declared.metadata.get("kafka_type") == "uuid" and not is_array:
        return _NO_UUID  # to kio it is None
    if declared.default is not MISSING:
        return _plain(declared.default)
    if nullable:
        return None
    if is_array:
        return ()
    if is_dataclass(hint):
        return None
    kafka_type = declared.metadata["kafka_type"]
    return {"string": "", "bytes": b"", "records": None, "bool": False}.get(kafka_type, 0)


def _plain(default: Any) -> Any:
    """Return a default as what it is on the wire: milliseconds, or the number of an error code."""
    from datetime import datetime, timedelta

    if isinstance(default, timedelta):
        return round(default.total_seconds() * 1000)
    if isinstance(default, datetime):
        return round(default.timestamp() * 1000)
    if is_dataclass(default):
        return {name_of(each): default_of(each) for each in fields(default)}
    if isinstance(default, bool) or not isinstance(default, int):
        return default
    return int(default)


def _array(flexible: bool, nullable: bool, read_items: ReadItems, write_items: Write) -> tuple[Read, Write]:
    read_count, write_count = count(flexible=flexible, nullable=nullable)

    def read(data: memoryview, position: int) -> tuple[Any, int]:
        number, position = read_count(data, position)
        return (None, position) if number < 0 else read_items(data, position, number)

    def write(parts: list[bytes], items: Any) -> None:
        if items is None:
            assert nullable
            write_count(parts, -1)
            return
        write_count(parts, len(items))
        write_items(parts, items)

    return read, write


def _items(read_item: Read, write_item: Write) -> tuple[ReadItems, Write]:
    """Return the functions for the items of an array, which are read and written one after the other."""

    def read(data: memoryview, position: int, number: int) -> tuple[Any, int]:
        items = []
        for _ in range(number):
            item, position = read_item(data, position)
            items.append(item)
        return tuple(items), position

    def write(parts: list[bytes], items: Any) -> None:
        for item in items:
            write_item(parts, item)

    return read, write


def _maybe(read_content: Read, write_content: Write) -> tuple[Read, Write]:
    """Return the functions for a structure that may be null: a byte before it says whether it is there."""

    def read(data: memoryview, position: int) -> tuple[Any, int]:
        (presence,), position = take(data, position, 1)
        return (None, position) if presence >= 0x80 else read_content(data, position)

    def write(parts: list[bytes], content: Content | None) -> None:
        parts.append(_ABSENT if content is None else _PRESENT)
        if content is not None:
            write_content(parts, content)

    return read, write

"""Read and write the frame around a record of `__cluster_metadata` or of `__remote_log_metadata`.

    value => frame_version:varint (1)  type:varint  version:varint  record

The varints are unsigned. A record's key is null. Records whose type or version Kafka 4.3 does not know are kept as an
`UnknownRecord`. Kafka itself mostly fails at such a record, but a reader that only needs the others can go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, Final, TypeVar

from octavo.errors import BadLength, BadRecord, BadVarint, InvalidInput, Unsupported
from octavo.schemas.entity import read_entity, write_entity
from octavo.schemas.lengths import read_varint, varint

FRAME_VERSION: Final = 1
_MAX_NUMBER: Final = 0x7FFF


class FramedRecord:
    """A record with a frame; each kind is a dataclass of its own."""

    __slots__ = ()

    TYPE: ClassVar[int]  # Kafka's number for the kind
    VERSIONS: ClassVar[range]  # versions that Kafka 4.3 knows; all are flexible


R = TypeVar("R", bound=FramedRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRecord:
    """A record whose type or version Kafka 4.3 does not know."""

    type: int
    version: int
    body: bytes


def record_kinds(base: type[R], *modules: ModuleType) -> dict[int, type[R]]:
    """Return the classes of records that are declared in some modules, by their number."""
    return {
        kind.TYPE: kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, base) and kind is not base
    }


def read_framed(
    kinds: Mapping[int, type[R]], value: bytes | None, *, what: str, position: int = 0
) -> R | UnknownRecord:
    """Read the record in the value of a log record; errors call it a record of `what`.

    Raises a `FormatError`, at `position`, for whatever Kafka's reader refuses, except unknown types and versions.
    """
    if value is None:
        raise BadRecord(position, f"a record of {what} has no value")
    try:
        return _read(kinds, value)
    except (BadLength, BadRecord, BadVarint, Unsupported) as error:
        raise type(error)(position, f"in a record of {what}, {error}") from None


def write_framed(record: FramedRecord | UnknownRecord, *, version: int | None = None) -> bytes:
    """Return the value of the log record for a record, in the newest version unless another is given.

    Raises `InvalidInput` for an unknown version or a field that it cannot hold.
    """
    if isinstance(record, UnknownRecord):
        return varint(FRAME_VERSION) + varint(record.type) + varint(record.version) + record.body
    if version is None:
        version = record.VERSIONS[-1]
    elif version not in record.VERSIONS:
        raise InvalidInput(f"{type(record).__name__} has no version {version}")
    return varint(FRAME_VERSION) + varint(record.TYPE) + varint(version) + write_entity(record, version)


def _read(kinds: Mapping[int, type[R]], value: bytes) -> R | UnknownRecord:
    frame_version, position = read_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise Unsupported(0, f"the frame has version {frame_version}, not {FRAME_VERSION}")
    number, position = read_varint(value, position)
    version, position = read_varint(value, position)
    if number > _MAX_NUMBER or version > _MAX_NUMBER:
        raise BadRecord(0, f"type {number}, version {version} are larger than {_MAX_NUMBER}")
    kind = kinds.get(number)
    if kind is None or version not in kind.VERSIONS:
        return UnknownRecord(type=number, version=version, body=value[position:])
    record, position = read_entity(kind, value, position, version)
    if position != len(value):
        raise BadLength(position, f"{kind.__name__} ends {len(value) - position} bytes before its value")
    return record

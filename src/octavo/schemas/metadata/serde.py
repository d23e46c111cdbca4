"""Read and write the frame around a metadata record, and find record classes by their number.

    value => frame_version:varint (1)  type:varint  version:varint  record

The varints are unsigned. A record's key is null. Records whose type or version Kafka 4.3 does not know are kept as an
`UnknownRecord`. Kafka itself mostly fails at such a record, but a reader that only needs the topics can go on.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final, TypeVar

from octavo.errors import BadLength, BadRecord, BadVarint, InvalidInput, Unsupported
from octavo.schemas.entity import read_entity, read_varint, write_entity, write_varint
from octavo.schemas.metadata import access, nodes, progress, topics
from octavo.schemas.metadata.record import MetadataRecord

FRAME_VERSION: Final = 1
_MAX_NUMBER: Final = 0x7FFF

R = TypeVar("R", bound=MetadataRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRecord:
    """A record whose type or version Kafka 4.3 does not know."""

    type: int
    version: int
    body: bytes


KINDS: Final[dict[int, type[MetadataRecord]]] = {
    kind.TYPE: kind
    for module in (access, nodes, progress, topics)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, MetadataRecord) and kind is not MetadataRecord
}


def read_metadata(value: bytes | None, *, position: int = 0) -> MetadataRecord | UnknownRecord:
    """Read the metadata record in the value of a log record.

    Raises a `FormatError`, at `position`, for whatever Kafka's reader refuses, except unknown types and versions.
    """
    if value is None:
        raise BadRecord(position, "a record of metadata has no value")
    try:
        return _read(value)
    except (BadLength, BadRecord, BadVarint, Unsupported) as error:
        raise type(error)(position, f"in a record of metadata, {error}") from None


def write_metadata(record: MetadataRecord | UnknownRecord, *, version: int | None = None) -> bytes:
    """Return the value of the log record for a metadata record, in the newest version unless another is given.

    Raises `InvalidInput` for an unknown version or a field that it cannot hold.
    """
    buffer = io.BytesIO()
    write_varint(buffer, FRAME_VERSION)
    if isinstance(record, UnknownRecord):
        write_varint(buffer, record.type)
        write_varint(buffer, record.version)
        buffer.write(record.body)
        return buffer.getvalue()
    if version is None:
        version = record.VERSIONS[-1]
    elif version not in record.VERSIONS:
        raise InvalidInput(f"{type(record).__name__} has no version {version}")
    write_varint(buffer, record.TYPE)
    write_varint(buffer, version)
    write_entity(buffer, record, version)
    return buffer.getvalue()


def _read(value: bytes) -> MetadataRecord | UnknownRecord:
    frame_version, position = read_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise Unsupported(0, f"the frame has version {frame_version}, not {FRAME_VERSION}")
    number, position = read_varint(value, position)
    version, position = read_varint(value, position)
    if number > _MAX_NUMBER or version > _MAX_NUMBER:
        raise BadRecord(0, f"type {number}, version {version} are larger than {_MAX_NUMBER}")
    kind = KINDS.get(number)
    if kind is None or version not in kind.VERSIONS:
        return UnknownRecord(type=number, version=version, body=value[position:])
    record, position = read_entity(kind, value, position, version)
    if position != len(value):
        raise BadLength(position, f"{kind.__name__} ends {len(value) - position} bytes before its value")
    return record

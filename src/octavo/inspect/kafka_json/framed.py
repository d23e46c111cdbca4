"""Read the records of `__cluster_metadata` and `__remote_log_metadata` as Kafka does, and turn them into JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from octavo.errors import BadLength, BadVarint, FormatError
from octavo.inspect.kafka_json.nodes import message_json
from octavo.inspect.kafka_json.refusals import read_as_kafka, refused
from octavo.schemas.framed import FRAME_VERSION, FramedRecord
from octavo.schemas.lengths import as_int32, read_varint

_MAX_NUMBER: Final = 0x7FFF
_INNER_CAPITAL: Final = re.compile(r"(?<!^)([A-Z])")


def framed_node(kinds: Mapping[int, type[FramedRecord]], value: bytes | None) -> dict[str, Any]:
    """Return the JSON of a record with its type, as Kafka calls it, and its version. Raises `FormatError`."""
    message, version = read_framed(kinds, value)
    name = _INNER_CAPITAL.sub(r"_\1", type(message).__name__).upper()
    return {"type": name, "version": version, "data": message_json(message, version)}


def read_framed(kinds: Mapping[int, type[FramedRecord]], value: bytes | None) -> tuple[FramedRecord, int]:
    """Read a record as Kafka's reader does; returns it and its version. Raises `FormatError` with Kafka's words."""
    frame, position = _number(value, 0, "frame version")
    if frame == 0:
        raise refused(
            "Could not deserialize metadata record with frame version 0. "
            "Note that upgrades from the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != FRAME_VERSION:
        raise refused(
            f"Could not deserialize metadata record due to unknown frame version {frame}"
            f"(only frame version {FRAME_VERSION} is supported)"
        )
    number, position = _number(value, position, "type")
    version, position = _number(value, position, "version")
    assert value is not None
    kind = kinds.get(number)
    if kind is None:
        raise refused(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {number}")
    try:
        message, position = read_as_kafka(kind, value, position, version, versions=kind.VERSIONS, first_flexible=0)
    except FormatError:
        raise refused(f"Failed to deserialize record with type {number}") from None
    if position < len(value):
        raise refused(f"Found {len(value) - position} byte(s) of garbage after {number}")
    return message, version


def _number(value: bytes | None, position: int, what: str) -> tuple[int, int]:
    try:
        if value is None:
            raise BadLength(position, "there is no value")
        number, position = read_varint(value, position)
    except (BadLength, BadVarint):
        raise refused(f"Error while reading {what}") from None
    number = as_int32(number)
    if number > _MAX_NUMBER:
        raise refused(f"Value for {what} was too large.")
    return (number + 0x8000 & 0xFFFF) - 0x8000, position  # cast to Java's short

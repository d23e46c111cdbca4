"""The texts of Kafka's tool for the records of coordinators: a key with a type, and a value with a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from octavo.errors import BadRecord, FormatError, Unsupported
from octavo.inspect.kafka_json.jackson import to_text
from octavo.inspect.kafka_json.nodes import message_json
from octavo.inspect.kafka_json.refusals import read_as_kafka, refused
from octavo.inspect.kafka_json.texts import RecordDecoder, Texts
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue

_NUMBER_SIZE: Final = 2
_NEVER: Final = 1  # the first flexible version of keys, which have only version 0

ValueJson = Callable[[CoordinatorValue, int], dict[str, Any]]


def coordinator_decoder(
    kinds: Mapping[int, type[CoordinatorKey[Any]]], value_json: ValueJson = message_json
) -> RecordDecoder:
    """Return the decoder for a topic whose keys are of some kinds."""

    def decode(offset: int, key: bytes | None, value: bytes | None) -> Texts:
        if key is None:
            raise BadRecord(
                0,
                f"Failed to decode message at offset {offset} using the specified decoder (message had a missing key)",
            )
        try:
            kind, node = key_node(kinds, key)
            text = "<DELETE>" if value is None else to_text(value_node(kind, value, value_json))
            return Texts(to_text(node), text)
        except Unsupported:
            return Texts(f"Unknown record type {_number(key, 'key')} at offset {offset}, skipping.", None)
        except FormatError as error:
            return Texts(f"Error at offset {offset}, skipping. {error.rule}", None)

    return decode


def key_node(
    kinds: Mapping[int, type[CoordinatorKey[Any]]], key: bytes
) -> tuple[type[CoordinatorKey[Any]], dict[str, Any]]:
    """Return the kind of a key, and its JSON. Raises `Unsupported` for a type that is unknown, and `BadRecord`."""
    number = _number(key, "key")
    kind = kinds.get(number)
    if kind is None:
        raise Unsupported(0, f"Kafka 4.3 knows no record type {number} in this topic")
    message = _message(kind, key, number, "key", range(1), _NEVER)
    return kind, {"type": str(number), "data": message_json(message, 0)}


def value_node(
    key_kind: type[CoordinatorKey[Any]], value: bytes, value_json: ValueJson = message_json
) -> dict[str, Any]:
    """Return the JSON of the value that belongs to a kind of key. Raises `FormatError` with Kafka's words."""
    kind = key_kind.VALUE
    version = _number(value, "value")
    if version not in kind.VERSIONS:
        raise refused(f"Found an unknown record version {version} for {key_kind.TYPE} type")
    message = _message(kind, value, version, "value", kind.VERSIONS, kind.FIRST_FLEXIBLE)
    return {"version": str(version), "data": value_json(message, version)}


def _number(data: bytes, name: str) -> int:
    if len(data) < _NUMBER_SIZE:
        raise refused(f"Could not read version from {name}'s buffer.")
    return int.from_bytes(data[:_NUMBER_SIZE], signed=True)


def _message(kind: type[Any], data: bytes, version: int, name: str, versions: range, first_flexible: int) -> Any:
    read_version = 0 if name == "key" else version
    try:
        message, _ = read_as_kafka(
            kind, data, _NUMBER_SIZE, read_version, versions=versions, first_flexible=first_flexible
        )
    except FormatError as error:
        raise refused(
            f"Could not read record with version {version} from {name}'s buffer due to: {error.rule}."
        ) from None
    return message

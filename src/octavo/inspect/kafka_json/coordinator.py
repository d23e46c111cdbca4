"""The texts of Kafka's tool for the records of coordinators: a key with a type, and a value with a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from octavo.inspect.kafka_json.jackson import to_text
from octavo.inspect.kafka_json.nodes import message_json
from octavo.inspect.kafka_json.refusals import Refused, read_as_kafka
from octavo.inspect.kafka_json.texts import JavaException, RecordDecoder, Texts
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataValue
from octavo.schemas.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue

_NUMBER_SIZE: Final = 2
_NEVER: Final = 1  # the first flexible version of keys, which have only version 0
_CONSUMERS: Final = "consumer"  # the protocol type of groups whose members are consumers
_FIELDS: Final[tuple[tuple[str, type[CoordinatorValue]], ...]] = (
    ("subscription", ConsumerProtocolSubscription),
    ("assignment", ConsumerProtocolAssignment),
)

ValueJson = Callable[[CoordinatorValue, int], dict[str, Any]]


def coordinator_decoder(
    kinds: Mapping[int, type[CoordinatorKey[Any]]], value_json: ValueJson = message_json
) -> RecordDecoder:
    """Return the decoder for a topic whose keys are of some kinds."""

    def decode(offset: int, key: bytes | None, value: bytes | None) -> Texts:
        if key is None:
            raise JavaException(
                "java.lang.RuntimeException",
                f"Failed to decode message at offset {offset} using the specified decoder (message had a missing key)",
            )
        try:
            number = _number(key, "key")
            kind = kinds.get(number)
            if kind is None:
                return Texts(f"Unknown record type {number} at offset {offset}, skipping.", None)
            key_message = _message(kind, key, number, "key", range(1), _NEVER)
            texts = to_text({"type": str(number), "data": message_json(key_message, 0)})
            return Texts(texts, "<DELETE>" if value is None else _payload(kind, value, value_json))
        except Refused as refused:
            return Texts(f"Error at offset {offset}, skipping. {refused.message}", None)

    return decode


def group_value_json(value: CoordinatorValue, version: int) -> dict[str, Any]:
    """Return the JSON of a value of `__consumer_offsets`, with the messages of consumers in a classic group decoded."""
    node = message_json(value, version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == _CONSUMERS:
        for member, member_node in zip(value.members, node["members"], strict=True):
            for field, kind in _FIELDS:
                member_node[field] = _protocol_json(kind, getattr(member, field)) or member_node[field]
    return node


def _protocol_json(kind: type[CoordinatorValue], data: bytes) -> dict[str, Any] | None:
    """Return the JSON of a message that consumers send one another; None for bytes that are no such message."""
    try:
        version = _number(data, "value")
        message, _ = read_as_kafka(
            kind, data, _NUMBER_SIZE, version, versions=kind.VERSIONS, first_flexible=kind.FIRST_FLEXIBLE
        )
    except Refused:
        return None
    return message_json(message, version)


def _payload(key_kind: type[CoordinatorKey[Any]], value: bytes, value_json: ValueJson) -> str:
    kind = key_kind.VALUE
    version = _number(value, "value")
    if version not in kind.VERSIONS:
        raise Refused(f"Found an unknown record version {version} for {key_kind.TYPE} type")
    message = _message(kind, value, version, "value", kind.VERSIONS, kind.FIRST_FLEXIBLE)
    return to_text({"version": str(version), "data": value_json(message, version)})


def _number(data: bytes, name: str) -> int:
    if len(data) < _NUMBER_SIZE:
        raise Refused(f"Could not read version from {name}'s buffer.")
    return int.from_bytes(data[:_NUMBER_SIZE], signed=True)


def _message(kind: type[Any], data: bytes, version: int, name: str, versions: range, first_flexible: int) -> Any:
    read_version = 0 if name == "key" else version
    try:
        message, _ = read_as_kafka(
            kind, data, _NUMBER_SIZE, read_version, versions=versions, first_flexible=first_flexible
        )
    except Refused as refused:
        raise Refused(
            f"Could not read record with version {version} from {name}'s buffer due to: {refused.message}."
        ) from None
    return message

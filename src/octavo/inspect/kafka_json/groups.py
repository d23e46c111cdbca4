"""The JSON of the values of `__consumer_offsets`, in which Kafka's tool also decodes what consumers have sent."""

from __future__ import annotations

from typing import Any, Final

from octavo.errors import FormatError
from octavo.inspect.kafka_json.nodes import message_json
from octavo.inspect.kafka_json.refusals import read_as_kafka
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataValue
from octavo.schemas.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from octavo.schemas.versioned import CoordinatorValue

_NUMBER_SIZE: Final = 2
_CONSUMERS: Final = "consumer"  # the protocol type of groups whose members are consumers
_FIELDS: Final[tuple[tuple[str, type[CoordinatorValue]], ...]] = (
    ("subscription", ConsumerProtocolSubscription),
    ("assignment", ConsumerProtocolAssignment),
)


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
        if len(data) < _NUMBER_SIZE:
            return None
        version = int.from_bytes(data[:_NUMBER_SIZE], signed=True)
        message, _ = read_as_kafka(
            kind, data, _NUMBER_SIZE, version, versions=kind.VERSIONS, first_flexible=kind.FIRST_FLEXIBLE
        )
    except FormatError:
        return None
    return message_json(message, version)

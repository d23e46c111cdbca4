"""Decode the records of Kafka's internal topics: the JSON that Kafka's tool prints, also for remote storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from octavo.errors import FormatError
from octavo.inspect.kafka_json.nodes import message_json

if TYPE_CHECKING:
    from octavo.inspect.kafka_json.coordinator import ValueJson
    from octavo.schemas.framed import FramedRecord
    from octavo.schemas.versioned import CoordinatorKey


class Nodes(NamedTuple):
    """The JSON of a record's key and value, and why one of them has none."""

    key: Any
    value: Any
    error: str | None
    kind: str | None = None  # what Kafka calls such a record


Decode = Callable[[bytes | None, bytes | None], Nodes]  # takes key and value


def _coordinator(kinds: Mapping[int, type[CoordinatorKey[Any]]], value_json: ValueJson = message_json) -> Decode:
    from octavo.inspect.kafka_json.coordinator import key_node, value_node

    def decode(key: bytes | None, value: bytes | None) -> Nodes:
        node, name = None, None
        if key is None:
            return Nodes(None, None, "the record has no key, which would say what it is")
        try:
            kind, node = key_node(kinds, key)
            name = kind.__name__.removesuffix("Key")
            return Nodes(node, None if value is None else value_node(kind, value, value_json), None, name)
        except FormatError as error:
            return Nodes(node, None, error.rule, name)

    return decode


def _framed(kinds: Mapping[int, type[FramedRecord]]) -> Decode:
    from octavo.inspect.kafka_json.framed import framed_node

    def decode(key: bytes | None, value: bytes | None) -> Nodes:
        try:
            node = framed_node(kinds, value)
            return Nodes(None, node, None, node["type"])
        except FormatError as error:
            return Nodes(None, None, error.rule)

    return decode


def topic_decoder(topic: str) -> Decode:
    """Return the decoder for an internal topic, whose records are loaded now. Raises `KeyError` for another topic."""
    match topic:
        case "__consumer_offsets":
            from octavo.inspect.kafka_json.groups import group_value_json
            from octavo.schemas.consumer_offsets.serde import KINDS as GROUPS

            return _coordinator(GROUPS, group_value_json)
        case "__transaction_state":
            from octavo.schemas.transaction_state import KINDS as TRANSACTIONS

            return _coordinator(TRANSACTIONS)
        case "__share_group_state":
            from octavo.schemas.share_group_state import KINDS as SHARES

            return _coordinator(SHARES)
        case "__cluster_metadata":
            from octavo.schemas.metadata.serde import KINDS as METADATA

            return _framed(METADATA)
        case "__remote_log_metadata":
            from octavo.schemas.remote_log_metadata.serde import KINDS as REMOTE

            return _framed(REMOTE)
    raise KeyError(topic)

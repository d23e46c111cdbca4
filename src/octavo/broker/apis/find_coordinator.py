"""FindCoordinator (10): the broker that coordinates a group, a transactional id, or what share groups have read.

The internal topic is created when it is first needed; Kafka says COORDINATOR_NOT_AVAILABLE meanwhile, and clients ask
again. So does a member of a cluster. Brokers ask for the coordinators of share groups, and ask any broker: a member
tells them, though it is none. A broker that is alone has no share groups.
Versions: 1 has the type of the key, 3 is flexible, 4 has several keys, 6 knows share groups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.cluster_image import ListenerImage, Node
from octavo.broker.kafka_words import MALFORMED
from octavo.broker.member.elsewhere import CoordinatorsElsewhere
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import FIND_COORDINATOR
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode, InvalidInput
from octavo.log.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from octavo.records.layout import MAX_INT32
from octavo.records.uuid_text import read_uuid, write_uuid

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_BATCHES: Final = 4  # the first version with several keys
_SHARES: Final = 6  # the first version that knows share groups
_SHARE: Final = 2  # the type of their keys
_TOPICS: Final = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE, _SHARE: SHARE_GROUP_STATE}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_UNAVAILABLE: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE
_INVALID: Final = ErrorCode.INVALID_REQUEST
_MESSAGES: Final = {
    ErrorCode.NONE: "NONE",
    _UNAVAILABLE: "The coordinator is not available.",
    _INVALID: MALFORMED,
}


def find_coordinator(broker: Broker, request: Request) -> Parts | Later:
    """Answer a FindCoordinator request."""
    asked = request.read()
    keys = asked.coordinator_keys if request.version >= _BATCHES else (asked.key,)
    topic = _TOPICS.get(asked.key_type)
    coordinators = broker.coordinators
    if topic is None:
        return _answer(request, keys, [_INVALID] * len(keys), MALFORMED)
    wanted = keys if asked.key_type != _SHARE else [_share_key(key, request.version) for key in keys]
    if isinstance(coordinators, CoordinatorsElsewhere):
        if any(key is not None for key in wanted) and coordinators.is_topic_missing(topic):
            assert broker.controller is not None
            broker.controller.topics.create_internal(topic)
        listener = broker.listener_for(request.client)
        return _answer(request, keys, [_leader(coordinators, listener, topic, key) for key in wanted])
    if asked.key_type == _SHARE:
        return _answer(request, keys, [_INVALID if key is None else _UNAVAILABLE for key in wanted])
    here = broker.listener_for(request.client).nodes[broker.node_id]
    if not coordinators.is_topic_missing(topic):
        return _answer(request, keys, [here] * len(keys))
    kept = request.kept()

    def create() -> Parts:
        code = coordinators.create_topic(topic)
        return _answer(kept, keys, [here if code is ErrorCode.NONE else code] * len(keys))

    return Later(create)


def _share_key(key: str, version: int) -> str | None:
    """Return GROUP:TOPIC-ID:PARTITION as Kafka writes it; None if `key` is none."""
    if version < _SHARES or key.count(":") < 2:
        return None
    group, topic_id, partition = key.rsplit(":", 2)
    try:
        canonical_id = write_uuid(read_uuid(topic_id))
    except InvalidInput:
        return None
    if not group.strip() or _INTEGER.fullmatch(partition) is None or abs(int(partition)) > MAX_INT32:
        return None
    return f"{group}:{canonical_id}:{int(partition)}"


def _leader(
    coordinators: CoordinatorsElsewhere, listener: ListenerImage, topic: str, key: str | None
) -> Node | ErrorCode:
    """Return the broker that leads the partition for a key, if clients can reach it."""
    if key is None:
        return _INVALID
    leader = coordinators.leader_of(topic, key)
    node = None if leader is None else listener.nodes.get(leader)
    return _UNAVAILABLE if node is None or node.is_fenced else node


def _answer(request: Request, keys: Sequence[str], found: Sequence[Node | ErrorCode], message: str = "") -> Parts:
    coordinators = [_one(key, each, message) for key, each in zip(keys, found, strict=True)]
    if request.version >= _BATCHES:
        content: dict[str, Any] = {"throttle_time_ms": 0, "coordinators": coordinators}
    else:
        code = coordinators[0]["error_code"]
        content = {"throttle_time_ms": 0, **coordinators[0], "error_message": _MESSAGES[code]}
    return [write_response(FIND_COORDINATOR, request.version, content)]


def _one(key: str, found: Node | ErrorCode, message: str) -> dict[str, Any]:
    if isinstance(found, Node):
        place: dict[str, Any] = {"node_id": found.id, "host": found.host, "port": found.port}
        return {"key": key, **place, "error_code": ErrorCode.NONE, "error_message": message}
    return {"key": key, "node_id": -1, "host": "", "port": -1, "error_code": found, "error_message": message}

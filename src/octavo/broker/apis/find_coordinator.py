"""FindCoordinator (10): the broker that coordinates a group or a transactional id.

The internal topic is created when it is first needed; Kafka says COORDINATOR_NOT_AVAILABLE meanwhile, and clients ask
again. Versions: 1 has the type of the key, 3 is flexible, 4 has several keys, 6 knows share groups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.kafka_words import MALFORMED
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import FIND_COORDINATOR
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_BATCHES: Final = 4  # the first version with several keys
_SHARES: Final = 6  # the first version that knows share groups
_SHARE: Final = 2  # the type of their keys
_TOPICS: Final = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE}
_SHARE_KEY: Final = re.compile(r"[^:]*[^:\s][^:]*:[\w-]{22}:[0-9]{1,9}")
_MESSAGES: Final = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: MALFORMED,
}


def find_coordinator(broker: Broker, request: Request) -> Parts | Later:
    """Answer a FindCoordinator request."""
    asked = request.read()
    keys = asked.coordinator_keys if request.version >= _BATCHES else (asked.key,)
    topic = _TOPICS.get(asked.key_type)
    if topic is None:
        message = "" if asked.key_type == _SHARE else MALFORMED  # Kafka refuses other types before it looks at the keys
        return _answer(broker, request, keys, [_share_error(asked, request.version, key) for key in keys], message)
    if not broker.coordinators.is_topic_missing(topic):
        return _answer(broker, request, keys, [ErrorCode.NONE] * len(keys))
    kept = request.kept()
    return Later(lambda: _answer(broker, kept, keys, [broker.coordinators.create_topic(topic)] * len(keys)))


def _share_error(asked: Struct, version: int, key: str) -> ErrorCode:
    """Return the error for a key of another type. There are no share groups here."""
    is_valid = asked.key_type == _SHARE and version >= _SHARES and _SHARE_KEY.fullmatch(key)
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_valid else ErrorCode.INVALID_REQUEST


def _answer(
    broker: Broker, request: Request, keys: Sequence[str], codes: Sequence[ErrorCode], message: str = ""
) -> Parts:
    version = request.version
    found = [_one(broker, request, key, code, message) for key, code in zip(keys, codes, strict=True)]
    if version >= _BATCHES:
        content: dict[str, Any] = {"throttle_time_ms": 0, "coordinators": found}
    else:
        content = {"throttle_time_ms": 0, **found[0], "error_message": _MESSAGES[codes[0]]}
    return [write_response(FIND_COORDINATOR, version, content)]


def _one(broker: Broker, request: Request, key: str, code: ErrorCode, message: str) -> dict[str, Any]:
    place = {"node_id": -1, "host": "", "port": -1}
    if code is ErrorCode.NONE:
        node = next(each for each in broker.nodes_for(request.client) if each.id == broker.node_id)
        place = {"node_id": node.id, "host": node.host, "port": node.port}
    return {"key": key, **place, "error_code": code, "error_message": message}

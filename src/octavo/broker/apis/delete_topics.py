"""DeleteTopics (20): delete topics by name, or from version 6 on by id.

Versions: 4 is flexible, 5 has a message for each error, 6 names topics by name or by id.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.cluster_image import TopicImage
from octavo.broker.refused import check_time
from octavo.broker.request import Request
from octavo.broker.troubles import reason, storage_error
from octavo.broker.wire.api_keys import DELETE_TOPICS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, OctavoError, UnknownPartition

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_IDS: Final = 6
_HAS_OWN_ERROR: Final = 3  # the first version with an error of its own for brokers that delete nothing
_NO_ID: Final = bytes(16)


def delete_topics(broker: Broker, request: Request) -> Later:
    """Answer a DeleteTopics request."""
    asked, version = request.read(), request.version
    if version < _IDS:
        topics = [Struct(name=name, topic_id=_NO_ID) for name in asked.topic_names]
    else:
        topics = list(asked.topics)
    counts = Counter((each.name, each.topic_id) for each in topics)
    if 1 in counts.values():  # otherwise there is nothing to do
        check_time(asked.timeout_ms)

    def work() -> Parts:
        # A topic that is named twice is answered once; what names none, or one in two ways, each time.
        named = {
            (each.name, each.topic_id): each for each in topics if (each.name is None) != (each.topic_id == _NO_ID)
        }
        others = [each for each in topics if (each.name, each.topic_id) not in named]
        responses = [_named_both_ways(topic) for topic in _taken_out(broker, named)]
        responses += [_one(broker, version, each, is_twice=counts[key] > 1) for key, each in named.items()]
        responses += [_one(broker, version, each, is_twice=False) for each in others]
        return [write_response(DELETE_TOPICS, version, {"throttle_time_ms": 0, "responses": responses})]

    return Later(work)


def _taken_out(broker: Broker, named: dict[tuple[str | None, bytes], Struct]) -> list[TopicImage]:
    """Take topics out that are named by their name and by their id, and return them."""
    topics = broker.image.topics
    found = [topics[name] for name, _ in named if name is not None and name in topics]
    both = [topic for topic in found if (None, topic.id) in named]
    for topic in both:
        del named[topic.name, _NO_ID], named[None, topic.id]
    return both


def _named_both_ways(topic: TopicImage) -> dict[str, Any]:
    why = "The provided topic name maps to an ID that was already supplied."
    return _result(topic.name, topic.id, ErrorCode.INVALID_REQUEST, why)


def _one(broker: Broker, version: int, asked: Struct, *, is_twice: bool) -> dict[str, Any]:
    name, topic_id = asked.name, asked.topic_id
    if not broker.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= _HAS_OWN_ERROR else ErrorCode.INVALID_REQUEST
        return _result(name, topic_id, code, "Topic deletion is disabled.")
    if name is not None and topic_id != _NO_ID:
        return _result(name, topic_id, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if name is None and topic_id == _NO_ID:
        return _result(name, topic_id, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if is_twice:
        why = "Duplicate topic id." if name is None else "Duplicate topic name."
        return _result(name, topic_id, ErrorCode.INVALID_REQUEST, why)
    topic = broker.image.topic(topic_id if name is None else name)
    if topic is None:
        is_id = name is None
        code = ErrorCode.UNKNOWN_TOPIC_ID if is_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        why = "This server does not host this topic ID." if is_id else "This server does not host this topic-partition."
        return _result(name, topic_id, code, why)
    try:
        broker.delete_topic(topic.name)
    except UnknownPartition:
        return _result(name, topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    except (OctavoError, OSError) as error:
        if broker.image.topic(topic.id) is not None:
            broker.troubles.failed(f"topic {topic.name} could not be deleted", error)
            return _result(name, topic_id, storage_error(error), reason(error))
        broker.troubles.failed(f"topic {topic.name} was deleted, but not all that it leaves", error)
    return _result(topic.name, topic.id, 0, None)


def _result(name: str | None, topic_id: bytes, error: int, message: str | None) -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id, "error_code": error, "error_message": message}

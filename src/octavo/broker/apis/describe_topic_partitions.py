"""DescribeTopicPartitions (75): topics and their partitions, page by page, in the order of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Parts
from octavo.broker.apis.metadata import TOPIC_OPERATIONS, partition_content
from octavo.broker.cluster_image import ListenerImage, TopicImage
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DESCRIBE_TOPIC_PARTITIONS
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode
from octavo.log.names import is_internal_topic, topic_name_problem

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def describe_topic_partitions(broker: Broker, request: Request) -> Parts:
    """Answer a DescribeTopicPartitions request."""
    asked = request.read()
    topics = broker.image.topics
    listener = broker.listener_for(request.client)
    cursor = asked.cursor
    start = "" if cursor is None else cursor.topic_name
    wanted = sorted({topic.name for topic in asked.topics}) if asked.topics else None
    if cursor is None and wanted is not None and "" in wanted:  # Kafka takes it for the cursor's topic, and fails
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if cursor is not None and wanted is not None and start not in wanted:
        raise Refused(ErrorCode.INVALID_REQUEST, None)
    if cursor is not None and cursor.partition_index < 0:
        raise Refused(ErrorCode.INVALID_REQUEST, None)
    every = (name for name, _ in topics.items_from(start))  # so that a page does not cost what all pages do
    names = every if wanted is None else (name for name in wanted if name >= start)
    left = max(1, min(asked.response_partition_limit, broker.config.max_request_partition_size_limit))
    found: list[dict[str, Any]] = []
    next_cursor = None
    for name in names:
        if left == 0:  # the cursor may name a topic that does not exist
            next_cursor = {"topic_name": name, "partition_index": 0}
            break
        topic = topics.get(name)
        if topic is None:
            found.append(_missing(name))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        content, behind = _topic(topic, listener, first, left)
        found.append(content)
        left -= len(content["partitions"])
        if behind < len(topic.partitions):
            next_cursor = {"topic_name": name, "partition_index": behind}
            break
    return _answer(request, found, next_cursor)


def _answer(request: Request, topics: list[dict[str, Any]], next_cursor: dict[str, Any] | None) -> Parts:
    content = {"throttle_time_ms": 0, "topics": topics, "next_cursor": next_cursor}
    return [write_response(DESCRIBE_TOPIC_PARTITIONS, request.version, content)]


def _topic(topic: TopicImage, listener: ListenerImage, first: int, left: int) -> tuple[dict[str, Any], int]:
    """Return a topic with at most `left` of its partitions, from `first` on, and the first that is left out."""
    chosen = list(topic.partitions.values())[first : first + left]
    return {
        "error_code": 0,
        "name": topic.name,
        "topic_id": topic.id,
        "is_internal": topic.is_internal,
        "partitions": [
            partition_content(each, listener)
            | {
                "eligible_leader_replicas": each.eligible_leader_replicas,
                "last_known_elr": each.last_known_elr,
            }
            for each in chosen
        ],
        "topic_authorized_operations": TOPIC_OPERATIONS,
    }, first + len(chosen)


def _missing(name: str) -> dict[str, Any]:
    is_bad = topic_name_problem(name) is not None
    return {
        "error_code": ErrorCode.INVALID_TOPIC_EXCEPTION if is_bad else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "name": name,
        "topic_id": bytes(16),
        "is_internal": is_internal_topic(name),
        "partitions": [],
        "topic_authorized_operations": TOPIC_OPERATIONS,
    }

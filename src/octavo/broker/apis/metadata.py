"""Metadata (3): the brokers, and topics with their partitions and leaders.

All topics are asked for by null, in version 0 by an empty list. Versions: 4 says whether a missing topic may be
created, 9 is flexible, 10 has topic ids in answers, 12 in requests. Whoever asks for a topic that is created because of
that is told UNKNOWN_TOPIC_OR_PARTITION, and asks again.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.cluster_image import (
    NO_LEADER,
    ClusterImage,
    ListenerImage,
    PartitionImage,
    TopicImage,
)
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import METADATA
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode
from octavo.log.names import is_internal_topic, topic_name_problem

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

NOT_ASKED: Final = -0x80000000
TOPIC_OPERATIONS: Final = 3576  # everything that can be done with a topic, as bits
CLUSTER_OPERATIONS: Final = 8096
_NO_ID: Final = bytes(16)
_MANY: Final = 1000  # topics and partitions, which take some milliseconds
_OFFLINE: Final = 1  # the first version whose clients know that brokers of replicas may be missing
_LISTENERS: Final = 6  # the first version whose clients know LISTENER_NOT_FOUND
_IDS: Final = 12  # the first version that may ask for topics by their ids


def metadata(broker: Broker, request: Request) -> Parts | Later:
    """Answer a Metadata request. Another thread does it if it is about many topics."""
    image = broker.image
    known = broker.answers.find(image, request)
    if known is not None:
        return [known]
    asked = request.read()
    if request.version < _IDS and any(each.topic_id != _NO_ID or each.name is None for each in asked.topics or ()):
        raise Refused(ErrorCode.INVALID_REQUEST, None)
    found: list[tuple[TopicImage | Struct, int]]
    if asked.topics is None or (request.version == 0 and not asked.topics):
        found = [(topic, 0) for topic in image.topics.values()]
    else:
        missing = _to_create(broker, asked)
        if missing and broker.controller is not None:
            broker.controller.topics.create(missing, request)
        elif missing:
            broker.auto_creation.create(missing)
        found = _found(image, request.version, asked.topics)
    if sum(1 + len(topic.partitions) for topic, _ in found if isinstance(topic, TopicImage)) < _MANY:
        return _kept_answer(broker, request, asked, found, image)
    request = request.kept()
    return Later(lambda: _kept_answer(broker, request, asked, found, image), Work.QUERY, request)


def _kept_answer(
    broker: Broker, request: Request, asked: Struct, found: list[tuple[TopicImage | Struct, int]], image: ClusterImage
) -> Parts:
    """Return the answer, and keep it for others who ask the same."""
    known = broker.answers.find(image, request)  # somebody may have asked it since
    if known is not None:
        return [known]
    answer = _answer(broker, request, asked, found, image)
    if not any(error for _, error in found):  # a topic that is missing may be created for the next who asks
        broker.answers.keep(image, request, answer)
    return answer


def _to_create(broker: Broker, asked: Struct) -> list[str]:
    """Return the names of topics to create."""
    if not (broker.config.auto_create_topics_enable and asked.allow_auto_topic_creation):
        return []
    if any(topic.topic_id != _NO_ID for topic in asked.topics):
        return []
    names = {topic.name for topic in asked.topics if topic.name is not None}
    return sorted(name for name in names if name not in broker.image.topics and topic_name_problem(name) is None)


def _found(image: ClusterImage, version: int, wanted: Sequence[Struct]) -> list[tuple[TopicImage | Struct, int]]:
    """Return each topic, or what was asked for if there is none, with an error code."""
    by_id = any(each.topic_id != _NO_ID for each in wanted)
    found: list[tuple[TopicImage | Struct, int]] = []
    seen: set[str | bytes] = set()
    if not by_id and any(each.name is None for each in wanted):  # Kafka does not expect that
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    for each in wanted:
        key = each.topic_id if by_id else each.name
        if key in seen or (by_id and key == _NO_ID):
            continue
        seen.add(key)
        topic = image.topic(key)
        if topic is not None:
            found.append((topic, 0))
        elif by_id:
            found.append((Struct(name=None, topic_id=key), ErrorCode.UNKNOWN_TOPIC_ID))
        elif topic_name_problem(key) is not None:
            found.append((each, ErrorCode.INVALID_TOPIC_EXCEPTION))
        else:
            found.append((each, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return found


def _answer(
    broker: Broker,
    request: Request,
    asked: Struct,
    topics: Iterable[tuple[TopicImage | Struct, int]],
    image: ClusterImage,
) -> Parts:
    listener = broker.listener_for(request.client)
    content = {
        "throttle_time_ms": 0,
        "brokers": [
            {"node_id": node.id, "host": node.host, "port": node.port, "rack": node.rack} for node in listener.alive
        ],
        "cluster_id": image.cluster_id,
        "controller_id": controller_id(image),
        "topics": [
            _topic(topic, asked, listener, request.version, image)
            if isinstance(topic, TopicImage)
            else _missing(topic, error, asked)
            for topic, error in topics
        ],
        "cluster_authorized_operations": (
            CLUSTER_OPERATIONS if getattr(asked, "include_cluster_authorized_operations", False) else NOT_ASKED
        ),
        "error_code": 0,
    }
    return [write_response(METADATA, request.version, content)]


def controller_id(image: ClusterImage) -> int:
    """Return whom clients may take for the controller: any broker, because each knows whom to ask."""
    alive = [node.id for node in image.nodes.values() if not node.is_fenced]
    return random.choice(alive) if alive else NO_LEADER


def _topic(
    topic: TopicImage, asked: Struct, listener: ListenerImage, version: int, image: ClusterImage
) -> dict[str, Any]:
    if version < _OFFLINE:
        partitions = [_old_partition(each, listener) for each in topic.partitions.values()]
    else:
        partitions = [_partition(each, listener, version, image) for each in topic.partitions.values()]
    return {
        "error_code": 0,
        "name": topic.name,
        "topic_id": topic.id,
        "is_internal": topic.is_internal,
        "partitions": partitions,
        "topic_authorized_operations": (TOPIC_OPERATIONS if asked.include_topic_authorized_operations else NOT_ASKED),
    }


def partition_content(each: PartitionImage, listener: ListenerImage) -> dict[str, Any]:
    """Return a partition as Metadata and DescribeTopicPartitions have it."""
    return {
        "error_code": 0,
        "partition_index": each.partition,
        "leader_id": each.leader if each.leader in listener.nodes else NO_LEADER,
        "leader_epoch": each.leader_epoch,
        "replica_nodes": each.replicas,
        "isr_nodes": each.isr,
        "offline_replicas": listener.offline_replicas(each),
    }


def _partition(each: PartitionImage, listener: ListenerImage, version: int, image: ClusterImage) -> dict[str, Any]:
    content = partition_content(each, listener)
    if content["leader_id"] == NO_LEADER:
        is_elsewhere = version >= _LISTENERS and each.leader in image.nodes
        content["error_code"] = ErrorCode.LISTENER_NOT_FOUND if is_elsewhere else ErrorCode.LEADER_NOT_AVAILABLE
    return content


def _old_partition(each: PartitionImage, listener: ListenerImage) -> dict[str, Any]:
    """Return a partition for version 0, whose clients do not expect replicas that are not among the brokers."""
    content = partition_content(each, listener)
    content["replica_nodes"] = [node for node in each.replicas if node in listener.online]
    content["isr_nodes"] = [node for node in each.isr if node in listener.online]
    if content["leader_id"] == NO_LEADER:
        content["error_code"] = ErrorCode.LEADER_NOT_AVAILABLE
    elif len(content["replica_nodes"]) < len(each.replicas) or len(content["isr_nodes"]) < len(each.isr):
        content["error_code"] = ErrorCode.REPLICA_NOT_AVAILABLE
    return content


def _missing(wanted: Struct, error: int, asked: Struct) -> dict[str, Any]:
    tells_operations = asked.include_topic_authorized_operations and error != ErrorCode.UNKNOWN_TOPIC_ID
    return {
        "error_code": error,
        "name": wanted.name,
        "topic_id": wanted.topic_id,
        "is_internal": is_internal_topic(wanted.name),
        "partitions": [],
        "topic_authorized_operations": TOPIC_OPERATIONS if tells_operations else NOT_ASKED,
    }

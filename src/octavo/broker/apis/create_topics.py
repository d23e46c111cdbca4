"""CreateTopics (19): create topics, or check whether they could be created.

Versions: 5 is flexible and answers the configuration that the topic has, 7 its id.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.cluster_image import ClusterImage, can_collide, collision_key
from octavo.broker.kafka_words import name_problem
from octavo.broker.refused import Refused, check_time
from octavo.broker.request import Request
from octavo.broker.topic_settings import check_topic_config, topic_settings
from octavo.broker.troubles import reason, storage_error
from octavo.broker.wire.api_keys import CREATE_TOPICS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, OctavoError, TopicExists
from octavo.log.names import METADATA_TOPIC

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_DEFAULT: Final = -1
_MAX_PARTITIONS: Final = 10_000  # of all topics in one request


def create_topics(broker: Broker, request: Request) -> Later:
    """Answer a CreateTopics request."""
    asked, version = request.read(), request.version
    check_time(asked.timeout_ms)

    def work() -> Parts:
        counts = Counter(topic.name for topic in asked.topics)
        several = {each.name: each for each in asked.topics}.values()
        wanted = sum(_partitions(broker, each) for each in several if counts[each.name] == 1)
        if wanted > _MAX_PARTITIONS:
            raise Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        before = broker.image  # names collide with these alone, as in Kafka
        topics = []
        for each in several:
            try:
                if counts[each.name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                topics.append(_one(broker, each, before, only_check=asked.validate_only))
            except Refused as refused:
                topics.append(_failed(each, refused))
        return [write_response(CREATE_TOPICS, version, {"throttle_time_ms": 0, "topics": topics})]

    return Later(work)


def _partitions(broker: Broker, asked: Struct) -> int:
    if asked.assignments:
        return len(asked.assignments)
    return broker.config.num_partitions if asked.num_partitions == _DEFAULT else max(0, asked.num_partitions)


def _one(broker: Broker, asked: Struct, before: ClusterImage, *, only_check: bool) -> dict[str, Any]:
    name: str = asked.name
    _check_name(broker, name, before)
    config = _config(asked)
    _check_partitions(broker, asked)
    count = _partitions(broker, asked)
    topic_id = uuid.uuid4().bytes
    if not only_check:
        try:
            topic_id = broker.create_topic(name, count, config).id
        except TopicExists:
            raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.") from None
        except (OctavoError, OSError) as error:
            broker.troubles.failed("topics cannot be created", error)
            why = f"Topic '{name}' could not be created: {reason(error)}"
            raise Refused(storage_error(error), why) from None
    return {
        "name": name,
        "topic_id": topic_id,
        "error_code": 0,
        "error_message": None,
        "num_partitions": count,
        "replication_factor": 1,
        "configs": [
            {
                "name": each.name,
                "value": config.get(each.name, each.value),  # as it was given
                "read_only": False,
                "config_source": each.source,
                "is_sensitive": False,
            }
            for each in sorted(topic_settings(config, broker.settings))
        ],
    }


def _check_name(broker: Broker, name: str, before: ClusterImage) -> None:
    problem = name_problem(name)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name in broker.image.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if name == METADATA_TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if can_collide(name):
        alike = before.alike.get(collision_key(name))
        if alike is not None:
            why = f"Topic '{name}' collides with existing topic: {alike[0]}"
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, why)


def _config(asked: Struct) -> dict[str, str]:
    nulls = dict.fromkeys(each.name for each in asked.configs if each.value is None)
    if nulls:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    config = {each.name: each.value for each in asked.configs}
    check_topic_config(config)
    return config


def _check_partitions(broker: Broker, asked: Struct) -> None:
    count, factor = asked.num_partitions, asked.replication_factor
    if asked.assignments:
        _check_assignments(broker, asked)
        return
    if factor != _DEFAULT and factor <= 0:
        why = "Replication factor must be larger than 0, or -1 to use the default value."
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, why)
    if count != _DEFAULT and count <= 0:
        why = "Number of partitions was set to an invalid non-positive value."
        raise Refused(ErrorCode.INVALID_PARTITIONS, why)
    nodes = len(broker.image.nodes)
    if factor > nodes:
        why = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {nodes} broker(s) are registered or some brokers have all their log directories "
            f"cordoned."
        )
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, why)


def _check_assignments(broker: Broker, asked: Struct) -> None:
    beside = "A manual partition assignment was specified, but"
    if asked.replication_factor != _DEFAULT:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{beside} replication factor was not set to -1.")
    if asked.num_partitions != _DEFAULT:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{beside} numPartitions was not set to -1.")
    numbers = [each.partition_index for each in asked.assignments]
    if len(set(numbers)) < len(numbers):
        twice = next(number for number, count in Counter(numbers).items() if count > 1)
        why = f"Found multiple manual partition assignments for partition {twice}"
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
    for each in asked.assignments:
        problem = broker.assignment_problem(each.broker_ids)
        if problem is not None:
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    if sorted(numbers) != list(range(len(numbers))):
        why = "partitions should be a consecutive 0-based integer sequence"
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def _failed(asked: Struct, refused: Refused) -> dict[str, Any]:
    return {
        "name": asked.name,
        "topic_id": bytes(16),
        "error_code": refused.code,
        "error_message": refused.message,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }

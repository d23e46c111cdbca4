"""CreateTopics (19): create topics, or check whether they could be created.

Versions: 5 is flexible and answers the configuration that the topic has, 7 its id.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import CREATE_TOPICS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, InvalidConfig, InvalidInput, OctavoError, TopicExists
from octavo.log.names import topic_name_problem

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_DEFAULT: Final = -1


def create_topics(broker: Broker, request: Request) -> Later:
    """Answer a CreateTopics request."""
    asked, version = request.read(), request.version

    def work() -> Parts:
        counts = Counter(topic.name for topic in asked.topics)
        topics = [_one(broker, counts, each) for each in {each.name: each for each in asked.topics}.values()]
        return [write_response(CREATE_TOPICS, version, {"throttle_time_ms": 0, "topics": topics})]

    return Later(work)


def _one(broker: Broker, counts: Counter[str], asked: Struct) -> dict[str, Any]:
    if counts[asked.name] > 1:
        return _failed(asked, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    problem = topic_name_problem(asked.name)
    if problem is not None:
        return _failed(asked, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    partitions = broker.config.num_partitions if asked.num_partitions == _DEFAULT else asked.num_partitions
    try:
        made = broker.create_topic(asked.name, partitions, {each.name: each.value for each in asked.configs})
    except TopicExists:
        return _failed(asked, ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{asked.name}' already exists.")
    except InvalidConfig as error:
        return _failed(asked, ErrorCode.INVALID_CONFIG, str(error))
    except InvalidInput as error:
        return _failed(asked, ErrorCode.INVALID_PARTITIONS, str(error))
    except (OctavoError, OSError) as error:
        return _failed(asked, ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    return {
        "name": asked.name,
        "topic_id": made.id,
        "error_code": 0,
        "error_message": None,
        "num_partitions": len(made.partitions),
        "replication_factor": 1,
        "configs": [],
    }


def _failed(asked: Struct, error: int, message: str) -> dict[str, Any]:
    return {
        "name": asked.name,
        "error_code": error,
        "error_message": message,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }

"""ElectLeaders (43): on one node every partition has the only leader that it can have.

Versions: 1 asks for preferred or unclean elections, 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Parts
from octavo.broker.refused import check_time
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import ELECT_LEADERS
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_ELECTIONS: Final = (0, 1)  # preferred, unclean


def elect_leaders(broker: Broker, request: Request) -> Parts:
    """Answer an ElectLeaders request."""
    asked = request.read()
    names_none = asked.topic_partitions is not None and not asked.topic_partitions
    if asked.election_type in _ELECTIONS and not names_none:
        check_time(asked.timeout_ms)
    error = 0 if asked.election_type in _ELECTIONS or names_none else ErrorCode.INVALID_REQUEST
    content: dict[str, Any] = {"throttle_time_ms": 0, "error_code": error, "replica_election_results": []}
    if asked.topic_partitions is None and error:
        pass
    elif asked.topic_partitions is None:
        content["replica_election_results"] = [{"topic": name, "partition_result": []} for name in broker.image.topics]
    else:
        content["replica_election_results"] = [
            {
                "topic": topic.topic,
                "partition_result": [_one(broker, asked.election_type, topic.topic, each) for each in topic.partitions],
            }
            for topic in asked.topic_partitions
        ]
    return [write_response(ELECT_LEADERS, request.version, content)]


def _one(broker: Broker, election: int, name: str, number: int) -> dict[str, Any]:
    topic = broker.image.topics.get(name)
    if election not in _ELECTIONS:
        error, message = ErrorCode.INVALID_REQUEST, f"Unknown election type {election}"
    elif topic is None:
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    elif number not in topic.partitions:
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}"
    else:
        error, message = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    return {"partition_id": number, "error_code": error, "error_message": message}

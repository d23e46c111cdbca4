"""AlterPartitionReassignments (45), ListPartitionReassignments (46): there is no other node to move partitions to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Parts
from octavo.broker.refused import check_time
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def alter_partition_reassignments(broker: Broker, request: Request) -> Parts:
    """Answer an AlterPartitionReassignments request."""
    asked = request.read()
    if asked.topics:
        check_time(asked.timeout_ms)
    responses = [
        {"name": topic.name, "partitions": [_one(broker, topic.name, each) for each in topic.partitions]}
        for topic in asked.topics
    ]
    content: dict[str, Any] = {"throttle_time_ms": 0, "error_code": 0, "error_message": None, "responses": responses}
    if not asked.topics:
        content["error_message"] = ""  # as in Kafka
    content["allow_replication_factor_change"] = asked.allow_replication_factor_change or not asked.topics
    return [write_response(ALTER_PARTITION_REASSIGNMENTS, request.version, content)]


def _one(broker: Broker, name: str, asked: Struct) -> dict[str, Any]:
    number = asked.partition_index
    content: dict[str, Any] = {"partition_index": number, "error_code": 0, "error_message": None}
    topic = broker.image.topics.get(name)
    if topic is None or number not in topic.partitions:
        why = f"Unable to find a topic named {name}." if topic is None else f"Unable to find partition {name}:{number}."
        return content | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "error_message": why}
    if asked.replicas is None:
        return content | {"error_code": ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "error_message": None}
    problem = broker.assignment_problem(asked.replicas)
    if problem is not None:
        return content | {"error_code": ErrorCode.INVALID_REPLICA_ASSIGNMENT, "error_message": problem}
    return content


def list_partition_reassignments(broker: Broker, request: Request) -> Parts:
    """Answer a ListPartitionReassignments request: none is under way."""
    request.read()
    content: dict[str, Any] = {"throttle_time_ms": 0, "error_code": 0, "error_message": None, "topics": []}
    return [write_response(LIST_PARTITION_REASSIGNMENTS, request.version, content)]

"""DescribeProducers (61): the idempotent producers of partitions, and the transactions that they have open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.kafka_words import name_problem
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DESCRIBE_PRODUCERS
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def describe_producers(broker: Broker, request: Request) -> Later:
    """Answer a DescribeProducers request, in another thread: it may have to wait for those who change the logs."""
    asked, version = request.read(), request.version

    def work() -> Parts:
        topics = [
            {"name": topic.name, "partitions": [_one(broker, topic.name, number) for number in topic.partition_indexes]}
            for topic in asked.topics
        ]
        return [write_response(DESCRIBE_PRODUCERS, version, {"throttle_time_ms": 0, "topics": topics})]

    return Later(work, Work.QUERY)


def _one(broker: Broker, name: str, number: int) -> dict[str, Any]:
    content: dict[str, Any] = {
        "partition_index": number,
        "error_code": 0,
        "error_message": None,
        "active_producers": [],
    }
    problem = name_problem(name)
    if problem is not None:
        return content | {"error_code": ErrorCode.INVALID_TOPIC_EXCEPTION, "error_message": problem}
    log = broker.replica_log(name, number)
    if isinstance(log, int):
        why = None if name in broker.image.topics else "This server does not host this topic-partition."
        return content | {"error_code": log, "error_message": why}
    with log.lock:
        entries = list(log.producers.entries.items())
    content["active_producers"] = [
        {
            "producer_id": producer_id,
            "producer_epoch": entry.epoch,
            "last_sequence": entry.last_sequence,
            "last_timestamp": entry.last_timestamp_ms,
            "coordinator_epoch": entry.coordinator_epoch,
            "current_txn_start_offset": entry.txn_first_offset,
        }
        for producer_id, entry in entries
    ]
    return content

"""DescribeQuorum (55): who keeps the metadata log. One node is its only voter, and leads it.

Versions: 1 tells when each voter has fetched last, 2 the ids of their directories and their listeners. There is no
listener for controllers here.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DESCRIBE_QUORUM
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode
from octavo.log.names import METADATA_TOPIC

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_HAS_MESSAGES: Final = 2  # the first version with error messages
_NO_UUID: Final = bytes(16)


def describe_quorum(broker: Broker, request: Request) -> Parts:
    """Answer a DescribeQuorum request."""
    topics, version = request.read().topics, request.version
    is_valid = (
        len(topics) == 1
        and topics[0].topic_name == METADATA_TOPIC
        and [each.partition_index for each in topics[0].partitions] == [0]
    )
    message = "" if version >= _HAS_MESSAGES else None
    content: dict[str, Any] = {"error_code": 0, "error_message": message, "nodes": []}
    if is_valid:
        content["topics"] = [{"topic_name": METADATA_TOPIC, "partitions": [_quorum(broker, message)]}]
        content["nodes"] = [{"node_id": broker.node_id, "listeners": []}]
    else:  # Kafka answers for none of them then
        content["topics"] = [
            {"topic_name": topic.topic_name, "partitions": [_unknown(each, version) for each in topic.partitions]}
            for topic in topics
        ]
    return [write_response(DESCRIBE_QUORUM, version, content)]


def _quorum(broker: Broker, message: str | None) -> dict[str, Any]:
    epoch, end = broker.directory.metadata_end
    voters = {voter.id: voter.directory_id.bytes for voter in broker.directory.cluster.voter_details}
    now_ms = time.time_ns() // 1_000_000
    return {
        "partition_index": 0,
        "error_code": 0,
        "error_message": message,
        "leader_id": broker.node_id,
        "leader_epoch": epoch,
        "high_watermark": end,
        "current_voters": [
            {
                "replica_id": broker.node_id,
                "replica_directory_id": voters.get(broker.node_id, _NO_UUID),
                "log_end_offset": end,
                "last_fetch_timestamp": now_ms,
                "last_caught_up_timestamp": now_ms,
            }
        ],
        "observers": [],
    }


def _unknown(asked: Struct, version: int) -> dict[str, Any]:
    return {
        "partition_index": asked.partition_index,
        "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "error_message": "This server does not host this topic-partition." if version >= _HAS_MESSAGES else None,
        "leader_id": 0,
        "leader_epoch": 0,
        "high_watermark": 0,
        "current_voters": [],
        "observers": [],
    }

"""OffsetForLeaderEpoch (23): where a leader epoch ended, by which clients and followers find out whether logs diverged.

Version 4 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Parts
from octavo.broker.leader_epochs import epoch_end
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import OFFSET_FOR_LEADER_EPOCH
from octavo.broker.wire.messages import Struct, write_response

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def offset_for_leader_epoch(broker: Broker, request: Request) -> Parts:
    """Answer an OffsetForLeaderEpoch request."""
    asked = request.read()
    topics = [
        {"topic": topic.topic, "partitions": [_one(broker, topic.topic, each) for each in topic.partitions]}
        for topic in asked.topics
    ]
    return [write_response(OFFSET_FOR_LEADER_EPOCH, request.version, {"throttle_time_ms": 0, "topics": topics})]


def _one(broker: Broker, name: str, asked: Struct) -> dict[str, Any]:
    found = broker.led_log(name, asked.partition, asked.current_leader_epoch)
    if isinstance(found, int):
        return {"error_code": found, "partition": asked.partition, "leader_epoch": -1, "end_offset": -1}
    epoch, end_offset = epoch_end(found.log, asked.leader_epoch)
    return {"error_code": 0, "partition": asked.partition, "leader_epoch": epoch, "end_offset": end_offset}

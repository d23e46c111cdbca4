"""ConsumerGroupHeartbeat (68): a member of a consumer group joins, is alive, or leaves (KIP-848).

Versions: 1 has regular expressions, and members choose their ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from octavo.broker.answers import Answer, Parts
from octavo.broker.at_once import leave_long
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import CONSUMER_GROUP_HEARTBEAT
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.consumer.requests import ConsumerHeartbeatAnswer, ConsumerHeartbeatRequest
from octavo.coordinator.shard import Ticket
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.coordinator.groups.group_shard import GroupShard

FEATURE: Final = "group.version"  # from level 1 on, a cluster has consumer groups


def consumer_group_heartbeat(broker: Broker, request: Request) -> Answer:
    """Answer a ConsumerGroupHeartbeat request."""
    asked, version = request.read(), request.version
    alive = ConsumerHeartbeatRequest(
        asked.group_id,
        asked.member_id,
        asked.member_epoch,
        asked.instance_id,
        asked.rack_id,
        asked.rebalance_timeout_ms,
        asked.subscribed_topic_names,
        asked.subscribed_topic_regex,
        asked.server_assignor,
        _partitions(asked.topic_partitions),
        request.header.client_id or "",
        f"/{request.client.peer}",
        version,
    )

    def write(answer: ConsumerHeartbeatAnswer) -> Parts:
        return [write_response(CONSUMER_GROUP_HEARTBEAT, version, _content(answer))]

    if broker.image.features.get(FEATURE, 0) < 1:
        return write(ConsumerHeartbeatAnswer(ErrorCode.UNSUPPORTED_VERSION))

    def refuse(code: ErrorCode) -> ConsumerHeartbeatAnswer:
        """As in Kafka, what is wrong with the request matters more than that there is no coordinator."""
        from octavo.coordinator.groups.consumer.heartbeat import heartbeat_problem

        return heartbeat_problem(broker.coordinators.group_config, alive) or ConsumerHeartbeatAnswer(code)

    def beat(shard: GroupShard, ticket: Ticket) -> None:
        leave_long(alive.subscribed_topic_regex)
        shard.answer(ticket, shard.consumer.heartbeat(alive))

    return broker.coordinators.run(alive.group_id, beat, write, refuse)


def _partitions(topics: Any) -> dict[UUID, set[int]] | None:
    if topics is None:
        return None
    found: dict[UUID, set[int]] = {}
    for each in topics:
        found.setdefault(UUID(bytes=bytes(each.topic_id)), set()).update(each.partitions)
    return found


def _content(answer: ConsumerHeartbeatAnswer) -> dict[str, Any]:
    assignment = None
    if answer.assignment is not None:
        partitions = [
            {"topic_id": topic_id.bytes, "partitions": numbers} for topic_id, numbers in answer.assignment.items()
        ]
        assignment = {"topic_partitions": partitions}
    return {
        "throttle_time_ms": 0,
        "error_code": answer.error_code,
        "error_message": answer.error_message,
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval_ms": answer.heartbeat_interval_ms,
        "assignment": assignment,
    }

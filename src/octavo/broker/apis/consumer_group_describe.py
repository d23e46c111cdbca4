"""ConsumerGroupDescribe (69): consumer groups with their members. Version 1 tells which protocol a member uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Later, Parts
from octavo.broker.apis.consumer_group_heartbeat import FEATURE
from octavo.broker.apis.describe_groups import GROUP_OPERATIONS
from octavo.broker.apis.metadata import NOT_ASKED
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import CONSUMER_GROUP_DESCRIBE
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.consumer.requests import DescribedConsumerGroup, DescribedMember, DescribedPartitions
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.coordinator.groups.group_shard import GroupShard


def consumer_group_describe(broker: Broker, request: Request) -> Parts | Later:
    """Answer a ConsumerGroupDescribe request."""
    asked, version = request.read(), request.version

    def describe(group_id: str) -> Callable[[GroupShard], DescribedConsumerGroup]:
        if not group_id:
            return lambda shard: refuse(group_id, ErrorCode.INVALID_GROUP_ID)
        return lambda shard: shard.consumer.describe(group_id)

    def refuse(group_id: str, code: ErrorCode) -> DescribedConsumerGroup:
        return DescribedConsumerGroup(code, None, group_id)

    def write(groups: list[DescribedConsumerGroup]) -> Parts:
        contents = [_group(each, tells_operations=asked.include_authorized_operations) for each in groups]
        return [write_response(CONSUMER_GROUP_DESCRIBE, version, {"throttle_time_ms": 0, "groups": contents})]

    if broker.image.features.get(FEATURE, 0) < 1:
        return write([refuse(each, ErrorCode.UNSUPPORTED_VERSION) for each in asked.group_ids])
    return broker.coordinators.run_each([(each, describe(each)) for each in asked.group_ids], refuse, write)


def _group(group: DescribedConsumerGroup, *, tells_operations: bool) -> dict[str, Any]:
    may_tell = tells_operations and group.error_code is ErrorCode.NONE
    return {
        **group._asdict(),
        "members": [_member(each) for each in group.members],
        "authorized_operations": GROUP_OPERATIONS if may_tell else NOT_ASKED,
    }


def _member(member: DescribedMember) -> dict[str, Any]:
    return {
        **member._asdict(),
        "assignment": _assignment(member.assignment),
        "target_assignment": _assignment(member.target_assignment),
    }


def _assignment(partitions: Sequence[DescribedPartitions]) -> dict[str, Any]:
    return {"topic_partitions": [{**each._asdict(), "topic_id": each.topic_id.bytes} for each in partitions]}

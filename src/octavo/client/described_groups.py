"""Groups and their members, as coordinators describe them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from octavo.errors import ErrorCode, FormatError, RequestFailed
from octavo.log.names import TopicPartition

CLASSIC: Final = "Classic"
CONSUMER: Final = "Consumer"


class Coordinator(NamedTuple):
    """The broker that is the coordinator of a group."""

    node: int
    host: str
    port: int


class GroupMember(NamedTuple):
    """A member of a group. What only the consumer protocol knows is None in a classic group."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[TopicPartition]
    target: list[TopicPartition] | None
    epoch: int | None
    is_upgraded: bool | None  # whether it speaks the consumer protocol; None if that is not told


class DescribedGroup(NamedTuple):
    """A group with its members."""

    id: str
    type: str
    state: str
    assignor: str
    coordinator: Coordinator
    members: list[GroupMember]
    epoch: int | None
    assignment_epoch: int | None


def of_consumer_protocol(told: Any, coordinator: Coordinator) -> DescribedGroup:
    """Return a group as ConsumerGroupDescribe tells of it."""
    members = [
        GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            _partitions(each.assignment.topic_partitions),
            _partitions(each.target_assignment.topic_partitions),
            each.member_epoch,
            {0: False, 1: True}.get(getattr(each, "member_type", -1)),
        )
        for each in told.members
    ]
    return DescribedGroup(
        told.group_id,
        CONSUMER,
        told.group_state,
        told.assignor_name,
        coordinator,
        members,
        told.group_epoch,
        told.assignment_epoch,
    )


def of_classic_protocol(told: Any, coordinator: Coordinator) -> DescribedGroup:
    """Return a group as DescribeGroups tells of it. Raises `RequestFailed` if an assignment is malformed."""
    members = [
        GroupMember(
            each.member_id,
            getattr(each, "group_instance_id", None),
            each.client_id,
            each.client_host,
            _assigned(told.group_id, each),
            None,
            None,
            None,
        )
        for each in told.members
    ]
    return DescribedGroup(
        told.group_id, CLASSIC, told.group_state, told.protocol_data, coordinator, members, None, None
    )


def _partitions(topics: Collection[Any]) -> list[TopicPartition]:
    return sorted(TopicPartition(topic.topic_name, number) for topic in topics for number in topic.partitions)


def _assigned(group: str, member: Any) -> list[TopicPartition]:
    from octavo.coordinator.groups.consumer.protocol import read_assignment

    if not member.member_assignment:
        return []
    try:
        assigned = read_assignment(bytes(member.member_assignment)).assigned_partitions
    except FormatError as error:
        raise RequestFailed(
            ErrorCode.CORRUPT_MESSAGE, f"the assignment of member {member.member_id} of group {group}: {error}"
        ) from None
    return sorted({TopicPartition(topic.topic, number) for topic in assigned for number in topic.partitions})

"""What administrators are told of consumer groups: `describe`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from octavo.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember
from octavo.coordinator.groups.consumer.requests import DescribedConsumerGroup, DescribedMember, DescribedPartitions
from octavo.errors import ErrorCode


def describe(group: ConsumerGroup, default_assignor: str) -> DescribedConsumerGroup:
    """Tell of a group and its members."""
    return DescribedConsumerGroup(
        ErrorCode.NONE,
        None,
        group.group_id,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        group.preferred_assignor() or default_assignor,
        [_member(group, member) for _, member in sorted(group.members.items())],
    )


def _member(group: ConsumerGroup, member: ConsumerMember) -> DescribedMember:
    held: dict[UUID, set[int]] = {}
    for topic, partition in member.held:
        held.setdefault(topic, set()).add(partition)
    return DescribedMember(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        sorted(member.subscribed_topic_names),
        member.subscribed_topic_regex,
        _partitions(group, held),
        _partitions(group, group.targets.get(member.member_id, {})),
        int(member.classic is None),
    )


def _partitions(group: ConsumerGroup, held: Mapping[UUID, Collection[int]]) -> list[DescribedPartitions]:
    """Return partitions with the names of their topics; topics that are gone are left out."""
    return [
        DescribedPartitions(topic_id, topic.name, sorted(held[topic_id]))
        for topic_id in sorted(held)
        if (topic := group.topics.by_id(topic_id)) is not None
    ]

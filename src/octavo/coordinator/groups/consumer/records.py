"""Records of consumer groups: what they say of members, and the values that say it."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from octavo.coordinator.groups.consumer.assignors.assignor import Assignment
from octavo.coordinator.groups.consumer.group import ConsumerMember, Held, MemberState
from octavo.coordinator.groups.consumer.requests import LEAVE_EPOCH
from octavo.schemas.consumer_offsets.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
    TopicPartitions,
)

_STATES: Final = {int(state): state for state in MemberState}


def member_value(member: ConsumerMember) -> ConsumerGroupMemberMetadataValue:
    """Return a member and its subscription, as a record has them."""
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )


def with_metadata(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    """Return a member with the subscription of a record."""
    classic = value.classic_member_metadata
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=classic if classic is not None and classic.supported_protocols else None,
    )


def target_value(target: Assignment) -> ConsumerGroupTargetAssignmentMemberValue:
    """Return what a member shall have, as a record has it."""
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TopicPartition(topic_id=topic, partitions=tuple(sorted(target[topic]))) for topic in sorted(target)
        )
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    """Return what a member shall have by a record."""
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions if each.partitions}


def current_value(member: ConsumerMember) -> ConsumerGroupCurrentMemberAssignmentValue:
    """Return what a member has, as a record has it."""
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=int(member.state),
        assigned_partitions=_partitions(member.assigned),
        partitions_pending_revocation=_partitions(member.pending_revocation),
    )


def with_current(member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    """Return a member with what it has by a record."""
    return member._replace(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, MemberState.UNKNOWN),
        assigned=_held(value.assigned_partitions, value.member_epoch),
        pending_revocation=_held(value.partitions_pending_revocation, value.member_epoch),
    )


def without_current(member: ConsumerMember) -> ConsumerMember:
    """Return a member that has nothing, because it goes."""
    return member._replace(
        member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned={}, pending_revocation={}
    )


def _partitions(held: Held) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(
            topic_id=topic,
            partitions=tuple(sorted(held[topic])),
            assignment_epochs=tuple(held[topic][partition] for partition in sorted(held[topic])),
        )
        for topic in sorted(held)
    )


def _held(topics: tuple[TopicPartitions, ...], member_epoch: int) -> Held:
    """Read partitions; Kafka 4.0 did not write the epochs in which the member got them."""
    held: dict[UUID, dict[int, int]] = {}
    for each in topics:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = (member_epoch,) * len(each.partitions)
        if each.partitions:
            held[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return held

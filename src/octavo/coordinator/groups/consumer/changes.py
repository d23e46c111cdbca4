"""The steps of which a consumer group's changes are made, each with its records: `Changes`.

One append has records in this order: members, the group's epoch, target assignments, the target's epoch, and what a
member has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from octavo.coordinator.groups.consumer import records
from octavo.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember, MemberState
from octavo.coordinator.groups.consumer.metadata_hash import metadata_hash
from octavo.coordinator.groups.consumer.reconciliation import Aim, Owned, reconcile
from octavo.coordinator.groups.consumer.target import compute_target
from octavo.schemas.consumer_offsets.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

SESSION: Final = "consumer session"  # timers: a member must be heard of
REBALANCE: Final = "consumer rebalance"  # a member must have given partitions back
JOIN: Final = "consumer join"  # a classic member must have joined again
SYNC: Final = "consumer sync"  # a classic member must have asked for its assignment
_MEMBER_TIMERS: Final = (SESSION, REBALANCE, JOIN, SYNC)


class Changes:
    """Changes of consumer groups."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard: Final = shard

    # -------------------------------------------------------------------------------------------------------- members

    def put_member(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Write a member and its subscription."""
        key = ConsumerGroupMemberMetadataKey(group_id=group.group_id, member_id=member.member_id)
        self._shard.write(key, records.member_value(member))

    def put_current(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Write what a member has."""
        key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group.group_id, member_id=member.member_id)
        self._shard.write(key, records.current_value(member))

    def replace_static(self, group: ConsumerGroup, old: ConsumerMember, new_id: str) -> ConsumerMember:
        """Let a static member that was started again take its old place. Returns it."""
        new = old._replace(member_id=new_id, member_epoch=0, previous_member_epoch=0)
        target = group.targets.get(old.member_id, {})
        self.remove_records(group, old.member_id)
        self.cancel_timers(group, old.member_id)
        self.put_member(group, new)
        key = ConsumerGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=new_id)
        self._shard.write(key, records.target_value(target))
        self.put_current(group, new)
        return new

    def remove_records(self, group: ConsumerGroup, member_id: str) -> None:
        """Write that a member is gone."""
        ids = {"group_id": group.group_id, "member_id": member_id}
        self._shard.write(ConsumerGroupCurrentMemberAssignmentKey(**ids), None)
        self._shard.write(ConsumerGroupTargetAssignmentMemberKey(**ids), None)
        self._shard.write(ConsumerGroupMemberMetadataKey(**ids), None)

    def remove(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> None:
        """Remove members. The others get their partitions when the target is computed again."""
        for member in members:
            self.remove_records(group, member.member_id)
        for regex in sorted({member.subscribed_topic_regex or "" for member in members} - {""}):
            self.drop_unused_regex(group, regex)
        self._bump(group, metadata_hash(group.subscribed_names(), group.topics))
        for member in members:
            self.cancel_timers(group, member.member_id)

    def drop_unused_regex(self, group: ConsumerGroup, regex: str) -> None:
        """Write that a regular expression is gone, if no member subscribes by it any more."""
        if not group.regex_count(regex):
            key = ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=regex)
            self._shard.write(key, None)

    def delete(self, group: ConsumerGroup) -> None:
        """Write that a group is gone, with all its members."""
        write, group_id = self._shard.write, group.group_id
        members = sorted(group.members)
        for member_id in members:
            write(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
        for member_id in members:
            write(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
        write(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)
        for member_id in members:
            write(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
            self.cancel_timers(group, member_id)
        for regex in sorted(group.resolved):
            write(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)
        write(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)
        write(ConsumerGroupMetadataKey(group_id=group_id), None)

    # --------------------------------------------------------------------------------------------- epochs and targets

    def refresh(self, group: ConsumerGroup, *, is_changed: bool) -> None:
        """Begin another epoch if subscriptions have changed, or the topics that members subscribe to."""
        version = group.topics.version  # first: topics that come later are looked at later
        if not is_changed and group.checked_version == version:
            return
        found = metadata_hash(group.subscribed_names(), group.topics)
        if is_changed or found != group.metadata_hash:
            self._bump(group, found)
        group.checked_version = version
        if group.has_partition_metadata:
            self._shard.write(ConsumerGroupPartitionMetadataKey(group_id=group.group_id), None)

    def _bump(self, group: ConsumerGroup, found: int) -> None:
        self.put_epoch(group, group.group_epoch + 1, found)

    def put_epoch(self, group: ConsumerGroup, epoch: int, found: int) -> None:
        """Write the epoch of a group, and the number of its topics."""
        value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=found)
        self._shard.write(ConsumerGroupMetadataKey(group_id=group.group_id), value)

    def update_target(self, group: ConsumerGroup) -> None:
        """Compute the target assignment if it is of an earlier epoch, but not too often."""
        now_ms, config = self._shard.now.wall_ms, self._shard.config_of(group.group_id)
        interval_ms = config.group_consumer_assignment_interval_ms
        is_recent = group.assignment_timestamp_ms and now_ms < group.assignment_timestamp_ms + interval_ms
        if group.assignment_epoch >= group.group_epoch or is_recent:
            return
        default = config.group_consumer_assignors[0]
        for member_id, target in compute_target(group, default).items():
            if group.targets.get(member_id) != target:
                key = ConsumerGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=member_id)
                self._shard.write(key, records.target_value(target))
        self.put_target_epoch(group, group.group_epoch, now_ms)

    def put_target_epoch(self, group: ConsumerGroup, epoch: int, timestamp_ms: int) -> None:
        """Write for which epoch the target assignment was computed, and when."""
        value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
        self._shard.write(ConsumerGroupTargetAssignmentMetadataKey(group_id=group.group_id), value)

    # ------------------------------------------------------------------------------------------------ reconciliation

    def reconcile(
        self, group: ConsumerGroup, member_id: str, owned: Owned, *, is_subscription_changed: bool
    ) -> ConsumerMember:
        """Bring a member nearer to what it shall have. Returns it."""
        member = group.members[member_id]
        if not is_subscription_changed and member.is_reconciled_to(group.assignment_epoch):
            return member
        aim = Aim(
            group.assignment_epoch,
            group.targets.get(member_id, {}),
            owned,
            lambda topic, partition: group.holder(topic, partition) is not None,
            group.topic_ids_of(member),
            is_subscription_changed,
        )
        moved = reconcile(member, aim)
        if moved != member:
            self.put_current(group, moved)
            if moved.classic is None:
                self.expect_revocation(group, moved)
        return moved

    # --------------------------------------------------------------------------------------------------------- timers

    def expect_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Wait for a member to give partitions back, if it has to."""
        key = (REBALANCE, group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._shard.timers.set(key, self._shard.now.clock_ms + member.rebalance_timeout_ms)
        else:
            self._shard.timers.cancel(key)

    def expect(self, group: ConsumerGroup, member_id: str, timeout_ms: int, kind: str = SESSION) -> None:
        """Wait for something of a member."""
        self._shard.timers.set((kind, group.group_id, member_id), self._shard.now.clock_ms + timeout_ms)

    def cancel_timers(self, group: ConsumerGroup, member_id: str) -> None:
        """Wait for nothing of a member any more."""
        for kind in _MEMBER_TIMERS:
            self._shard.timers.cancel((kind, group.group_id, member_id))

"""The consumer groups of a shard: `ConsumerGroups`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from octavo.coordinator.groups.classic.group import ClassicGroup
from octavo.coordinator.groups.consumer import records
from octavo.coordinator.groups.consumer.changes import JOIN, REBALANCE, SESSION, SYNC, Changes
from octavo.coordinator.groups.consumer.classic_members import ClassicMembers
from octavo.coordinator.groups.consumer.describing import describe
from octavo.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember, MemberState, Resolved
from octavo.coordinator.groups.consumer.heartbeat import Heartbeats
from octavo.coordinator.groups.consumer.migration import Migration
from octavo.coordinator.groups.consumer.requests import (
    STATIC_LEAVE_EPOCH,
    ConsumerHeartbeatAnswer,
    ConsumerHeartbeatRequest,
    DescribedConsumerGroup,
    Refused,
)
from octavo.coordinator.groups.consumer.subscribing import REGEX, Subscribing
from octavo.coordinator.timers import Key
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

TIMERS: Final = (SESSION, REBALANCE, JOIN, SYNC, REGEX)
_NO_EPOCH: Final = -1


class ConsumerGroups:
    """The consumer groups of a shard: what happens to them by requests, in time, and by records.

    members: what classic members ask
    has_changed: set by records of any group; whoever has taken notice of them clears it
    """

    def __init__(self, shard: GroupShard, new_id: Callable[[], str]) -> None:
        self._shard: Final = shard
        self.has_changed = False
        self._changes: Final = Changes(shard)
        self._migration: Final = Migration(shard, self._changes)
        self._subscribing: Final = Subscribing(shard, self._changes)
        self._heartbeats: Final = Heartbeats(shard, self._changes, self._migration, new_id)
        self.members: Final = ClassicMembers(shard, self._changes, self._migration, new_id)

    # ------------------------------------------------------------------------------------------------------- requests

    def heartbeat(self, request: ConsumerHeartbeatRequest) -> ConsumerHeartbeatAnswer:
        """Answer a heartbeat of a member that uses the consumer protocol."""
        return self._heartbeats.heartbeat(request)

    def describe(self, group_id: str) -> DescribedConsumerGroup:
        """Tell of a group."""
        try:
            group = self.find(group_id)
        except Refused as refused:
            return DescribedConsumerGroup(refused.error_code, refused.message, group_id)
        return describe(group, self._shard.config.group_consumer_assignors[0])

    def delete(self, group: ConsumerGroup) -> None:
        """Delete a group without members."""
        self._changes.delete(group)

    def find(self, group_id: str) -> ConsumerGroup:
        """Return a group; the request is `Refused` if there is none."""
        group = self._shard.groups.get(group_id)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def members_at(self, client_host: str) -> list[tuple[str, ConsumerMember]]:
        """Return the members that speak from a host, each with its group's id, but no static ones that are away."""
        return [
            (group.group_id, member)
            for group in self._shard.groups.values()
            if isinstance(group, ConsumerGroup)
            for member in group.members.values()
            if member.client_host == client_host and member.member_epoch != STATIC_LEAVE_EPOCH
        ]

    def add(self, group_id: str) -> ConsumerGroup:
        """Add a group without members."""
        group = ConsumerGroup(self._shard.journal, group_id, self._shard.topics)
        self._shard.groups[group_id] = group
        return group

    # ---------------------------------------------------------------------------------------------------- time passes

    def expired(self, key: Key) -> None:
        """Do what has to happen at the time that was set for a key."""
        group = self._shard.groups.get(str(key[1]))
        if not isinstance(group, ConsumerGroup):
            return
        if key[0] == REGEX:
            self._subscribing.resolve(group)
            return
        member = group.members.get(str(key[2]))
        if member is None or (key[0] == REBALANCE and member.state is not MemberState.UNREVOKED_PARTITIONS):
            return
        self._migration.remove(group, [member])

    def loaded(self) -> None:
        """Wait for the members of all groups, after they were read from the log."""
        for group in self._shard.groups.values():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    timeout_ms = self._shard.config_of(group.group_id).group_consumer_session_timeout_ms
                    self._changes.expect(group, member.member_id, timeout_ms)
                    self._changes.expect_revocation(group, member)

    # -------------------------------------------------------------------------------------------------------- records

    def apply(self, key: CoordinatorKey[Any], value: CoordinatorValue | None) -> None:
        """Change the state as a record says. Records of other kinds of groups change nothing."""
        apply = _APPLY.get(type(key))
        if apply is None:
            return
        group_id: str = key.group_id  # type: ignore[attr-defined] # all of these keys have it
        group = self._shard.groups.get(group_id)
        if value is not None and (group is None or isinstance(group, ClassicGroup)):
            group = self.add(group_id)  # the classic group only had committed offsets
        if isinstance(group, ConsumerGroup):
            self.has_changed = True
            apply(group, key, value)
            if value is None and isinstance(key, ConsumerGroupMetadataKey):
                del self._shard.groups[group_id]
                self._shard.timers.cancel((REGEX, group_id))


def _apply_epoch(group: ConsumerGroup, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None) -> None:
    if value is not None:
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _apply_partitions(
    group: ConsumerGroup, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
) -> None:
    group.has_partition_metadata = value is not None


def _apply_member(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove(key.member_id)
    else:
        member = group.members.get(key.member_id) or ConsumerMember(member_id=key.member_id)
        group.put(records.with_metadata(member, value))


def _apply_target_epoch(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = _NO_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _apply_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = records.target_of(value)


def _apply_current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put(records.with_current(member or ConsumerMember(member_id=key.member_id), value))
    elif member is not None:
        group.put(records.without_current(member))


def _apply_regex(
    group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    if value is None:
        group.resolved.pop(key.regular_expression, None)
    else:
        resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
        group.resolved[key.regular_expression] = resolved


_APPLY: Final[dict[type[CoordinatorKey[Any]], Callable[[ConsumerGroup, Any, Any], None]]] = {
    ConsumerGroupMetadataKey: _apply_epoch,
    ConsumerGroupPartitionMetadataKey: _apply_partitions,
    ConsumerGroupMemberMetadataKey: _apply_member,
    ConsumerGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupCurrentMemberAssignmentKey: _apply_current,
    ConsumerGroupRegularExpressionKey: _apply_regex,
}

"""Members of consumer groups that use the classic protocol: `ClassicMembers`.

They join, sync and send heartbeats as in a classic group, but never lead, and are never kept waiting: what they get is
assigned by the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from octavo.coordinator.groups.classic.group import CONSUMER
from octavo.coordinator.groups.classic.requests import (
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    LeavingMember,
    SyncAnswer,
    SyncRequest,
)
from octavo.coordinator.groups.consumer.changes import JOIN, SYNC, Changes
from octavo.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember, MemberState
from octavo.coordinator.groups.consumer.heartbeat import static_member
from octavo.coordinator.groups.consumer.migration import Migration, classic_metadata
from octavo.coordinator.groups.consumer.protocol import read_subscription, to_assignment, write_assignment
from octavo.coordinator.groups.consumer.requests import Refused
from octavo.coordinator.groups.consumer.subscribing import Subscribing
from octavo.coordinator.shard import Ticket
from octavo.errors import ErrorCode, FormatError

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard


class ClassicMembers:
    """What classic members ask of consumer groups."""

    def __init__(self, shard: GroupShard, changes: Changes, migration: Migration, new_id: Callable[[], str]) -> None:
        self._shard: Final = shard
        self._changes: Final = changes
        self._migration: Final = migration
        self._subscribing: Final = Subscribing(shard, changes)
        self._new_id: Final = new_id

    # ---------------------------------------------------------------------------------------------------------- joins

    def join(self, ticket: Ticket, request: JoinRequest, group: ConsumerGroup) -> None:
        """Let somebody join a group that has members, and answer at once."""
        try:
            answer = self._shard.all_or_nothing(lambda: self._join(request, group))
        except Refused as refused:
            answer = JoinAnswer(refused.error_code, request.member_id)
        self._shard.answer(ticket, answer)

    def _join(self, request: JoinRequest, group: ConsumerGroup) -> JoinAnswer:
        if self._migration.policy == "disabled":
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the group migration is disabled")
        member_id = request.member_id or self._new_id()
        if len(group.members) >= self._shard.config.group_consumer_max_size and member_id not in group.members:
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group is full")
        if not group.supports(request.protocol_type, [name for name, _ in request.protocols]):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "its protocols are not supported")
        if request.requires_known_member_id and not request.member_id and request.group_instance_id is None:
            return JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        try:
            subscription = read_subscription(request.protocols[0][1])
        except FormatError:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "the embedded consumer protocol is malformed") from None
        is_downgrade = self._migration.may_downgrade_by(group, group.static_member(request.group_instance_id))
        member = self._member(group, request, member_id)
        new = member._replace(
            instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            subscribed_topic_names=frozenset(subscription.topics),
            subscribed_topic_regex="",
            client_id=request.client_id,
            client_host=request.client_host,
            classic=classic_metadata(request.session_timeout_ms, request.protocols),
        )
        is_changed = self._subscribing.update(group, member, new)
        if not is_downgrade:
            self._changes.update_target(group)
        owned = to_assignment(subscription.owned_partitions, self._shard.topics)
        is_stale = is_downgrade and group.assignment_epoch < group.group_epoch
        if not is_stale:
            new = self._changes.reconcile(group, member_id, owned, is_subscription_changed=is_changed)
        self._shard.timers.cancel((JOIN, group.group_id, member_id))
        if is_downgrade:
            self._migration.downgrade(group, set(), rebalances=is_stale)
        else:
            self._changes.expect(group, member_id, request.session_timeout_ms)
            self._changes.expect(group, member_id, request.rebalance_timeout_ms, SYNC)
        return JoinAnswer(ErrorCode.NONE, member_id, new.member_epoch, CONSUMER, request.protocols[0][0])

    def _member(self, group: ConsumerGroup, request: JoinRequest, member_id: str) -> ConsumerMember:
        if request.group_instance_id is not None:
            known = group.static_member(request.group_instance_id)
            if request.member_id:
                return static_member(group, member_id, request.group_instance_id)
            if known is not None:
                return self._changes.replace_static(group, known, member_id)
        return group.members.get(member_id) or ConsumerMember(member_id=member_id)

    # ----------------------------------------------------------------------------------------- syncs and heartbeats

    def sync(self, ticket: Ticket, request: SyncRequest, group: ConsumerGroup) -> None:
        """Tell a member its assignment."""
        self._shard.answer(ticket, self._sync(request, group))

    def _sync(self, request: SyncRequest, group: ConsumerGroup) -> SyncAnswer:
        try:
            member = self._known(group, request.member_id, request.group_instance_id, request.generation_id)
        except Refused as refused:
            return SyncAnswer(refused.error_code)
        assert member.classic is not None
        protocol = member.classic.supported_protocols[0]
        is_other = request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, protocol.name)
        if is_other:
            return SyncAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._ask_to_join(group, member)
            return SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS)
        self._shard.timers.cancel((SYNC, group.group_id, member.member_id))
        self._changes.expect(group, member.member_id, member.classic.session_timeout_ms)
        assignment = write_assignment(member.assigned, self._shard.topics, protocol.metadata)
        return SyncAnswer(ErrorCode.NONE, request.protocol_type, request.protocol_name, assignment)

    def heartbeat(self, request: HeartbeatRequest, group: ConsumerGroup) -> ErrorCode:
        """Note that a member is alive, and ask it to join again if there is something to give back or to get."""
        try:
            member = self._known(group, request.member_id, request.group_instance_id, request.generation_id)
        except Refused as refused:
            return refused.error_code
        assert member.classic is not None
        self._changes.expect(group, member.member_id, member.classic.session_timeout_ms)
        has_to_join = (
            member.member_epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member))
        )
        if not has_to_join:
            return ErrorCode.NONE
        self._ask_to_join(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _ask_to_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if self._shard.timers.get((JOIN, group.group_id, member.member_id)) is None:
            self._changes.expect(group, member.member_id, member.rebalance_timeout_ms, JOIN)

    def _known(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
    ) -> ConsumerMember:
        member = group.member(member_id) if instance_id is None else static_member(group, member_id, instance_id)
        if member.classic is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
        if generation_id != member.member_epoch:
            raise Refused(ErrorCode.ILLEGAL_GENERATION, "the generation is another one")
        return member

    # ------------------------------------------------------------------------------------------------------- leaving

    def leave(self, request: LeaveRequest, group: ConsumerGroup) -> list[ErrorCode]:
        """Let members leave, of whatever protocol. Returns what came of each."""
        codes, gone = [], {}
        for each in request.members:
            try:
                member = _leaving(group, each)
                gone[member.member_id] = member
                codes.append(ErrorCode.NONE)
            except Refused as refused:
                codes.append(refused.error_code)
        self._migration.remove(group, list(gone.values()))
        return codes


def _leaving(group: ConsumerGroup, leaving: LeavingMember) -> ConsumerMember:
    if leaving.group_instance_id is None:
        return group.member(leaving.member_id)
    if leaving.member_id:
        return static_member(group, leaving.member_id, leaving.group_instance_id)
    member = group.static_member(leaving.group_instance_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {leaving.group_instance_id} is unknown.")
    return member


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether others have partitions yet that a member shall get."""
    return any(
        partition not in member.assigned.get(topic, {}) and group.holder(topic, partition) is not None
        for topic, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )

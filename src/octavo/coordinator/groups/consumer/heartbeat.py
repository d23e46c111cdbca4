"""What members of consumer groups ask: `Heartbeats`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn
from uuid import UUID

from octavo.coordinator.groups.classic.group import ClassicGroup
from octavo.coordinator.groups.classic.group import State as ClassicState
from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.consumer.changes import Changes
from octavo.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember, Held
from octavo.coordinator.groups.consumer.migration import Migration
from octavo.coordinator.groups.consumer.requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNCHANGED,
    ConsumerHeartbeatAnswer,
    ConsumerHeartbeatRequest,
    Refused,
)
from octavo.coordinator.groups.consumer.subscribing import Subscribing
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

_BLANKS: Final = "".join(map(chr, range(0x21)))  # what Java takes for white space
_MEMBER_ID_REQUIRED: Final = 1  # the version of ConsumerGroupHeartbeat from which members choose their ids
# A request that tells nothing has these fields after its member's epoch, and before what is known of the client.
_FIRST_TOLD: Final = ConsumerHeartbeatRequest._fields.index("instance_id")
_FIRST_KNOWN: Final = ConsumerHeartbeatRequest._fields.index("client_id")
_NOTHING_TOLD: Final = ConsumerHeartbeatRequest("", "", 0)[_FIRST_TOLD:_FIRST_KNOWN]
# Before what the member still has there is what changes the member itself.
_FIRST_OWNED: Final = ConsumerHeartbeatRequest._fields.index("topic_partitions")
_NOTHING_NEW: Final = ConsumerHeartbeatRequest("", "", 0)[_FIRST_TOLD:_FIRST_OWNED]


class Heartbeats:
    """Heartbeats: members join, tell what they have, are told what they shall have, and leave."""

    def __init__(self, shard: GroupShard, changes: Changes, migration: Migration, new_id: Callable[[], str]) -> None:
        self._shard: Final = shard
        self._changes: Final = changes
        self._migration: Final = migration
        self._subscribing: Final = Subscribing(shard, changes)
        self._new_id: Final = new_id

    def heartbeat(self, request: ConsumerHeartbeatRequest) -> ConsumerHeartbeatAnswer:
        """Answer a heartbeat."""
        steady = self._steady(request)
        if steady is not None:
            return steady
        try:
            return self._shard.all_or_nothing(lambda: self._answer(request))
        except Refused as refused:
            return ConsumerHeartbeatAnswer(refused.error_code, refused.message)

    def _steady(self, request: ConsumerHeartbeatRequest) -> ConsumerHeartbeatAnswer | None:
        """Answer a member that has nothing to tell, and is where it shall be: so are nearly all. None: see further."""
        group = self._shard.groups.get(request.group_id)
        if request[_FIRST_TOLD:_FIRST_KNOWN] != _NOTHING_TOLD or not isinstance(group, ConsumerGroup):
            return None
        member, epoch = group.members.get(request.member_id), request.member_epoch
        is_steady = (
            member is not None
            and member.is_reconciled_to(epoch)
            and epoch == group.assignment_epoch == group.group_epoch
            and (member.client_id, member.client_host) == (request.client_id, request.client_host)
            and member.classic is None
            and not group.regexes
            and group.checked_version == group.topics.version
        )
        return self._alive(group, request.member_id, epoch) if is_steady else None

    def _alive(
        self,
        group: ConsumerGroup,
        member_id: str,
        epoch: int,
        assignment: Mapping[UUID, Sequence[int]] | None = None,
    ) -> ConsumerHeartbeatAnswer:
        """Expect the next heartbeat of a member, and tell it where it is."""
        config = self._shard.config_of(group.group_id)
        self._changes.expect(group, member_id, config.group_consumer_session_timeout_ms)
        interval_ms = config.group_consumer_heartbeat_interval_ms
        return ConsumerHeartbeatAnswer(ErrorCode.NONE, None, member_id, epoch, interval_ms, assignment)

    def _answer(self, request: ConsumerHeartbeatRequest) -> ConsumerHeartbeatAnswer:
        _check(self._shard.config, request)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        return self._beat(request)

    # --------------------------------------------------------------------------------------------------------- checks

    def _group(self, group_id: str, *, is_joining: bool) -> ConsumerGroup:
        """Return the group; who joins creates it, or converts a classic one."""
        group = self._shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None and not is_joining:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        if not is_joining or not (group is None or isinstance(group, ClassicGroup)):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        if group is not None and group.state is not ClassicState.EMPTY:
            return self._migration.upgrade(group)
        if group is not None:
            self._shard.classic.delete(group)
        return self._shard.consumer.add(group_id)

    def _check_room(self, group: ConsumerGroup, member_id: str) -> None:
        most = self._shard.config.group_consumer_max_size
        if len(group.members) >= most and member_id not in group.members:
            message = f"The consumer group has reached its maximum capacity of {most} members."
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    # ----------------------------------------------------------------------------------------------------- heartbeats

    def _beat(self, request: ConsumerHeartbeatRequest) -> ConsumerHeartbeatAnswer:
        is_joining = request.member_epoch == JOIN_EPOCH
        group = self._group(request.group_id, is_joining=is_joining)
        self._check_room(group, request.member_id)
        if not request.member_id:
            request = request._replace(member_id=self._new_id())
        member = self._member(group, request, is_joining=is_joining)
        is_changed = self._subscribing.update(group, member, _updated(member, request))
        self._changes.update_target(group)
        moved = self._changes.reconcile(
            group, member.member_id, request.topic_partitions, is_subscription_changed=is_changed
        )
        tells = is_joining or _is_full(request) or moved.assigned != member.assigned
        told = {topic: sorted(partitions) for topic, partitions in moved.assigned.items()} if tells else None
        return self._alive(group, moved.member_id, moved.member_epoch, told)

    def _member(self, group: ConsumerGroup, request: ConsumerHeartbeatRequest, *, is_joining: bool) -> ConsumerMember:
        member_id, instance_id = request.member_id, request.instance_id
        if instance_id is None:
            known = group.members.get(member_id) if is_joining else group.member(member_id)
        else:
            known = group.static_member(instance_id)
            if is_joining and known is not None:
                if known.classic is None and known.member_epoch != STATIC_LEAVE_EPOCH:
                    message = (
                        f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                        f"instance id is owned by {known.member_id} member."
                    )
                    raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID, message)
                return self._changes.replace_static(group, known, member_id)
            known = group.members.get(member_id) if is_joining else static_member(group, member_id, instance_id)
        if known is None:
            return ConsumerMember(member_id=member_id)
        _check_epoch(known, request.member_epoch, request.topic_partitions)
        return known

    # -------------------------------------------------------------------------------------------------------- leaving

    def _leave(self, request: ConsumerHeartbeatRequest) -> ConsumerHeartbeatAnswer:
        group = self._shard.consumer.find(request.group_id)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            self._changes.put_current(group, _away(member))
        else:
            self._migration.remove(group, [member])
        return ConsumerHeartbeatAnswer(ErrorCode.NONE, None, request.member_id, request.member_epoch)


def heartbeat_problem(config: GroupConfig, request: ConsumerHeartbeatRequest) -> ConsumerHeartbeatAnswer | None:
    """Return the answer to a request that is wrong whatever the group is; None if it is fine."""
    try:
        _check(config, request)
    except Refused as refused:
        return ConsumerHeartbeatAnswer(refused.error_code, refused.message)
    return None


def _check(config: GroupConfig, request: ConsumerHeartbeatRequest) -> None:
    epoch, assignors = request.member_epoch, config.group_consumer_assignors
    needs_id = request.version >= _MEMBER_ID_REQUIRED or epoch > 0 or epoch == LEAVE_EPOCH
    names = {
        "MemberId": request.member_id if needs_id else None,
        "GroupId": request.group_id,
        "InstanceId": request.instance_id,
        "RackId": request.rack_id,
    }
    for name, value in names.items():
        if value is not None and not value.strip(_BLANKS):
            _refuse_request(f"{name} can't be empty.")
    if epoch == JOIN_EPOCH:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        _refuse_request("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        _refuse_request("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        supported = ", ".join(assignors)
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}."
        raise Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """Return a static member; it is `Refused` if the instance id is not known, or another member has it."""
    member = group.static_member(instance_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        raise Refused(ErrorCode.FENCED_INSTANCE_ID, message)
    return member


def _check_join(request: ConsumerHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == UNCHANGED:
        _refuse_request("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        _refuse_request("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        _refuse_request("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _check_epoch(member: ConsumerMember, epoch: int, owned: Mapping[UUID, Collection[int]] | None) -> None:
    """Refuse a member that is not in its epoch. The one before is fine while the answer with the next may be lost."""
    known = member.member_epoch
    if epoch in (JOIN_EPOCH, known):
        return
    if epoch < known and epoch == member.previous_member_epoch and _is_part(owned, member.assigned):
        return
    size = "greater" if epoch > known else "smaller"
    message = (
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}). The member must abandon all its partitions and rejoin."
    )
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _is_part(owned: Mapping[UUID, Collection[int]] | None, assigned: Held) -> bool:
    return owned is not None and all(
        partition in assigned.get(topic, {}) for topic, partitions in owned.items() for partition in partitions
    )


def _updated(member: ConsumerMember, request: ConsumerHeartbeatRequest) -> ConsumerMember:
    """Return the member with what it tells; what it does not tell has not changed. Most tell nothing new."""
    is_known = (member.client_id, member.client_host) == (request.client_id, request.client_host)
    if is_known and member.classic is None and request[_FIRST_TOLD:_FIRST_OWNED] == _NOTHING_NEW:
        return member
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    told = {
        "client_id": request.client_id,
        "client_host": request.client_host,
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if timeout_ms == UNCHANGED else timeout_ms,
        "subscribed_topic_names": None if names is None else frozenset(names),
        "subscribed_topic_regex": request.subscribed_topic_regex,
        "server_assignor": request.server_assignor,
    }
    changes = {name: value for name, value in told.items() if value is not None and value != getattr(member, name)}
    if not changes and member.classic is None:
        return member
    return member._replace(classic=None, **changes)  # type: ignore[arg-type] # of several fields


def _is_full(request: ConsumerHeartbeatRequest) -> bool:
    """Return whether a member tells everything, as after an error."""
    tells_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != UNCHANGED and tells_topics and request.topic_partitions is not None


def _away(member: ConsumerMember) -> ConsumerMember:
    """Return a static member that will come back, and may then commit whatever it had."""
    assigned = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
    return member._replace(member_epoch=STATIC_LEAVE_EPOCH, assigned=assigned, pending_revocation={})


def _refuse_request(message: str) -> NoReturn:
    raise Refused(ErrorCode.INVALID_REQUEST, message)

"""What happens to groups of the classic protocol: `ClassicGroups`.

Members join; when all have, a generation begins, and the leader is told of all members. Each then asks for its
assignment (sync); when the leader has brought them, all are answered and the group is stable. Whatever changes the
members begins another round. Tables say what an event means in each state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from octavo.coordinator.groups.classic.group import ClassicGroup, ClassicMember, State
from octavo.coordinator.groups.classic.requests import (
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    LeavingMember,
    SyncAnswer,
    SyncRequest,
    join_error,
)
from octavo.coordinator.shard import Ticket
from octavo.coordinator.timers import Key
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataKey, GroupMetadataValue

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

HEARTBEAT: Final = "heartbeat"  # timers: a member must be heard of
JOIN: Final = "join"  # members must have joined
INITIAL: Final = "initial join"  # the delay before the first generation is over
SYNC: Final = "sync"  # members must have asked for their assignments
TIMERS: Final = (HEARTBEAT, JOIN, INITIAL, SYNC)

_VERSION: Final = 3  # of the record that Kafka 4.x writes
_NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000


class ClassicGroups:
    """The classic groups of a shard, and what members ask of them."""

    def __init__(self, shard: GroupShard, new_id: Callable[[], str]) -> None:
        """`new_id` returns ids that nobody has had, for members."""
        self._shard: Final = shard
        self._new_id: Final = new_id
        self._joins: Final[dict[State, Callable[[Ticket, JoinRequest, ClassicGroup, ClassicMember], None]]] = {
            State.EMPTY: self._refuse_join,
            State.PREPARING_REBALANCE: self._join_again,
            State.COMPLETING_REBALANCE: self._join_generation,
            State.STABLE: self._join_stable,
        }
        self._syncs: Final[dict[State, Callable[[Ticket, SyncRequest, ClassicGroup], None]]] = {
            State.EMPTY: self._refuse_sync,
            State.PREPARING_REBALANCE: self._delay_sync,
            State.COMPLETING_REBALANCE: self._await_assignment,
            State.STABLE: self._tell_assignment,
        }
        self._heartbeats: Final = {
            State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
            State.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
            State.COMPLETING_REBALANCE: ErrorCode.NONE,
            State.STABLE: ErrorCode.NONE,
        }
        self._after_removal: Final[dict[State, Callable[[ClassicGroup], None]]] = {
            State.EMPTY: lambda group: None,
            State.PREPARING_REBALANCE: self._complete_if_all_joined,
            State.COMPLETING_REBALANCE: self._rebalance,
            State.STABLE: self._rebalance,
        }

    # ----------------------------------------------------------------------------------------------------------- joins

    def join(self, ticket: Ticket, request: JoinRequest) -> None:
        """Let somebody join. The answer comes when all members have, or an error at once."""
        error = join_error(self._shard.config, request)
        if error is not ErrorCode.NONE:
            self._shard.answer(ticket, JoinAnswer(error, request.member_id))
            return
        group = self._shard.groups.get(request.group_id)
        if group is None and request.member_id:
            self._shard.answer(ticket, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        elif group is None:
            self._join(ticket, request, self.add(request.group_id))
            self._shard.write_only(GroupMetadataKey(group=request.group_id), _empty_group(self._now_ms), _VERSION)
        elif isinstance(group, ClassicGroup):
            self._join(ticket, request, group)
        else:
            self._shard.answer(ticket, JoinAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))

    def _join(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup) -> None:
        member_id = request.member_id
        if not self._has_room_for(group, member_id):
            group.remove(member_id)  # an id that was given out is worth nothing now
            self._shard.answer(ticket, JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not group.supports(request.protocol_type, request.protocols):
            self._shard.answer(ticket, JoinAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
        elif not member_id:
            self._join_new(ticket, request, group)
        elif member_id in group.pending:
            if request.group_instance_id is None:
                self._add_member(ticket, request, group, member_id)
            else:  # no static member was given an id to come back with; Kafka does not expect that
                self._shard.answer(ticket, JoinAnswer(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            error = group.member_error(member_id, request.group_instance_id)
            if error is not ErrorCode.NONE:
                self._shard.answer(ticket, JoinAnswer(error, member_id))
                return
            self._joins[group.state](ticket, request, group, group.members[member_id])

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        most = self._shard.config.group_max_size
        member = group.members.get(member_id)
        if group.state is State.EMPTY:
            return True
        if group.state is State.PREPARING_REBALANCE:
            return (member is not None and member.join is not None) or group.joining_count < most
        return member is not None or len(group.members) < most

    def _join_new(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup) -> None:
        instance_id = request.group_instance_id
        new_id = f"{request.client_id if instance_id is None else instance_id}-{self._new_id()}"
        if instance_id is not None:
            if instance_id in group.static_members:
                self._replace_static(ticket, request, group, new_id)
            else:
                self._add_member(ticket, request, group, new_id)
        elif request.requires_known_member_id:
            group.pending[new_id] = True
            self._expect(group, new_id, request.session_timeout_ms)
            self._shard.answer(ticket, JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, new_id))
        else:
            self._add_member(ticket, request, group, new_id)

    def _add_member(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member_id: str) -> None:
        if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
            group.is_new_member_added = True
        group.add(
            ClassicMember(
                member_id=member_id,
                group_instance_id=request.group_instance_id,
                client_id=request.client_id,
                client_host=request.client_host,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                session_timeout_ms=request.session_timeout_ms,
                protocol_type=request.protocol_type,
                protocols=request.protocols,
                is_new=True,
                join=ticket,
            )
        )
        self._expect(group, member_id, _NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance_or_complete(group)

    def _refuse_join(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember) -> None:
        self._shard.answer(ticket, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))

    def _join_again(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember) -> None:
        self._update(ticket, request, group, member)
        self._rebalance_or_complete(group)

    def _join_generation(
        self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember
    ) -> None:
        if member.protocols != request.protocols:
            self._join_again(ticket, request, group, member)
        else:  # it has not got the answer
            is_leader = group.leader_id == member.member_id
            self._shard.answer(ticket, _joined(group, member.member_id, tells_members=is_leader))

    def _join_stable(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember) -> None:
        if group.leader_id == member.member_id or member.protocols != request.protocols:
            self._join_again(ticket, request, group, member)
        else:
            self._shard.answer(ticket, _joined(group, member.member_id))

    def _update(
        self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember
    ) -> ClassicMember:
        if member.join is not None:  # it asks again, by another connection
            self._shard.answer(member.join, JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        return group.change(
            member,
            protocols=request.protocols,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            join=ticket,
        )

    def _replace_static(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, new_id: str) -> None:
        """Let a static member that was started again take its old place."""
        instance_id = request.group_instance_id
        assert instance_id is not None
        old = group.members[group.static_members[instance_id]]
        leader_before = group.leader_id
        self._answer_join(group, old, JoinAnswer(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        self._answer_sync(group, group.members[old.member_id], SyncAnswer(ErrorCode.FENCED_INSTANCE_ID))
        is_leader = leader_before == old.member_id
        group.remove(old.member_id)
        self._shard.timers.cancel((HEARTBEAT, group.group_id, old.member_id))
        new = ClassicMember(
            member_id=new_id,
            group_instance_id=instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=request.protocols,
            assignment=old.assignment,
            join=ticket,
        )
        group.add(new)
        if is_leader:
            group.leader_id = new_id
        self._expect(group, new_id, old.session_timeout_ms)
        if group.state is State.STABLE:
            if group.protocol_name == group.chosen_protocol():
                self._go_on_without_rebalance(request, group, new, leader_before)
            else:
                self._rebalance_or_complete(group)
        elif group.state is State.COMPLETING_REBALANCE:
            self._rebalance(group)
        else:
            self._complete_if_all_joined(group)

    def _go_on_without_rebalance(
        self, request: JoinRequest, group: ClassicGroup, member: ClassicMember, leader_before: str | None
    ) -> None:
        self._write(group, {member_id: each.assignment for member_id, each in group.members.items()})
        is_leader = group.leader_id == member.member_id
        if request.supports_skipping_assignment:
            answer = _joined(group, member.member_id, tells_members=is_leader)._replace(skip_assignment=is_leader)
        else:  # it must not think that it leads, and assign anew
            answer = _joined(group, member.member_id)._replace(leader=leader_before)
        self._answer_join(group, member, answer)

    # ------------------------------------------------------------------------------------------------- rounds of joins

    def _rebalance_or_complete(self, group: ClassicGroup) -> None:
        if group.state is State.PREPARING_REBALANCE:
            self._complete_if_all_joined(group)
        else:
            self._rebalance(group)

    def _rebalance(self, group: ClassicGroup) -> None:
        """Begin a round: all members have to join again."""
        if group.state is State.COMPLETING_REBALANCE:
            for member in list(group.members.values()):
                changed = group.change(member, assignment=b"")
                self._answer_sync(group, changed, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        group.pending_sync.clear()
        self._shard.timers.cancel((SYNC, group.group_id))
        is_first = group.state is State.EMPTY
        group.enter(State.PREPARING_REBALANCE, self._now_ms)
        if is_first:
            delay_ms = self._shard.config.group_initial_rebalance_delay_ms
            self._delay_first(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.has_all_joined:
            self._complete(group)
        else:
            self._await_joins(group)

    def _delay_first(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Wait for more members before the first generation; longer while more come."""
        group.delay_ms, group.remaining_delay_ms = delay_ms, remaining_ms
        self._shard.timers.set((INITIAL, group.group_id), self._clock_ms + delay_ms)

    def _end_delay(self, group: ClassicGroup) -> None:
        remaining_ms = group.remaining_delay_ms
        if group.is_new_member_added and remaining_ms:
            group.is_new_member_added = False
            next_ms = min(self._shard.config.group_initial_rebalance_delay_ms, remaining_ms)
            self._delay_first(group, next_ms, max(remaining_ms - group.delay_ms, 0))
        else:
            self._complete(group)

    def _await_joins(self, group: ClassicGroup) -> None:
        self._shard.timers.set((JOIN, group.group_id), self._clock_ms + group.rebalance_timeout_ms)

    def _complete_if_all_joined(self, group: ClassicGroup) -> None:
        """End the round of joins if nobody is missing; the first one ends when its delay is over."""
        is_due = group.state is State.PREPARING_REBALANCE and group.previous_state is not State.EMPTY
        if is_due and group.has_all_joined:
            self._complete(group)

    def _complete(self, group: ClassicGroup) -> None:
        """End the round of joins: go on without those who are missing."""
        self._shard.timers.cancel((JOIN, group.group_id))
        self._shard.timers.cancel((INITIAL, group.group_id))
        for member in list(group.members.values()):
            if member.join is None and member.group_instance_id is None:
                group.remove(member.member_id)
                self._shard.timers.cancel((HEARTBEAT, group.group_id, member.member_id))
        if not group.find_leader() and group.members:  # only static members, which may still come
            self._await_joins(group)
            return
        group.begin_generation(self._now_ms)
        if not group.members:
            self._write(group, {})
            return
        for member in list(group.members.values()):
            if member.join is not None:
                is_leader = group.leader_id == member.member_id
                self._shard.answer(member.join, _joined(group, member.member_id, tells_members=is_leader))
            group.change(member, join=None, is_new=False)
            self._expect(group, member.member_id, member.session_timeout_ms)
            group.pending_sync[member.member_id] = True
        self._shard.timers.set((SYNC, group.group_id), self._clock_ms + group.rebalance_timeout_ms)

    # ----------------------------------------------------------------------------------------------------------- syncs

    def sync(self, ticket: Ticket, request: SyncRequest) -> None:
        """Tell a member its assignment, when the leader has brought it."""
        group = self._shard.groups.get(request.group_id)
        error = ErrorCode.UNKNOWN_MEMBER_ID
        if isinstance(group, ClassicGroup) and group.state is not State.EMPTY:
            error = _sync_error(group, request)
        if error is not ErrorCode.NONE:
            self._shard.answer(ticket, SyncAnswer(error))
            return
        assert isinstance(group, ClassicGroup)
        self._syncs[group.state](ticket, request, group)

    def _refuse_sync(self, ticket: Ticket, request: SyncRequest, group: ClassicGroup) -> None:
        self._shard.answer(ticket, SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))

    def _delay_sync(self, ticket: Ticket, request: SyncRequest, group: ClassicGroup) -> None:
        self._shard.answer(ticket, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))

    def _await_assignment(self, ticket: Ticket, request: SyncRequest, group: ClassicGroup) -> None:
        member = group.members[request.member_id]
        if member.sync is not None:  # it asks again, by another connection
            self._shard.answer(member.sync, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        group.change(member, sync=ticket)
        group.pending_sync.pop(member.member_id, None)
        if group.leader_id != member.member_id:
            return
        self._write(group, request.assignments)
        for each in list(group.members.values()):
            assignment = request.assignments.get(each.member_id, b"")
            group.change(each, assignment=assignment, sync=None)
            if each.sync is not None:
                answer = SyncAnswer(ErrorCode.NONE, group.protocol_type, group.protocol_name, assignment)
                self._shard.answer(each.sync, answer)
                self._expect(group, each.member_id, each.session_timeout_ms)
        group.enter(State.STABLE, self._now_ms)

    def _tell_assignment(self, ticket: Ticket, request: SyncRequest, group: ClassicGroup) -> None:
        group.pending_sync.pop(request.member_id, None)
        assignment = group.members[request.member_id].assignment
        self._shard.answer(ticket, SyncAnswer(ErrorCode.NONE, group.protocol_type, group.protocol_name, assignment))

    # ----------------------------------------------------------------------------------------- heartbeats and leaving

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Note that a member is alive."""
        group = self._shard.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.member_error(request.member_id, request.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self._expect(group, request.member_id, group.members[request.member_id].session_timeout_ms)
        return self._heartbeats[group.state]

    def committed(self, group: ClassicGroup, member_id: str) -> None:
        """Take a commit for a sign of life of a member."""
        if member_id in group.members and group.state in (State.STABLE, State.PREPARING_REBALANCE):
            self._expect(group, member_id, group.members[member_id].session_timeout_ms)

    def leave(self, request: LeaveRequest) -> list[ErrorCode]:
        """Let members leave. Returns what came of each."""
        group = self._shard.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(request.members)
        codes = [self._leave(group, each) for each in request.members]
        if ErrorCode.NONE in codes:
            self._after_removal[group.state](group)
        return codes

    def _leave(self, group: ClassicGroup, leaving: LeavingMember) -> ErrorCode:
        member_id, instance_id = leaving
        if not member_id:
            if instance_id is None or instance_id not in group.static_members:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[instance_id]
        elif member_id not in group.pending:
            error = group.member_error(member_id, instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._remove(group, member_id)
        return ErrorCode.NONE

    def _remove(self, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self._answer_join(group, member, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
            self._answer_sync(group, group.members[member_id], SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)
        self._shard.timers.cancel((HEARTBEAT, group.group_id, member_id))

    # ---------------------------------------------------------------------------------------------------- time passes

    def expired(self, key: Key) -> None:
        """Do what has to happen at the time that was set for a key."""
        group = self._shard.groups.get(str(key[1]))
        if not isinstance(group, ClassicGroup):
            return
        if key[0] == HEARTBEAT:
            self._expire_member(group, str(key[2]))
        elif key[0] == SYNC:
            self._end_syncs(group)
        elif group.state is State.PREPARING_REBALANCE:
            if key[0] == INITIAL:
                self._end_delay(group)
            else:
                self._complete(group)

    def _expire_member(self, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is None and member_id not in group.pending:
            return
        if member is not None and member.is_alive:
            return
        self._remove(group, member_id)
        if group.state is State.PREPARING_REBALANCE and group.has_all_joined:
            self._complete(group)
        elif member is not None and group.state is not State.PREPARING_REBALANCE:
            self._after_removal[group.state](group)

    def _end_syncs(self, group: ClassicGroup) -> None:
        """Go on without members that have joined a generation and never asked for their assignment."""
        if group.pending_sync and group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            for member_id in sorted(group.pending_sync):
                self._remove(group, member_id)
            self._rebalance(group)

    def loaded(self) -> None:
        """Wait for the members of all groups, after they were read from the log."""
        for group in self._shard.groups.values():
            if isinstance(group, ClassicGroup):
                for member in group.members.values():
                    self._expect(group, member.member_id, member.session_timeout_ms)
                if len(group.members) > self._shard.config.group_max_size:
                    self._rebalance(group)

    def resign(self) -> None:
        """Answer everybody who waits: another coordinator has the groups now."""
        for group in self._shard.groups.values():
            if isinstance(group, ClassicGroup):
                for member in list(group.members.values()):
                    self._answer_join(group, member, JoinAnswer(ErrorCode.NOT_COORDINATOR, member.member_id))
                    self._answer_sync(group, group.members[member.member_id], SyncAnswer(ErrorCode.NOT_COORDINATOR))

    # -------------------------------------------------------------------------------------------------------- records

    def apply(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        """Change the state as a record says, at the start."""
        if value is None:
            if isinstance(self._shard.groups.get(key.group), ClassicGroup):
                del self._shard.groups[key.group]
        else:
            self.add(key.group).take(value)

    def add(self, group_id: str) -> ClassicGroup:
        """Add a group without members."""
        group = ClassicGroup(self._shard.journal, group_id)
        self._shard.groups[group_id] = group
        return group

    def delete(self, group: ClassicGroup) -> None:
        """Delete a group without members."""
        self._shard.write(GroupMetadataKey(group=group.group_id), None, _VERSION)

    def dissolve(self, group: ClassicGroup) -> None:
        """Delete a group with members, which go on by the consumer protocol. Who waits has to join again."""
        for member_id, member in sorted(group.members.items()):
            if member.join is not None:
                self._shard.answer(member.join, JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, member_id))
            if member.sync is not None:
                self._shard.answer(member.sync, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        for member_id in (*group.members, *group.pending):
            self._shard.timers.cancel((HEARTBEAT, group.group_id, member_id))
        for kind in (JOIN, INITIAL, SYNC):
            self._shard.timers.cancel((kind, group.group_id))
        self.delete(group)

    def convert(
        self,
        group_id: str,
        generation_id: int,
        members: Iterable[ClassicMember],
        assignment: Callable[[str, bytes], bytes],
        *,
        rebalances: bool,
    ) -> None:
        """Go on with the members of a consumer group, all of whom use the classic protocol.

        `assignment` returns what a member is assigned, by its id and its metadata.
        """
        group = self.add(group_id)
        for member in members:
            group.add(member)
        group.generation_id = generation_id
        group.choose_protocol()
        group.enter(State.STABLE, self._now_ms)
        for member in list(group.members.values()):
            assigned = assignment(member.member_id, member.metadata(group.protocol_name))
            group.change(member, assignment=assigned)
            self._expect(group, member.member_id, member.session_timeout_ms)
        self._write(group, {member_id: member.assignment for member_id, member in group.members.items()})
        if rebalances:
            self._rebalance(group)

    def _write(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        self._shard.write_only(GroupMetadataKey(group=group.group_id), group.value(assignments), _VERSION)

    # ---------------------------------------------------------------------------------------------------------- parts

    def _answer_join(self, group: ClassicGroup, member: ClassicMember, answer: JoinAnswer) -> None:
        if member.join is not None:
            self._shard.answer(member.join, answer)
            group.change(member, join=None)

    def _answer_sync(self, group: ClassicGroup, member: ClassicMember, answer: SyncAnswer) -> None:
        if member.sync is not None:
            self._shard.answer(member.sync, answer)
            group.change(member, sync=None)
            self._expect(group, member.member_id, member.session_timeout_ms)

    def _expect(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        self._shard.timers.set((HEARTBEAT, group.group_id, member_id), self._clock_ms + timeout_ms)

    @property
    def _now_ms(self) -> int:
        return self._shard.now.wall_ms

    @property
    def _clock_ms(self) -> int:
        return self._shard.now.clock_ms


def _joined(group: ClassicGroup, member_id: str, *, tells_members: bool = False) -> JoinAnswer:
    return JoinAnswer(
        ErrorCode.NONE,
        member_id,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        False,
        group.joined_members() if tells_members else (),
    )


def _sync_error(group: ClassicGroup, request: SyncRequest) -> ErrorCode:
    error = group.member_error(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    is_other = (
        request.protocol_type not in (None, group.protocol_type)
        or request.protocol_name not in (None, group.protocol_name)
    )  # fmt: skip
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL if is_other else ErrorCode.NONE


def _empty_group(now_ms: int) -> GroupMetadataValue:
    """The record of a group that nobody has joined yet."""
    return GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=now_ms, members=()
    )

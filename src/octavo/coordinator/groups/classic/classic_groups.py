"""What happens to groups of the classic protocol: `ClassicGroups`.

Members join; when all have, a generation begins, and the leader is told of all members. Each then asks for its
assignment (sync); when the leader has brought them, all are answered and the group is stable. Whatever changes the
members begins another round. A table says what an event means in each state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.coordinator.groups.classic.group import ClassicGroup, ClassicMember, State
from octavo.coordinator.groups.classic.joins import Joins
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
from octavo.coordinator.groups.classic.rounds import HEARTBEAT, INITIAL, JOIN, SYNC, VERSION, Rounds
from octavo.coordinator.groups.classic.syncs import Syncs, sync_error
from octavo.coordinator.shard import Ticket
from octavo.coordinator.timers import Key
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataKey, GroupMetadataValue

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

TIMERS: Final = (HEARTBEAT, JOIN, INITIAL, SYNC)


class Row(NamedTuple):
    """What each event means in one state."""

    join: Callable[[Ticket, JoinRequest, ClassicGroup, ClassicMember], None]  # of somebody who is a member
    sync: Callable[[Ticket, SyncRequest, ClassicGroup], None]
    heartbeat: ErrorCode
    removed: Callable[[ClassicGroup], None]  # a member has left, or was not heard of


class ClassicGroups:
    """The classic groups of a shard, and what members ask of them."""

    def __init__(self, shard: GroupShard, new_id: Callable[[], str]) -> None:
        """`new_id` returns ids that nobody has had, for members."""
        self._shard: Final = shard
        self._rounds: Final = Rounds(shard)
        self._joins: Final = Joins(shard, self._rounds, new_id)
        self._table: Final = _table(self._joins, Syncs(shard, self._rounds), self._rounds)

    # ------------------------------------------------------------------------------------------------------- requests

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
            self._shard.write_only(GroupMetadataKey(group=request.group_id), _empty_group(self._rounds.now_ms), VERSION)
        elif isinstance(group, ClassicGroup):
            self._join(ticket, request, group)
        else:
            self._shard.answer(ticket, JoinAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))

    def _join(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup) -> None:
        member = self._joins.known_member(ticket, request, group)
        if member is not None:
            self._table[group.state].join(ticket, request, group, member)

    def sync(self, ticket: Ticket, request: SyncRequest) -> None:
        """Tell a member its assignment, when the leader has brought it."""
        group = self._shard.groups.get(request.group_id)
        error = ErrorCode.UNKNOWN_MEMBER_ID
        if isinstance(group, ClassicGroup) and group.state is not State.EMPTY:
            error = sync_error(group, request)
        if error is not ErrorCode.NONE:
            self._shard.answer(ticket, SyncAnswer(error))
            return
        assert isinstance(group, ClassicGroup)
        self._table[group.state].sync(ticket, request, group)

    def sync_failed(self, request: SyncRequest, code: ErrorCode) -> None:
        """Begin another round if the assignments of a leader could not be written; whoever waits for them is told."""
        group = self._shard.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup) or group.state is not State.COMPLETING_REBALANCE:
            return
        if sync_error(group, request) is ErrorCode.NONE and group.leader_id == request.member_id:
            for member in list(group.members.values()):
                self._rounds.answer_sync(group, member, SyncAnswer(code))
            self._rounds.rebalance(group)

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
        self._rounds.expect(group, request.member_id, group.members[request.member_id].session_timeout_ms)
        return self._table[group.state].heartbeat

    def committed(self, group: ClassicGroup, member_id: str) -> None:
        """Take a commit for a sign of life of a member."""
        if member_id in group.members and group.state in (State.STABLE, State.PREPARING_REBALANCE):
            self._rounds.expect(group, member_id, group.members[member_id].session_timeout_ms)

    def leave(self, request: LeaveRequest) -> list[ErrorCode]:
        """Let members leave. Returns what came of each."""
        group = self._shard.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(request.members)
        codes = [self._leave(group, each) for each in request.members]
        if ErrorCode.NONE in codes:
            self._table[group.state].removed(group)
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
        self._rounds.remove(group, member_id)
        return ErrorCode.NONE

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
                self._rounds.end_delay(group)
            else:
                self._rounds.complete(group)

    def _expire_member(self, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is None and member_id not in group.pending:
            return
        if member is not None and member.is_alive:
            return
        self._rounds.remove(group, member_id)
        if group.state is State.PREPARING_REBALANCE and group.has_all_joined:
            self._rounds.complete(group)
        elif member is not None and group.state is not State.PREPARING_REBALANCE:
            self._table[group.state].removed(group)

    def _end_syncs(self, group: ClassicGroup) -> None:
        """Go on without members that have joined a generation and never asked for their assignment."""
        if group.pending_sync and group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            for member_id in sorted(group.pending_sync):
                self._rounds.remove(group, member_id)
            self._rounds.rebalance(group)

    def loaded(self) -> None:
        """Wait for the members of all groups, after they were read from the log."""
        for group in self._shard.groups.values():
            if isinstance(group, ClassicGroup):
                for member in group.members.values():
                    self._rounds.expect(group, member.member_id, member.session_timeout_ms)
                if len(group.members) > self._shard.config.group_max_size:
                    self._rounds.rebalance(group)

    def resign(self) -> None:
        """Answer everybody who waits: another coordinator has the groups now."""
        for group in self._shard.groups.values():
            if isinstance(group, ClassicGroup):
                for member in list(group.members.values()):
                    self._rounds.answer_join(group, member, JoinAnswer(ErrorCode.NOT_COORDINATOR, member.member_id))
                    self._rounds.answer_sync(
                        group, group.members[member.member_id], SyncAnswer(ErrorCode.NOT_COORDINATOR)
                    )

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
        self._shard.write(GroupMetadataKey(group=group.group_id), None, VERSION)

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
        group.enter(State.STABLE, self._rounds.now_ms)
        for member in list(group.members.values()):
            assigned = assignment(member.member_id, member.metadata(group.protocol_name))
            group.change(member, assignment=assigned)
            self._rounds.expect(group, member.member_id, member.session_timeout_ms)
        self._rounds.write(group, {member_id: member.assignment for member_id, member in group.members.items()})
        if rebalances:
            self._rounds.rebalance(group)


def _table(joins: Joins, syncs: Syncs, rounds: Rounds) -> dict[State, Row]:
    """The state machine: a row for each state, a column for each event."""
    preparing, completing = State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE
    unknown, rejoin, alive = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE
    return {
        # state           join                   sync                       heartbeat  a member was removed
        State.EMPTY:  Row(joins.refuse,          syncs.refuse,              unknown,   _do_nothing),
        preparing:    Row(joins.join_again,      syncs.refuse_during_joins, rejoin,    rounds.complete_if_all_joined),
        completing:   Row(joins.join_generation, syncs.await_assignment,    alive,     rounds.rebalance),
        State.STABLE: Row(joins.join_stable,     syncs.tell_assignment,     alive,     rounds.rebalance),
    }  # fmt: skip


def _do_nothing(group: ClassicGroup) -> None:
    """Do nothing: there is nobody to begin a round with."""


def _empty_group(now_ms: int) -> GroupMetadataValue:
    """The record of a group that nobody has joined yet."""
    return GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=now_ms, members=()
    )

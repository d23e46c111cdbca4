"""How members of a classic group join: `Joins`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from octavo.coordinator.groups.classic.group import ClassicGroup, ClassicMember, State
from octavo.coordinator.groups.classic.requests import JoinAnswer, JoinRequest, SyncAnswer
from octavo.coordinator.groups.classic.rounds import HEARTBEAT, Rounds, joined
from octavo.coordinator.shard import Ticket
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

_NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000


class Joins:
    """Who may join, and what that means in each state."""

    def __init__(self, shard: GroupShard, rounds: Rounds, new_id: Callable[[], str]) -> None:
        """`new_id` returns ids that nobody has had, for members."""
        self._shard: Final = shard
        self._rounds: Final = rounds
        self._new_id: Final = new_id

    def known_member(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup) -> ClassicMember | None:
        """Return the member that joins again. None: it is new or must not join, and all is done."""
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
            if error is ErrorCode.NONE:
                return group.members[member_id]
            self._shard.answer(ticket, JoinAnswer(error, member_id))
        return None

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
            self._rounds.expect(group, new_id, request.session_timeout_ms)
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
        self._rounds.expect(group, member_id, _NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rounds.rebalance_or_complete(group)

    # ------------------------------------------------------------------------------ members that join, in each state

    def refuse(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember) -> None:
        """Say that there is no such member."""
        self._shard.answer(ticket, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))

    def join_again(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember) -> None:
        """Let a member join the next generation."""
        self._update(ticket, request, group, member)
        self._rounds.rebalance_or_complete(group)

    def join_generation(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember) -> None:
        """Answer once more, unless the member has changed what it says to assignors."""
        if member.protocols != request.protocols:
            self.join_again(ticket, request, group, member)
        else:  # it has not got the answer
            is_leader = group.leader_id == member.member_id
            self._shard.answer(ticket, joined(group, member.member_id, tells_members=is_leader))

    def join_stable(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, member: ClassicMember) -> None:
        """Begin a round if the leader wants it, or the member has changed what it says to assignors."""
        if group.leader_id == member.member_id or member.protocols != request.protocols:
            self.join_again(ticket, request, group, member)
        else:
            self._shard.answer(ticket, joined(group, member.member_id))

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

    # ------------------------------------------------------------------------------------------------- static members

    def _replace_static(self, ticket: Ticket, request: JoinRequest, group: ClassicGroup, new_id: str) -> None:
        """Let a static member that was started again take its old place."""
        instance_id = request.group_instance_id
        assert instance_id is not None
        old = group.members[group.static_members[instance_id]]
        leader_before = group.leader_id
        self._rounds.answer_join(group, old, JoinAnswer(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        self._rounds.answer_sync(group, group.members[old.member_id], SyncAnswer(ErrorCode.FENCED_INSTANCE_ID))
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
        self._rounds.expect(group, new_id, old.session_timeout_ms)
        if group.state is State.STABLE:
            if group.protocol_name == group.chosen_protocol():
                self._go_on_without_rebalance(request, group, new, leader_before)
            else:
                self._rounds.rebalance_or_complete(group)
        elif group.state is State.COMPLETING_REBALANCE:
            self._rounds.rebalance(group)
        else:
            self._rounds.complete_if_all_joined(group)

    def _go_on_without_rebalance(
        self, request: JoinRequest, group: ClassicGroup, member: ClassicMember, leader_before: str | None
    ) -> None:
        self._rounds.write(group, {member_id: each.assignment for member_id, each in group.members.items()})
        is_leader = group.leader_id == member.member_id
        if request.supports_skipping_assignment:
            answer = joined(group, member.member_id, tells_members=is_leader)._replace(skip_assignment=is_leader)
        else:  # it must not think that it leads, and assign anew
            answer = joined(group, member.member_id)._replace(leader=leader_before)
        self._rounds.answer_join(group, member, answer)

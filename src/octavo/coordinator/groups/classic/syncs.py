"""How members of a classic group get their assignments: `Syncs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.coordinator.groups.classic.group import ClassicGroup, State
from octavo.coordinator.groups.classic.requests import SyncAnswer, SyncRequest
from octavo.coordinator.groups.classic.rounds import Rounds
from octavo.coordinator.shard import Ticket
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard


class Syncs:
    """What a request for an assignment means in each state."""

    def __init__(self, shard: GroupShard, rounds: Rounds) -> None:
        self._shard: Final = shard
        self._rounds: Final = rounds

    def refuse(self, ticket: Ticket, request: SyncRequest, group: ClassicGroup) -> None:
        """Say that the group has no members."""
        self._shard.answer(ticket, SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))

    def refuse_during_joins(self, ticket: Ticket, request: SyncRequest, group: ClassicGroup) -> None:
        """Have the member join again first."""
        self._shard.answer(ticket, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))

    def await_assignment(self, ticket: Ticket, request: SyncRequest, group: ClassicGroup) -> None:
        """Wait for the leader; with its assignments the group is stable, and all who wait are answered."""
        member = group.members[request.member_id]
        if member.sync is not None:  # it asks again, by another connection
            self._shard.answer(member.sync, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        group.change(member, sync=ticket)
        group.pending_sync.pop(member.member_id, None)
        if group.leader_id != member.member_id:
            return
        self._rounds.write(group, request.assignments)
        for each in list(group.members.values()):
            assignment = request.assignments.get(each.member_id, b"")
            group.change(each, assignment=assignment, sync=None)
            if each.sync is not None:
                answer = SyncAnswer(ErrorCode.NONE, group.protocol_type, group.protocol_name, assignment)
                self._shard.answer(each.sync, answer)
                self._rounds.expect(group, each.member_id, each.session_timeout_ms)
        group.enter(State.STABLE, self._rounds.now_ms)

    def tell_assignment(self, ticket: Ticket, request: SyncRequest, group: ClassicGroup) -> None:
        """Tell the assignment that the leader has brought."""
        group.pending_sync.pop(request.member_id, None)
        assignment = group.members[request.member_id].assignment
        self._shard.answer(ticket, SyncAnswer(ErrorCode.NONE, group.protocol_type, group.protocol_name, assignment))


def sync_error(group: ClassicGroup, request: SyncRequest) -> ErrorCode:
    """Return why somebody gets no assignment, whatever the state of the group is; NONE if there is no reason."""
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

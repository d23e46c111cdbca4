"""A group of the classic protocol with very many members."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final

from benchmarks.broker.passes import Pass
from benchmarks.broker.served import Served
from benchmarks.groups.plan import (
    Copy,
    Plan,
    Step,
    ask_until_loaded,
    connect,
    error_position,
    find_coordinator,
    frame,
    position,
)
from octavo.broker.wire.api_keys import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from octavo.client.connection import BrokerConnection
from octavo.errors import ErrorCode

_JOIN: Final = 9
_SYNC: Final = 5
_HEARTBEAT: Final = 4
_LEAVE: Final = 5
_GENERATION_AT: Final = error_position(JOIN_GROUP, _JOIN) + 2
_SESSION_MS: Final = 300_000
_SUBSCRIPTION: Final = bytes.fromhex("0001 00000001 0006") + b"events" + bytes.fromhex("ffffffff 00000000")
_ASSIGNMENT: Final = bytes.fromhex("0001 00000001 0006") + b"events" + bytes.fromhex("00000001 00000000 ffffffff")


class ClassicGroup:
    """The members of a group, each of which has a connection."""

    def __init__(self, broker: Served, group_id: str, members: int) -> None:
        """Let all members join but the last one."""
        self._broker: Final = broker
        self._group_id: Final = group_id
        self._generation = 0
        with connect(broker) as connection:
            find_coordinator(connection, group_id)
            self._members: Final = [self._new_member(connection) for _ in range(members - 1)]
        self._leader: Final = self._members[0]
        self._run(self._plan(self._members[:1], {self._leader}))  # it is alone
        self._run(self._plan(self._members, {*self._members[1:]}))

    def join_and_leave(self) -> Pass:
        """Let another member join, and leave again. Returns what it took until all others had joined and synced."""
        with connect(self._broker) as connection:
            another = self._new_member(connection)
        joined = self._run(self._plan([another, *self._members], {another}))
        plan = self._plan(self._members, set())
        plan.connections.insert(0, (1, [self._leave(another)]))
        return joined + self._run(plan)

    def heartbeats(self, rounds: int) -> Pass:
        """Let all members send heartbeats, each one after the other."""
        plan = Plan()
        for member in self._members:
            plan.add(self._heartbeat(member), rounds=rounds)
        return plan.run(self._broker)

    def _new_member(self, connection: BrokerConnection) -> str:
        """Return the id that the coordinator gives to a new member, which has still to join with it."""
        answer = ask_until_loaded(connection, JOIN_GROUP, self._join_content(""), _JOIN)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
        member_id: str = answer.member_id
        return member_id

    def _run(self, plan: Plan) -> Pass:
        taken = plan.run(self._broker)
        self._generation += 1
        return taken

    def _plan(self, members: Sequence[str], new: Set[str]) -> Plan:
        """Return the plan of a rebalance. Members that are not new hear of it when they send a heartbeat."""
        plan = Plan()
        for member in members:
            sync = self._sync(member, members if member == self._leader else ())
            if member in new:
                plan.add(self._join(member, 1), sync)
            else:
                plan.add(self._heartbeat(member, until=ErrorCode.REBALANCE_IN_PROGRESS), self._join(member, 2), sync)
        return plan

    # --------------------------------------------------------------------------------------------------------- requests

    def _join_content(self, member_id: str) -> dict[str, Any]:
        return {
            "group_id": self._group_id,
            "session_timeout_ms": _SESSION_MS,
            "rebalance_timeout_ms": _SESSION_MS,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": _SUBSCRIPTION}],
        }

    def _join(self, member_id: str, sync_step: int) -> Step:
        to = position(SYNC_GROUP, _SYNC, self._sync_content(member_id, ()), "generation_id")
        return Step(
            frame(JOIN_GROUP, _JOIN, self._join_content(member_id)),
            error_at=error_position(JOIN_GROUP, _JOIN),
            copies=[Copy(_GENERATION_AT, sync_step, to, 4)],
        )

    def _sync_content(self, member_id: str, members: Sequence[str]) -> dict[str, Any]:
        return {
            "group_id": self._group_id,
            "generation_id": 0,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": each, "assignment": _ASSIGNMENT} for each in members],
        }

    def _sync(self, member_id: str, members: Sequence[str]) -> Step:
        content = self._sync_content(member_id, members)
        return Step(frame(SYNC_GROUP, _SYNC, content), error_at=error_position(SYNC_GROUP, _SYNC))

    def _heartbeat(self, member_id: str, until: ErrorCode = ErrorCode.NONE) -> Step:
        content = {"group_id": self._group_id, "generation_id": self._generation, "member_id": member_id}
        return Step(
            frame(HEARTBEAT, _HEARTBEAT, content), error_at=error_position(HEARTBEAT, _HEARTBEAT), proceed=until
        )

    def _leave(self, member_id: str) -> Step:
        content = {"group_id": self._group_id, "members": [{"member_id": member_id}]}
        return Step(frame(LEAVE_GROUP, _LEAVE, content), error_at=error_position(LEAVE_GROUP, _LEAVE))

"""A group of the consumer protocol (KIP-848) with very many members."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from benchmarks.broker.passes import Pass
from benchmarks.broker.served import Served
from benchmarks.groups.plan import (
    Plan,
    Step,
    ask_until_loaded,
    connect,
    error_position,
    find_coordinator,
    frame,
    position,
)
from octavo.broker.wire.api_keys import CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT
from octavo.client.connection import BrokerConnection
from octavo.errors import ErrorCode

_VERSION: Final = 1
_REBALANCE_MS: Final = 300_000
_LEAVES: Final = -1  # the epoch of a member that leaves
_ERROR_AT: Final = error_position(CONSUMER_GROUP_HEARTBEAT, _VERSION)


class ConsumerGroup:
    """The members of a group, each of which has a connection. There should be as many partitions as members."""

    def __init__(self, broker: Served, group_id: str, members: int, topic: str) -> None:
        """Let all members join but the last one, and reach their target."""
        self._broker: Final = broker
        self._group_id: Final = group_id
        self._topic: Final = topic
        self._members: Final = [str(uuid4()) for _ in range(members - 1)]
        self._epochs: Final = dict.fromkeys(self._members, 0)
        with connect(broker) as connection:
            find_coordinator(connection, group_id)
            for member in self._members:
                self._epochs[member] = self._join_now(connection, member)
            self._epoch = self._group_epoch(connection)
        self._run([])

    def join_and_leave(self) -> Pass:
        """Let another member join, and leave again. Returns what it took until all had reached their new target."""
        another = str(uuid4())
        self._epoch += 1
        joined = self._run([self._join(another), self._until_target(another, partitions=1)])
        self._epoch += 1
        return joined + self._run([self._step(another, _LEAVES)])

    def heartbeats(self, rounds: int) -> Pass:
        """Let all members send heartbeats, each one after the other."""
        plan = Plan()
        for member in self._members:
            plan.add(self._step(member, self._epoch), rounds=rounds)
        return plan.run(self._broker)

    def _run(self, first: list[Step]) -> Pass:
        """Let a connection take the first steps, and all members send heartbeats until they are at their target."""
        plan = Plan()
        if first:
            plan.add(*first)
        for member in self._members:
            plan.add(self._until_target(member))
        taken = plan.run(self._broker)
        self._epochs.update(dict.fromkeys(self._members, self._epoch))
        return taken

    def _join_now(self, connection: BrokerConnection, member: str) -> int:
        answer = ask_until_loaded(connection, CONSUMER_GROUP_HEARTBEAT, self._joining(member), _VERSION)
        assert not answer.error_code, answer
        epoch: int = answer.member_epoch
        return epoch

    def _group_epoch(self, connection: BrokerConnection) -> int:
        answer = connection.ask(CONSUMER_GROUP_DESCRIBE, {"group_ids": [self._group_id]})
        (group,) = answer.groups
        assert group.error_code == ErrorCode.NONE, group
        epoch: int = group.group_epoch
        return epoch

    # --------------------------------------------------------------------------------------------------------- requests

    def _content(self, member: str, epoch: int) -> dict[str, Any]:
        return {"group_id": self._group_id, "member_id": member, "member_epoch": epoch}

    def _joining(self, member: str) -> dict[str, Any]:
        return self._content(member, 0) | {
            "rebalance_timeout_ms": _REBALANCE_MS,
            "subscribed_topic_names": [self._topic],
            "topic_partitions": [],
        }

    def _step(self, member: str, epoch: int) -> Step:
        return Step(frame(CONSUMER_GROUP_HEARTBEAT, _VERSION, self._content(member, epoch)), error_at=_ERROR_AT)

    def _join(self, member: str) -> Step:
        return self._followed(member, frame(CONSUMER_GROUP_HEARTBEAT, _VERSION, self._joining(member)), learner=1)

    def _until_target(self, member: str, *, partitions: int = 0) -> Step:
        """Return the step of a member that is repeated; one that has just joined is told its epoch before."""
        content = self._content(member, self._epochs.get(member, 0))
        heartbeat = frame(CONSUMER_GROUP_HEARTBEAT, _VERSION, content)
        return self._followed(member, heartbeat, learner=0 if member in self._epochs else 1, partitions=partitions)

    def _followed(self, member: str, request: bytes, *, learner: int, partitions: int = 0) -> Step:
        content = self._content(member, 0)
        return Step(
            request,
            error_at=_ERROR_AT,
            epoch_at=_ERROR_AT + 2 + 1 + 1 + len(member),  # after the code, no message, and the member's id
            wanted_epoch=self._epoch,
            wanted_partitions=partitions,
            learner=learner,
            epoch_to=position(CONSUMER_GROUP_HEARTBEAT, _VERSION, content, "member_epoch"),
        )

"""Groups of the classic protocol in every state that a hand-over may find them in: `CLASSIC`."""

from __future__ import annotations

import struct
from typing import Any, Final

from octavo.broker.wire import api_keys
from octavo.errors import ErrorCode
from tests.kafka.handed_over import GROUP_TOPIC, LONG_MS, Answers, Case, offset_of, until
from tests.server.group_client import GroupClient

A_WHILE_MS: Final = 3_000


def subscription(topic: str) -> bytes:
    """What a member of a classic group of consumers says: the first version, without owned partitions."""
    name = topic.encode()
    return struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", -1)


def assignment(topic: str, *partitions: int) -> bytes:
    name = topic.encode()
    head = struct.pack(">hih", 0, 1, len(name)) + name
    return head + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions) + struct.pack(">i", -1)


class Classic(Case):
    """A group of the classic protocol; its members' ids are known by names."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ids: Final[dict[str, str]] = {}
        self.generation = -1

    def client(self, address: str) -> GroupClient:
        return GroupClient(address, self.name)

    def enter(self, client: GroupClient, who: str, **changes: Any) -> None:
        """Send the request of a member to join, for which it has got an id."""
        changes = {"session_timeout_ms": LONG_MS, "protocols": [_RANGE], **changes}
        if who not in self.ids:
            answer = client.join(**changes)
            self.ids[who] = answer.member_id
            if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:  # it is static, and has joined
                self.generation = answer.generation_id
                return
        client.send_join(self.ids[who], **changes)
        self.generation = client.joined().generation_id

    def sync(self, client: GroupClient, who: str, **assignments: bytes) -> tuple[int, bytes]:
        sent = {self.ids[each]: content for each, content in assignments.items()}
        client.send_sync(self.ids[who], self.generation, sent)
        answer = client.synced()
        return answer.error_code, bytes(answer.assignment)

    def alone(self, address: str, who: str = "a", **changes: Any) -> None:
        """Have a stable group of one member, which has committed an offset."""
        with self.client(address) as client:
            self.enter(client, who, **changes)
            assert self.sync(client, who, **{who: assignment(GROUP_TOPIC, 0, 1)})[0] == ErrorCode.NONE
            assert client.commit(GROUP_TOPIC, 5, self.ids[who], self.generation) == ErrorCode.NONE

    def leave(self, address: str, who: str, instance_id: str | None = None) -> int:
        member = {"member_id": self.ids[who] if instance_id is None else "", "group_instance_id": instance_id}
        with self.client(address) as client:
            answer = client.ask(api_keys.LEAVE_GROUP, 5, group_id=self.name, members=[{**member, "reason": None}])
        return int(answer.members[0].error_code)

    def described(self, address: str) -> object:
        names = {member_id: who for who, member_id in self.ids.items()}
        with self.client(address) as client:
            [group] = client.ask(api_keys.DESCRIBE_GROUPS, 6, groups=[self.name]).groups
        members = [
            (
                names.get(each.member_id, "?"),
                each.group_instance_id,
                each.client_id,
                each.member_metadata,
                each.member_assignment,
            )
            for each in group.members
        ]
        return (group.error_code, group.group_state, group.protocol_type, group.protocol_data, sorted(members))

    def state(self, address: str) -> str:
        with self.client(address) as client:
            [group] = client.ask(api_keys.DESCRIBE_GROUPS, 6, groups=[self.name]).groups
        return str(group.group_state)

    def looks(self, address: str) -> Answers:
        """What everybody sees, and what a member is told that goes on as if nothing had happened."""
        yield self.described(address)
        yield offset_of(address, self.name, GROUP_TOPIC)
        with self.client(address) as client:
            for generation in (self.generation, self.generation - 1):
                for who, member_id in self.ids.items():
                    yield who, generation, client.heartbeat(member_id, generation)
                    yield client.commit(GROUP_TOPIC, 6, member_id, generation)
            yield client.commit(GROUP_TOPIC, 7)
        yield offset_of(address, self.name, GROUP_TOPIC)

    def another_generation(self, address: str, who: str = "new") -> Answers:
        """Have a new member join, while the others are there no longer."""
        for each in list(self.ids):
            yield each, self.leave(address, each)
        self.ids.clear()
        with self.client(address) as client:
            self.enter(client, who)
            yield self.generation, self.sync(client, who, **{who: assignment(GROUP_TOPIC, 0)})
            yield client.commit(GROUP_TOPIC, 9, self.ids[who], self.generation)
        yield self.described(address)
        yield offset_of(address, self.name, GROUP_TOPIC)

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        yield from self.another_generation(address)


_RANGE: Final = {"name": "range", "metadata": subscription(GROUP_TOPIC)}


class SimpleConsumer(Classic):
    def prepare(self, address: str) -> None:
        with self.client(address) as client:
            assert client.commit(GROUP_TOPIC, 4) == ErrorCode.NONE


class EmptyGroup(Classic):
    def prepare(self, address: str) -> None:
        self.alone(address)
        assert self.leave(address, "a") == ErrorCode.NONE


class StaticMemberGone(Classic):
    def prepare(self, address: str) -> None:
        self.alone(address, group_instance_id="fixed")
        assert self.leave(address, "a", "fixed") == ErrorCode.NONE

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        with self.client(address) as client:
            self.enter(client, "again", group_instance_id="fixed")
            yield self.generation
            yield self.sync(client, "again", again=b"it is back")
        yield self.described(address)


class DeletedGroup(Classic):
    def prepare(self, address: str) -> None:
        self.alone(address)
        assert self.leave(address, "a") == ErrorCode.NONE
        with self.client(address) as client:
            [result] = client.ask(api_keys.DELETE_GROUPS, 2, groups_names=[self.name]).results
        assert result.error_code == ErrorCode.NONE


class Stable(Classic):
    """Two members, of which one leaves then."""

    def prepare(self, address: str) -> None:
        self.two(address)

    def two(self, address: str, *, is_synced: bool = True) -> None:
        self.alone(address)
        with self.client(address) as first, self.client(address) as second:
            joining(self, first, second)
            if is_synced:
                second.send_sync(self.ids["b"], self.generation)
                shares = {"a": assignment(GROUP_TOPIC, 0), "b": assignment(GROUP_TOPIC, 1)}
                assert self.sync(first, "a", **shares) == (ErrorCode.NONE, shares["a"])
                assert second.synced().assignment == shares["b"]

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        with self.client(address) as client:
            for who in self.ids:
                yield self.sync(client, who)
            yield self.leave(address, "b")
            yield client.heartbeat(self.ids["a"], self.generation)
            self.enter(client, "a")
            yield self.generation
        yield from self.another_generation(address)


def joining(case: Classic, first: GroupClient, second: GroupClient) -> None:
    """Have a second member join, and the first come back."""
    case.ids["b"] = second.join(session_timeout_ms=LONG_MS, protocols=[_RANGE]).member_id
    second.send_join(case.ids["b"], session_timeout_ms=LONG_MS, protocols=[_RANGE])
    until(lambda: first.heartbeat(case.ids["a"], case.generation) == ErrorCode.REBALANCE_IN_PROGRESS, case.name)
    case.enter(first, "a")
    assert second.joined().generation_id == case.generation


class CompletingRebalance(Stable):
    """Both have joined, but the leader has not sent the assignment."""

    def prepare(self, address: str) -> None:
        self.two(address, is_synced=False)

    def go_on(self, address: str) -> Answers:
        yield self.generation
        yield from self.looks(address)
        yield from self.another_generation(address)


class FirstCompletingRebalance(Classic):
    """It is the first generation."""

    def prepare(self, address: str) -> None:
        with self.client(address) as client:
            self.enter(client, "a")
            assert client.commit(GROUP_TOPIC, 3) == ErrorCode.UNKNOWN_MEMBER_ID
        assert self.state(address) == "CompletingRebalance"


class PreparingRebalance(Classic):
    """A second member waits for the first to come back."""

    def prepare(self, address: str) -> None:
        self.alone(address)
        with self.client(address) as second:
            self.ids["b"] = second.join(session_timeout_ms=LONG_MS, protocols=[_RANGE]).member_id
            second.send_join(self.ids["b"], session_timeout_ms=LONG_MS, protocols=[_RANGE])
            until(lambda: self.state(address) == "PreparingRebalance", self.name)

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        with self.client(address) as first, self.client(address) as second:
            yield second.join(self.ids["b"], protocols=[_RANGE]).error_code
            joining(self, first, second)
            yield self.generation
        yield from self.another_generation(address)


class StableStatic(Classic):
    def prepare(self, address: str) -> None:
        self.alone(address, group_instance_id="fixed")

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        with self.client(address) as client:
            yield client.heartbeat(self.ids["a"], self.generation, "fixed")
            self.enter(client, "again", group_instance_id="fixed")
            yield self.generation  # it is the same: no rebalance
            yield self.sync(client, "again")
            yield client.heartbeat(self.ids["a"], self.generation, "fixed")
        yield self.described(address)
        yield self.leave(address, "again", "fixed")
        yield self.described(address)


class SilentMember(Classic):
    """A member that does not come back."""

    def prepare(self, address: str) -> None:
        self.alone(address, session_timeout_ms=A_WHILE_MS)

    def go_on(self, address: str) -> Answers:
        until(lambda: self.state(address) == "Empty", self.name)
        yield from self.looks(address)
        yield from self.another_generation(address)


CLASSIC: Final[tuple[type[Case], ...]] = (
    SimpleConsumer,
    EmptyGroup,
    StaticMemberGone,
    DeletedGroup,
    Stable,
    CompletingRebalance,
    FirstCompletingRebalance,
    PreparingRebalance,
    StableStatic,
    SilentMember,
)

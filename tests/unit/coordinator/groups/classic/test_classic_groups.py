"""Groups of the classic protocol: joining, syncing, leaving, static members, time-outs, restarts, failed writes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from octavo.coordinator.groups.classic.group import ClassicGroup, State
from octavo.coordinator.groups.classic.requests import (
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    LeavingMember,
    SyncAnswer,
    SyncRequest,
)
from octavo.coordinator.groups.group_shard import GroupShard
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataValue
from octavo.schemas.consumer_protocol import ConsumerProtocolSubscription
from octavo.schemas.versioned import read_value, write_value
from tests.unit.coordinator.groups.running import Running

GROUP = "g"
SESSION_MS, REBALANCE_MS = 10_000, 60_000


class Waiting(list[Any]):
    """A request; empty until its answer comes."""

    def __call__(self, answer: Any) -> None:
        self.append(answer)

    @property
    def answer(self) -> Any:
        assert len(self) == 1
        return self[0]


def subscription(*topics: str) -> bytes:
    return write_value(ConsumerProtocolSubscription(topics=topics), 0)


class Group(Running):
    """A group, and what its members ask."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**{"group_initial_rebalance_delay_ms": 0, **config})
        self.do(GroupShard.loaded)

    @property
    def group(self) -> ClassicGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    def state(self) -> State:
        return self.group.state

    def join(self, member_id: str = "", *, fails: bool = False, **more: Any) -> Waiting:
        waiting = Waiting()
        request = JoinRequest(
            GROUP,
            member_id,
            more.pop("protocol_type", "consumer"),
            more.pop("protocols", (("range", subscription("t")),)),
            more.pop("session_timeout_ms", SESSION_MS),
            more.pop("rebalance_timeout_ms", REBALANCE_MS),
            client_id="client",
            **more,
        )
        self.do(lambda shard: shard.classic.join(waiting, request), fails=fails)
        return waiting

    def new(self, **more: Any) -> tuple[str, Waiting]:
        """Join as a client does: ask for an id first."""
        member_id: str = self.join(**more).answer.member_id
        return member_id, self.join(member_id, **more)

    def sync(self, member_id: str, generation: int, *, fails: bool = False, **more: Any) -> Waiting:
        waiting = Waiting()
        request = SyncRequest(GROUP, member_id, generation, **more)
        self.do(lambda shard: shard.classic.sync(waiting, request), fails=fails)
        return waiting

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(GROUP, member_id, generation, instance_id)
        code: ErrorCode = self.do(lambda shard: shard.classic.heartbeat(request))
        return code

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        request = LeaveRequest(GROUP, [LeavingMember(*each) for each in members])
        codes: list[ErrorCode] = self.do(lambda shard: shard.classic.leave(request))
        return codes

    def stable(self, number: int = 2, **more: Any) -> list[str]:
        """Have members, and a generation in which each has an assignment; returns their ids, the leader's first."""
        joined = [self.new(**more) for _ in range(number)]
        self.pass_time(0)
        generation = joined[0][1].answer.generation_id
        leader = joined[0][1].answer.leader
        ids = sorted((member_id for member_id, _ in joined), key=lambda each: each != leader)
        for member_id in ids[1:]:
            self.sync(member_id, generation)
        self.sync(ids[0], generation, assignments={each: each.encode() for each in ids})
        assert self.state() is State.STABLE
        return ids


def test_members_join_and_are_told_their_assignments() -> None:
    group = Group()
    assert group.join().answer == JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, "client-1")
    first = group.join("client-1")
    second_id, second = group.new()
    assert (first, second) == ([], [])
    group.pass_time(0)
    assert first.answer.generation_id == 1
    assert first.answer.leader == "client-1"
    assert [each.member_id for each in first.answer.members] == ["client-1", second_id]
    assert second.answer == JoinAnswer(ErrorCode.NONE, second_id, 1, "consumer", "range", "client-1")
    waits = group.sync(second_id, 1, protocol_type="consumer", protocol_name="range")
    assert waits == []
    leads = group.sync("client-1", 1, assignments={second_id: b"two", "stranger": b"?"})
    assert waits.answer == SyncAnswer(ErrorCode.NONE, "consumer", "range", b"two")
    assert leads.answer == SyncAnswer(ErrorCode.NONE, "consumer", "range", b"")
    assert group.heartbeat(second_id, 1) == ErrorCode.NONE


def test_a_first_generation_waits_for_more_members() -> None:
    group = Group(group_initial_rebalance_delay_ms=3_000)
    _, first = group.new()
    group.pass_time(2_000)
    _, second = group.new()
    group.pass_time(1_000)
    assert first == []
    group.pass_time(3_000)
    assert first.answer.generation_id == second.answer.generation_id == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_group_survives_a_restart(restarted: bool) -> None:
    group = Group()
    leader, other = group.stable()
    if restarted:
        group.reload()
    assert group.heartbeat(leader, 1) == ErrorCode.NONE
    assert group.heartbeat(leader, 2) == ErrorCode.ILLEGAL_GENERATION
    assert group.sync(other, 1).answer.assignment == other.encode()
    assert group.join(other).answer.generation_id == 1
    again = group.join(leader)
    assert group.state() is State.PREPARING_REBALANCE
    assert group.heartbeat(other, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    group.join(other)
    assert again.answer.generation_id == 2


def test_who_does_not_join_again_is_left_behind() -> None:
    group = Group()
    leader, other = group.stable()
    waiting = group.join(leader)
    for _ in range(12):
        group.pass_time(5_000)
        group.heartbeat(other, 1)  # it is alive, and does not join
    assert waiting.answer.generation_id == 2
    assert list(group.group.members) == [leader]
    assert group.heartbeat(other, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_not_heard_of_is_removed() -> None:
    group = Group()
    leader, other = group.stable()
    group.pass_time(9_999)
    assert group.heartbeat(leader, 1) == ErrorCode.NONE
    group.pass_time(1)
    assert other not in group.group.members
    assert group.state() is State.PREPARING_REBALANCE
    group.pass_time(SESSION_MS)
    assert group.state() is State.EMPTY
    group.reload()
    assert (group.state(), group.group.generation_id) == (State.EMPTY, 2)


def test_members_leave() -> None:
    group = Group()
    leader, other = group.stable()
    assert group.leave((leader, None), ("stranger", None)) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert group.group.leader_id == other
    assert group.join(other).answer.generation_id == 2
    assert group.leave((other, None)) == [ErrorCode.NONE]
    assert group.state() is State.EMPTY
    assert group.leave((other, None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_who_waits_is_answered_when_it_leaves_or_a_round_begins() -> None:
    group = Group()
    first_id, first = group.new()
    group.pass_time(0)
    second_id, second = group.new()
    assert group.leave((second_id, None)) == [ErrorCode.NONE]
    assert second.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    again = group.join(first_id)
    _, third = group.new()
    last = group.join(first_id)
    assert [each.answer.generation_id for each in (first, again, third, last)] == [1, 2, 3, 3]
    assert third.answer.leader == first_id


def test_a_round_that_begins_again_answers_those_who_wait_for_assignments() -> None:
    group = Group()
    first_id, _ = group.new()
    _, _ = group.new()
    group.pass_time(0)
    follower = next(each for each in group.group.members if each != group.group.leader_id)
    waiting = group.sync(follower, 1)
    group.new()
    assert waiting.answer == SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS)
    assert first_id in group.group.members


def test_who_never_asks_for_its_assignment_is_removed() -> None:
    group = Group()
    first_id, first = group.new()
    second_id, _ = group.new()
    group.pass_time(0)
    leader = first.answer.leader
    silent = second_id if leader == first_id else first_id
    group.sync(leader, 1)
    for _ in range(12):
        group.pass_time(5_000)
        for each in (leader, silent):
            group.heartbeat(each, 1)
    assert silent not in group.group.members


def test_the_protocol_that_most_like_is_chosen() -> None:
    group = Group()
    wishes = [("a", "b"), ("b", "a", "c"), ("b", "a")]
    joined = [group.new(protocols=tuple((name, b"") for name in each), protocol_type="connect") for each in wishes]
    group.pass_time(0)
    assert {waiting.answer.protocol_name for _, waiting in joined} == {"b"}
    assert group.join(protocols=(("c", b""),), protocol_type="connect").answer.error_code == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert group.join(protocols=(("a", b""),)).answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_wrong_joins() -> None:
    group = Group()
    assert group.join("stranger").answer == JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, "stranger")
    assert group.join(session_timeout_ms=5_999).answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert group.join(session_timeout_ms=1_800_001).answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert group.join(protocols=()).answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group.join(protocol_type="").answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    group.stable()
    assert group.join("stranger").answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_is_full() -> None:
    group = Group(group_max_size=2)
    group.stable()
    assert group.join().answer == JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED)


def test_an_id_that_was_given_out_is_not_for_a_static_member() -> None:
    group = Group()
    member_id = group.join().answer.member_id
    assert group.join(member_id, group_instance_id="i").answer == JoinAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)


def test_ids_that_nobody_uses_are_forgotten() -> None:
    group = Group()
    (leader,) = group.stable(1)
    group.join()
    waiting = group.join(leader)
    assert waiting == []  # somebody has an id, and has not joined
    group.pass_time(SESSION_MS)
    assert waiting.answer.generation_id == 2


def test_old_clients_join_at_once() -> None:
    group = Group()
    waiting = group.join(requires_known_member_id=False)
    group.pass_time(0)
    assert waiting.answer.member_id == "client-1"


class TestStaticMembers:
    def joined(self, group: Group, **more: Any) -> str:
        waiting = group.join(group_instance_id="i", **more)
        group.pass_time(0)
        member_id: str = waiting.answer.member_id
        group.sync(member_id, waiting.answer.generation_id, assignments={member_id: b"mine"})
        return member_id

    @pytest.mark.parametrize("skips", [True, False])
    def test_one_that_comes_back_takes_its_place(self, skips: bool) -> None:
        group = Group()
        old_id = self.joined(group)
        answer = group.join(group_instance_id="i", supports_skipping_assignment=skips).answer
        assert answer.generation_id == 1
        assert answer.skip_assignment is skips
        assert answer.leader == (answer.member_id if skips else old_id)
        assert bool(answer.members) is skips
        assert group.sync(answer.member_id, 1).answer.assignment == b"mine"
        assert group.heartbeat(old_id, 1, "i") == ErrorCode.FENCED_INSTANCE_ID
        assert group.heartbeat(old_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
        assert group.heartbeat(answer.member_id, 1, "j") == ErrorCode.UNKNOWN_MEMBER_ID
        group.reload()
        assert group.heartbeat(answer.member_id, 1, "i") == ErrorCode.NONE

    def test_another_protocol_begins_a_round(self) -> None:
        group = Group()
        self.joined(group)
        waiting = group.join(group_instance_id="i", protocols=(("sticky", b""), ("range", subscription("t"))))
        assert waiting.answer.generation_id == 2

    def test_a_replacement_that_cannot_be_written_has_not_happened(self) -> None:
        group = Group()
        old_id = self.joined(group)
        assert group.join(group_instance_id="i", fails=True) == []
        assert group.heartbeat(old_id, 1, "i") == ErrorCode.NONE

    def test_it_is_removed_by_its_instance_id(self) -> None:
        group = Group()
        self.joined(group)
        assert group.leave(("", "i"), ("", "j")) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
        assert group.state() is State.EMPTY

    def test_a_round_waits_for_it_until_its_session_ends(self) -> None:
        group = Group()
        member_id = self.joined(group, session_timeout_ms=120_000)
        _, waiting = group.new()
        group.pass_time(REBALANCE_MS)
        assert waiting.answer.generation_id == 2
        assert member_id in group.group.members


def test_assignments_that_cannot_be_written_leave_everybody_waiting() -> None:
    group = Group()
    leader, other = group.stable()
    joins = [group.join(leader), group.join(other)]
    assert [each.answer.generation_id for each in joins] == [2, 2]
    waiting = group.sync(other, 2)
    failed = group.sync(leader, 2, assignments={other: b"new"}, fails=True)
    assert (waiting, failed, group.state()) == ([], [], State.COMPLETING_REBALANCE)
    group.sync(leader, 2, assignments={other: b"new"})
    assert waiting.answer.assignment == b"new"


def test_a_commit_is_a_sign_of_life() -> None:
    group = Group()
    leader, _ = group.stable()
    for _ in range(3):
        group.pass_time(9_000)
        answer = group.commit(5, member_id=leader, generation_id_or_member_epoch=group.group.generation_id)
        assert answer.error_code == ErrorCode.NONE
    assert list(group.group.members) == [leader]


def test_who_may_commit() -> None:
    group = Group()
    assert group.commit(1).error_code == ErrorCode.NONE  # of a group without members
    leader, other = group.stable()
    by = partial(group.commit, 5)
    assert by().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert by(member_id=leader, generation_id_or_member_epoch=2).error_code == ErrorCode.ILLEGAL_GENERATION
    assert by(member_id="x", generation_id_or_member_epoch=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    group.join(leader)
    assert by(member_id=other, generation_id_or_member_epoch=1).error_code == ErrorCode.NONE  # while others join
    group.join(other)
    assert by(member_id=other, generation_id_or_member_epoch=2).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_topics_that_members_subscribe_to_are_known() -> None:
    group = Group()
    group.stable(protocols=(("range", subscription("t", "u")),))
    assert group.group.subscribed_topics == frozenset({"t", "u"})
    group.reload()
    assert group.group.subscribed_topics == frozenset({"t", "u"})
    assert group.do(lambda shard: shard.delete_group(GROUP)) == ErrorCode.NON_EMPTY_GROUP


def test_a_group_is_deleted_with_its_offsets() -> None:
    group = Group()
    group.commit(5)
    assert group.do(lambda shard: shard.delete_group(GROUP)) == ErrorCode.NONE
    assert group.do(lambda shard: shard.delete_group(GROUP)) == ErrorCode.GROUP_ID_NOT_FOUND
    group.reload()
    assert GROUP not in group.shard.groups
    assert group.committed() == -1


def test_a_group_without_members_and_offsets_goes_away() -> None:
    group = Group(offsets_retention_minutes=1)
    leader, other = group.stable()
    group.commit(5, member_id=leader, generation_id_or_member_epoch=1)
    group.leave((leader, None), (other, None))
    group.pass_time(600_000)
    assert GROUP not in group.shard.groups
    group.reload()
    assert GROUP not in group.shard.groups


def test_whoever_waits_is_told_that_another_coordinator_has_the_group() -> None:
    group = Group()
    _, waiting = group.new()
    group.do(lambda shard: shard.resign())
    assert waiting.answer.error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_leader_of_whom_nothing_else_is_known_does_not_stop_a_group(is_empty: bool) -> None:
    group = Group()
    group.stable()
    (key, value), producer = group.log[-1]  # type: ignore[misc] # a record, no marker
    assert isinstance(value, bytes)
    stored = read_value(GroupMetadataValue, value)
    damaged = replace(stored, leader="nobody", members=() if is_empty else stored.members)
    group.log.append(((key, write_value(damaged, 3)), producer))
    group.reload()
    member_id, joined = group.new()
    group.pass_time(REBALANCE_MS)
    assert (joined.answer.error_code, joined.answer.leader) == (ErrorCode.NONE, member_id)

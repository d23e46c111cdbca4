"""Groups with members of both protocols: upgrades, downgrades, and what classic members are told in consumer groups."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.coordinator.groups.classic.group import ClassicGroup, State
from octavo.coordinator.groups.classic.requests import LeavingMember
from octavo.coordinator.groups.consumer.group import ConsumerGroup
from octavo.errors import ErrorCode
from octavo.schemas.consumer_protocol import ConsumerProtocolAssignment
from octavo.schemas.versioned import write_value
from tests.unit.coordinator.groups.consumer.consumers import (
    GROUP,
    INTERVAL_MS,
    REBALANCE_MS,
    Known,
    Mixed,
    assigned,
    subscription,
)


def classic_group(mixed: Mixed) -> ClassicGroup:
    group = mixed.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    return group


# ------------------------------------------------------------------------------------------------------------ upgrades


def test_an_empty_classic_group_is_replaced() -> None:
    mixed = Mixed()
    mixed.commit(3, topic="t", group=GROUP)  # a group that only has offsets
    assert mixed.join("a").member_epoch == 2
    assert mixed.kinds()[1:] == [-2, 5, 3, 7, 6, 8]
    assert mixed.committed(topic="t", group=GROUP) == 3
    mixed.reload_and_compare()


def test_a_classic_group_is_upgraded_when_somebody_joins_by_the_consumer_protocol() -> None:
    mixed = Mixed(Known(t=2))
    old = mixed.stable_classic(t=(0,))
    length = len(mixed.log)
    answer = mixed.join("new")
    assert (answer.member_epoch, mixed.has(answer)) == (2, {"t": [1]})
    assert mixed.kinds(length) == [-2, 5, 3, 7, 6, 8, 5, 3, 7, 6, 8]
    assert mixed.group.members[old].classic is not None
    mixed.reload_and_compare()
    assert mixed.classic_beat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    again = mixed.classic_join(old, owned={"t": (0,)}).answer
    assert (again.error_code, again.generation_id, again.leader, again.members) == (ErrorCode.NONE, 2, "", ())
    assert (again.protocol_type, again.protocol_name) == ("consumer", "range")
    synced = mixed.classic_sync(old, 2, protocol_type="consumer", protocol_name="range")
    assert assigned(synced.assignment) == {"t": (0,)}
    assert mixed.classic_beat(old, 2) is ErrorCode.NONE


def test_those_who_wait_in_a_classic_group_are_asked_to_join_again() -> None:
    mixed = Mixed()
    first = mixed.classic_join().answer.member_id
    mixed.classic_join(first)
    second = mixed.classic_join().answer.member_id
    waiting = mixed.classic_join(second)
    assert not waiting
    mixed.join("new")
    assert waiting.answer.error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(mixed.group.members) == {first, second, "new"}


@pytest.mark.parametrize(
    ("config", "protocol_type", "because"),
    [
        ({"group_consumer_migration_policy": "disabled"}, "consumer", "online upgrade is disabled."),
        ({"group_consumer_migration_policy": "downgrade"}, "consumer", "online upgrade is disabled."),
        ({}, "connect", "the group does not use the consumer embedded protocol."),
        ({"group_consumer_max_size": 0}, "consumer", "the group size exceeds the consumer group maximum size."),
    ],
)
def test_an_upgrade_that_is_not_possible_is_refused(config: dict[str, Any], protocol_type: str, because: str) -> None:
    mixed = Mixed(**config)
    member_id = mixed.classic_join(protocol_type=protocol_type).answer.member_id
    mixed.classic_join(member_id, protocol_type=protocol_type)
    length = len(mixed.log)
    answer = mixed.join("new")
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == f"Cannot upgrade classic group g to consumer group because {because}"
    assert len(mixed.log) == length
    assert member_id in classic_group(mixed).members


def test_a_group_with_a_custom_assignor_is_not_upgraded() -> None:
    mixed = Mixed()
    member_id = mixed.classic_join().answer.member_id
    mixed.classic_join(member_id)
    custom = write_value(ConsumerProtocolAssignment(assigned_partitions=(), user_data=b"x"), 1)
    mixed.classic_sync(member_id, 1, assignments={member_id: custom})
    answer = mixed.join("new")
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "an unsupported custom assignor is in use" in (answer.error_message or "")
    assert mixed.classic_beat(member_id, 1) is ErrorCode.NONE


# ----------------------------------------------------------------------------------- classic members in consumer groups


def test_a_classic_member_joins_a_consumer_group() -> None:
    mixed = Mixed()
    mixed.join("a")
    required = mixed.classic_join().answer
    assert (required.error_code, required.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "id1")
    mixed.pass_time(INTERVAL_MS)
    joined = mixed.classic_join("id1").answer
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 3)
    assert assigned(mixed.classic_sync("id1", 3).assignment) == {}
    assert mixed.classic_beat("id1", 3) is ErrorCode.NONE  # it waits for what others have
    mixed.beat("a", 2)
    mixed.beat("a", 2, owned={"t": [0, 1]})
    assert mixed.classic_beat("id1", 3) is ErrorCode.REBALANCE_IN_PROGRESS  # it is free now
    joined = mixed.classic_join("id1").answer
    assert assigned(mixed.classic_sync("id1", 3).assignment) == {"t": (2, 3)}
    mixed.reload_and_compare()
    assert mixed.classic_beat("id1", 3) is ErrorCode.NONE
    assert mixed.classic_beat("id1", 2) is ErrorCode.ILLEGAL_GENERATION
    assert mixed.classic_beat("a", 3) is ErrorCode.UNKNOWN_MEMBER_ID  # it does not use that protocol
    assert mixed.classic_beat("x", 3) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("config", "fields", "error"),
    [
        ({"group_consumer_migration_policy": "disabled"}, {}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({}, {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_consumer_max_size": 1}, {}, ErrorCode.GROUP_MAX_SIZE_REACHED),
        ({}, {"protocols": (("range", b""),)}, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_classic_member_that_does_not_fit_is_refused(
    config: dict[str, Any], fields: dict[str, Any], error: ErrorCode
) -> None:
    mixed = Mixed(**config)
    mixed.join("a")
    before = mixed.snapshot()
    assert mixed.classic_join("m", **fields).answer.error_code is error
    assert mixed.snapshot() == before


def keep_alive(mixed: Mixed, classic_id: str, other_id: str) -> None:
    """Have both send heartbeats, and nothing else, for a little longer than a rebalance may take."""
    for _ in range(REBALANCE_MS // 5_000 + 1):
        members = mixed.group.members
        if classic_id in members:
            mixed.classic_beat(classic_id, members[classic_id].member_epoch)
        mixed.beat(other_id, members[other_id].member_epoch)
        mixed.pass_time(5_000)


def test_a_classic_member_that_does_not_join_again_is_removed() -> None:
    mixed = Mixed(Known(t=2))
    old = mixed.stable_classic(t=(0, 1))
    mixed.join("new")
    keep_alive(mixed, old, "new")
    assert set(mixed.group.members) == {"new"}
    mixed.beat("new", mixed.group.members["new"].member_epoch)
    assert set(mixed.group.members["new"].assigned[mixed.topics["t"]]) == {0, 1}


def test_a_classic_member_that_does_not_sync_is_removed() -> None:
    mixed = Mixed(Known(t=1), group_consumer_assignment_interval_ms=0)
    mixed.join("a")
    generation = mixed.classic_join("m").answer.generation_id
    assert mixed.classic_beat("m", generation) is ErrorCode.NONE  # it is not asked to join again
    keep_alive(mixed, "m", "a")
    assert set(mixed.group.members) == {"a"}


def test_sync_is_refused_where_the_protocol_is_another_one() -> None:
    mixed = Mixed()
    mixed.join("a")
    generation = mixed.classic_join("m").answer.generation_id
    for fields in ({"protocol_type": "connect"}, {"protocol_name": "roundrobin"}):
        assert mixed.classic_sync("m", generation, **fields).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    mixed.pass_time(INTERVAL_MS)
    mixed.beat("a", 2)  # computes the target for the epoch that the join has begun
    assert mixed.classic_sync("m", generation).error_code is ErrorCode.REBALANCE_IN_PROGRESS


def test_commits_of_classic_members() -> None:
    mixed = Mixed()
    mixed.join("a")
    generation = mixed.classic_join("m").answer.generation_id
    common: dict[str, Any] = {"topic": "t", "group": GROUP, "member_id": "m", "version": 8}
    assert mixed.commit(1, generation_id_or_member_epoch=generation, **common).error_code is ErrorCode.NONE
    stale = mixed.commit(1, generation_id_or_member_epoch=generation + 1, **common)
    assert stale.error_code is ErrorCode.ILLEGAL_GENERATION


# ---------------------------------------------------------------------------------------------------------- downgrades


@pytest.mark.parametrize("leaves", ["leave", "time-out", "removed"])
def test_a_group_is_downgraded_when_only_classic_members_are_left(leaves: str) -> None:
    mixed = Mixed(Known(t=2), group_consumer_session_timeout_ms=5_000)
    old = mixed.stable_classic(t=(0,))
    mixed.join("new")
    if leaves == "leave":
        mixed.beat("new", -1)
    elif leaves == "time-out":
        mixed.pass_time(5_000)
    else:
        assert mixed.classic_leave(LeavingMember("new"), LeavingMember("x")) == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
    group = classic_group(mixed)
    assert (group.state, group.generation_id, set(group.members)) == (State.PREPARING_REBALANCE, 2, {old})
    assert mixed.kinds()[-1] == 2
    assert mixed.classic_beat(old, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = mixed.classic_join(old).answer
    assert (joined.generation_id, joined.leader) == (3, old)
    mixed.reload()
    assert set(classic_group(mixed).members) == {old}


def test_a_group_is_not_downgraded_where_that_is_not_allowed() -> None:
    mixed = Mixed(Known(t=2), group_consumer_migration_policy="upgrade")
    old = mixed.stable_classic(t=(0,))
    mixed.join("new")
    mixed.beat("new", -1)
    assert set(mixed.group.members) == {old}


@pytest.mark.parametrize(
    ("topics", "generation_id", "state"),
    [(("t",), 2, State.STABLE), (("t", "u"), 0, State.PREPARING_REBALANCE)],  # with others, all have to join again
)
def test_a_static_member_goes_back_to_the_classic_protocol(
    topics: tuple[str, ...], generation_id: int, state: State
) -> None:
    mixed = Mixed(Known(t=2))
    mixed.join("a", instance_id="i")
    joined = mixed.classic_join(group_instance_id="i", topics=topics).answer
    assert (joined.error_code, joined.member_id, joined.generation_id) == (ErrorCode.NONE, "id1", generation_id)
    group = classic_group(mixed)
    assert (group.state, set(group.members)) == (state, {"id1"})
    assert assigned(group.members["id1"].assignment) == {"t": (0, 1)}
    mixed.reload()
    assert set(classic_group(mixed).members) == {"id1"}


def test_an_empty_consumer_group_becomes_a_classic_one() -> None:
    mixed = Mixed()
    mixed.join("a")
    mixed.beat("a", -1)
    assert mixed.classic_join("unknown").answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(mixed.shard.groups[GROUP], ConsumerGroup)
    length = len(mixed.log)
    member_id = mixed.classic_join().answer.member_id
    assert mixed.kinds(length) == [-6, -4, -3, 2]
    assert mixed.classic_join(member_id).answer.leader == member_id
    assert mixed.classic_sync(member_id, 1, assignments={}).error_code is ErrorCode.NONE
    assert mixed.classic_beat(member_id, 1) is ErrorCode.NONE


def test_nobody_syncs_or_leaves_an_empty_consumer_group() -> None:
    mixed = Mixed()
    mixed.join("a")
    mixed.beat("a", -1)
    assert mixed.classic_sync("a", 1).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert mixed.classic_leave(LeavingMember("a")) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert mixed.classic_leave(LeavingMember("", "i")) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("metadata", [b"\0", b"\xff\xfb\0\0\0\0\xff\xff\xff\xff"])
def test_messages_without_a_version_are_malformed(metadata: bytes) -> None:
    mixed = Mixed()
    first = mixed.classic_join(protocols=(("range", metadata),)).answer.member_id
    mixed.classic_join(first, protocols=(("range", metadata),))
    answer = mixed.join("new")
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert (answer.error_message or "").endswith("because the embedded consumer protocol is malformed.")
    assert subscription("t")  # what a good one looks like

"""Groups of the classic protocol over the wire: members join and leave, assignments, committed offsets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from octavo.broker.wire import api_keys
from octavo.coordinator.groups.classic.group import ClassicGroup
from octavo.coordinator.groups.group_shard import GroupShard
from octavo.errors import ErrorCode
from octavo.log.append.readiness import ALLOWANCE, MustWait
from octavo.log.coordinator.coordinator import group_hosts
from octavo.log.coordinator.host import Host
from octavo.server.serving import Server, serve
from tests.server.conversation import CLOSED, Conversation
from tests.server.group_client import GroupClient

CONFIG = {"group.initial.rebalance.delay.ms": "0", "num.partitions": "2"}
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Server]:
    with serve(config=CONFIG) as server:
        server.directory.create_topic("t", 2)
        with GroupClient(server.bootstrap_servers) as client:
            found = client.ask(api_keys.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g"])
            assert found.coordinators[0].error_code == ErrorCode.NONE
        yield server


@pytest.fixture
def group(broker: Server) -> str:
    return f"group-{next(NUMBERS)}"


@pytest.fixture
def first(broker: Server, group: str) -> Iterator[GroupClient]:
    with GroupClient(broker.bootstrap_servers, group) as client:
        yield client


@pytest.fixture
def second(broker: Server, group: str) -> Iterator[GroupClient]:
    with GroupClient(broker.bootstrap_servers, group) as client:
        yield client


def alone(client: GroupClient) -> tuple[str, int]:
    """Make a client the only member of a stable group, and return its id and the generation."""
    member_id = client.join().member_id
    joined = client.join(member_id)
    assert (joined.error_code, joined.leader, joined.member_id) == (ErrorCode.NONE, member_id, member_id)
    assert [each.member_id for each in joined.members] == [member_id]
    client.send_sync(member_id, joined.generation_id, {member_id: b"all"})
    assert client.synced().assignment == b"all"
    return member_id, joined.generation_id


def test_nobody_coordinates_before_the_topic_exists() -> None:
    with serve(config=CONFIG) as server, GroupClient(server.bootstrap_servers) as client:
        server.directory.create_topic("t")
        assert client.join().error_code == ErrorCode.NOT_COORDINATOR
        assert client.join(group_id="").error_code == ErrorCode.INVALID_GROUP_ID
        assert client.join(session_timeout_ms=1).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert client.commit("t", 1) == ErrorCode.NOT_COORDINATOR
        listed = client.ask(api_keys.LIST_GROUPS, 5, states_filter=[], types_filter=[])
        assert (listed.error_code, listed.groups) == (ErrorCode.NONE, ())
        old = client.ask(api_keys.FIND_COORDINATOR, 3, key="g", key_type=0)
        assert (old.error_code, old.error_message) == (ErrorCode.NONE, "NONE")
        assert f"{old.host}:{old.port}" == server.bootstrap_servers
        assert client.join().error_code == ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.parametrize(("version", "key_type"), [(4, 7), (5, 2), (6, 2)])
def test_coordinators_of_other_kinds_are_refused(broker: Server, version: int, key_type: int) -> None:
    with GroupClient(broker.bootstrap_servers) as client:
        found = client.ask(api_keys.FIND_COORDINATOR, version, key_type=key_type, coordinator_keys=["a", "b"])
    assert [(each.key, each.error_code) for each in found.coordinators] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]


def test_a_member_alone(first: GroupClient) -> None:
    member_id, generation = alone(first)
    assert generation == 1
    assert first.heartbeat(member_id, generation) == ErrorCode.NONE
    assert first.heartbeat(member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert first.heartbeat("somebody else", generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert first.commit("t", 5, member_id, generation) == ErrorCode.NONE
    assert first.commit("t", 6, member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert first.commit("t", 6) == ErrorCode.UNKNOWN_MEMBER_ID
    assert first.committed("t") == 5


def test_two_members_share_and_one_leaves(first: GroupClient, second: GroupClient) -> None:
    leader, generation = alone(first)
    other = second.join().member_id
    second.send_join(other)  # waits for the first to come back
    while first.heartbeat(leader, generation) != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    joined = first.join(leader)
    assert joined.generation_id == second.joined().generation_id == generation + 1
    assert {each.member_id for each in joined.members} == {leader, other}
    second.send_sync(other, joined.generation_id)  # waits for the leader
    first.send_sync(leader, joined.generation_id, {leader: b"mine", other: b"yours"})
    assert (first.synced().assignment, second.synced().assignment) == (b"mine", b"yours")
    left = second.ask(
        api_keys.LEAVE_GROUP,
        5,
        group_id=second.group_id,
        members=[
            {"member_id": other, "group_instance_id": None, "reason": "done"},
            {"member_id": "nobody", "group_instance_id": None, "reason": None},
        ],
    )
    assert left.error_code == ErrorCode.NONE
    assert [each.error_code for each in left.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert first.heartbeat(leader, joined.generation_id) == ErrorCode.REBALANCE_IN_PROGRESS
    assert [each.member_id for each in first.join(leader).members] == [leader]


def test_a_member_whose_connection_is_gone_still_waits(broker: Server, first: GroupClient, second: GroupClient) -> None:
    leader, generation = alone(first)
    other = second.join().member_id
    with GroupClient(broker.bootstrap_servers, first.group_id) as gone:
        gone.send_join(other)
        while first.heartbeat(leader, generation) != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
    assert {each.member_id for each in first.join(leader).members} == {leader, other}


def test_a_static_member_comes_back_without_a_rebalance(first: GroupClient, second: GroupClient) -> None:
    joined = first.join(group_instance_id="fixed")
    first.send_sync(joined.member_id, joined.generation_id, {joined.member_id: b"all"})
    first.synced()
    again = second.join(group_instance_id="fixed")
    assert (again.error_code, again.generation_id) == (ErrorCode.NONE, joined.generation_id)
    assert (again.skip_assignment, again.leader) == (True, again.member_id)
    assert again.member_id != joined.member_id
    assert first.heartbeat(joined.member_id, joined.generation_id, "fixed") == ErrorCode.FENCED_INSTANCE_ID
    assert second.heartbeat(again.member_id, again.generation_id, "fixed") == ErrorCode.NONE


@pytest.mark.parametrize("version", range(10))
def test_every_version_of_join_is_answered(first: GroupClient, version: int) -> None:
    joined = first.join(version=version)
    if version >= 4:
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined = first.join(joined.member_id, version=version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")


def test_an_old_leave_has_the_error_of_its_member(first: GroupClient) -> None:
    member_id, _ = alone(first)
    for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        left = first.ask(api_keys.LEAVE_GROUP, 2, group_id=first.group_id, member_id=member_id)
        assert left.error_code == expected


def test_a_sync_must_name_its_protocol(first: GroupClient) -> None:
    member_id, generation = alone(first)
    content: dict[str, Any] = {"group_id": first.group_id, "generation_id": generation, "member_id": member_id}
    content |= {"group_instance_id": None, "assignments": []}
    for named, expected in (
        ((None, "range"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (("consumer", "roundrobin"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (("consumer", "range"), ErrorCode.NONE),
    ):
        names = dict(zip(("protocol_type", "protocol_name"), named, strict=True))
        assert first.ask(api_keys.SYNC_GROUP, 5, **content, **names).error_code == expected
    assert first.ask(api_keys.SYNC_GROUP, 3, **content).assignment == b"all"


def test_commits_to_what_does_not_exist(broker: Server, first: GroupClient) -> None:
    assert first.commit("nowhere", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert first.commit("t", 1, partition=2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert first.commit("t", 1, "somebody", 3) == ErrorCode.GROUP_ID_NOT_FOUND
    topic_id = broker.directory.topics["t"].id.bytes
    offsets = {"committed_offset": 8, "committed_leader_epoch": -1, "committed_metadata": None}
    partitions = [{"partition_index": number, **offsets} for number in (0, 9)]
    answer = first.ask(
        api_keys.OFFSET_COMMIT,
        10,
        group_id=first.group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[{"topic_id": each, "partitions": partitions} for each in (topic_id, b"x" * 16)],
    )
    assert [
        (each.topic_id, [(one.partition_index, one.error_code) for one in each.partitions]) for each in answer.topics
    ] == [
        (topic_id, [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, ErrorCode.NONE)]),
        (b"x" * 16, [(0, ErrorCode.UNKNOWN_TOPIC_ID), (9, ErrorCode.UNKNOWN_TOPIC_ID)]),
    ]


def test_offsets_of_several_groups_by_ids(broker: Server, first: GroupClient) -> None:
    assert first.commit("t", 3) == ErrorCode.NONE
    topic_id = broker.directory.topics["t"].id.bytes
    asked = {"member_id": None, "member_epoch": -1}
    answer = first.ask(
        api_keys.OFFSET_FETCH,
        10,
        groups=[
            {"group_id": first.group_id, **asked, "topics": None},
            {
                "group_id": "unknown",
                **asked,
                "topics": [{"topic_id": each, "partition_indexes": [1]} for each in (topic_id, b"x" * 16)],
            },
        ],
        require_stable=False,
    )
    found = [
        (one.topic_id, [(each.partition_index, each.committed_offset, each.error_code) for each in one.partitions])
        for group in answer.groups
        for one in group.topics
    ]
    assert found == [
        (topic_id, [(0, 3, ErrorCode.NONE)]),
        (topic_id, [(1, -1, ErrorCode.NONE)]),
        (b"x" * 16, [(1, -1, ErrorCode.UNKNOWN_TOPIC_ID)]),
    ]
    old = first.ask(api_keys.OFFSET_FETCH, 5, group_id=first.group_id, topics=None)
    assert [(each.name, each.partitions[0].metadata) for each in old.topics] == [("t", "note")]


def test_groups_are_listed_and_described(first: GroupClient, second: GroupClient) -> None:
    member_id, _ = alone(first)
    found = first.ask(api_keys.DESCRIBE_GROUPS, 6, groups=[first.group_id, "no"], include_authorized_operations=True)
    described, missing = found.groups
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    assert described.authorized_operations == 3400
    [member] = described.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "raw", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"from " + member_id.encode(), b"all")
    assert (missing.error_code, missing.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group no not found.")
    old = first.ask(api_keys.DESCRIBE_GROUPS, 5, groups=["no"], include_authorized_operations=False).groups[0]
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")
    for states, types, is_there in (
        ([], [], True),
        (["stable"], ["Classic"], True),
        (["Empty"], [], False),
        ([], ["consumer"], False),
        (["what is this"], [], False),
    ):
        listed = second.ask(api_keys.LIST_GROUPS, 5, states_filter=states, types_filter=types).groups
        mine = [each for each in listed if each.group_id == first.group_id]
        assert [(each.protocol_type, each.group_state, each.group_type) for each in mine] == (
            [("consumer", "Stable", "classic")] if is_there else []
        )


def test_groups_and_offsets_are_deleted(first: GroupClient) -> None:
    member_id, generation = alone(first)
    first.commit("t", 4, member_id, generation)
    group = first.group_id

    def deleted() -> list[int]:
        results = first.ask(api_keys.DELETE_GROUPS, 2, groups_names=[group, group, "no"]).results
        return [each.error_code for each in results]

    assert deleted() == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
    first.ask(api_keys.LEAVE_GROUP, 0, group_id=group, member_id=member_id)
    content = {"name": "t", "partitions": [{"partition_index": 0}, {"partition_index": 7}]}
    answer = first.ask(api_keys.OFFSET_DELETE, 0, group_id=group, topics=[content])
    assert answer.error_code == ErrorCode.NONE
    assert [(each.partition_index, each.error_code) for each in answer.topics[0].partitions] == [
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, ErrorCode.NONE),
    ]
    assert first.committed("t") == -1
    assert deleted() == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]


def test_groups_go_on_after_a_restart(tmp_path: Path) -> None:
    with serve(tmp_path / "data", config=CONFIG) as server, GroupClient(server.bootstrap_servers) as client:
        server.directory.create_topic("t")
        client.ask(api_keys.FIND_COORDINATOR, 3, key="g", key_type=0)
        member_id, generation = alone(client)
        assert client.commit("t", 5, member_id, generation) == ErrorCode.NONE
    with serve(tmp_path / "data", config=CONFIG) as server, GroupClient(server.bootstrap_servers) as client:
        assert client.heartbeat(member_id, generation) == ErrorCode.NONE
        assert client.committed("t") == 5
        client.send_sync(member_id, generation)
        assert client.synced().assignment == b"all"


def test_what_cannot_be_written_has_not_happened(
    broker: Server, first: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    member_id, generation = alone(first)
    assert first.commit("t", 5, member_id, generation) == ErrorCode.NONE

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("octavo.log.log.Log.append", full)
        assert first.commit("t", 6, member_id, generation) == ErrorCode.NOT_COORDINATOR
        assert first.committed("t") == 5
        assert first.heartbeat(member_id, generation) == ErrorCode.NONE
    assert first.commit("t", 6, member_id, generation) == ErrorCode.NONE
    assert first.committed("t") == 6


def waits_for_assignment(shard: GroupShard, group_id: str, member_id: str) -> bool:
    group = shard.groups[group_id]
    assert isinstance(group, ClassicGroup)
    return group.members[member_id].sync is not None


def test_all_who_wait_are_told_that_the_assignments_cannot_be_written(
    broker: Server, first: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, generation = alone(first)
    with GroupClient(broker.bootstrap_servers, first.group_id) as other:
        member_id = other.join().member_id
        other.send_join(member_id)
        while first.heartbeat(leader, generation) != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        generation = first.join(leader).generation_id
        assert other.joined().generation_id == generation
        other.send_sync(member_id, generation)
        host = group_hosts(broker.directory).host_for(first.group_id)
        while not host.ask(lambda shard: waits_for_assignment(shard, first.group_id, member_id)):
            pass

        def full(*arguments: object, **options: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("octavo.log.log.Log.append", full)
            first.send_sync(leader, generation, {leader: b"1", member_id: b"2"})
            assert first.synced().error_code == ErrorCode.NOT_COORDINATOR
            assert other.synced().error_code == ErrorCode.NOT_COORDINATOR
        for client, each in ((first, leader), (other, member_id)):
            assert client.heartbeat(each, generation) == ErrorCode.REBALANCE_IN_PROGRESS
            client.send_join(each)
        assert first.joined().generation_id == other.joined().generation_id == generation + 1


def test_an_answer_that_another_thread_has_made(
    broker: Server, first: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Host.held

    def held(host: Host[Any]) -> AbstractContextManager[object]:
        if ALLOWANCE.left is not None:
            raise MustWait
        return really(host)

    monkeypatch.setattr(Host, "held", held)
    member_id = first.join().member_id
    first.send_join(member_id)
    with GroupClient(broker.bootstrap_servers, first.group_id) as other:
        while not other.ask(api_keys.DESCRIBE_GROUPS, 5, groups=[first.group_id]).groups[0].members:
            pass
    assert first.joined().generation_id == 1


def test_who_waits_is_answered_when_the_topic_of_groups_is_deleted() -> None:
    with serve(config=CONFIG) as server, GroupClient(server.bootstrap_servers) as client:
        client.ask(api_keys.FIND_COORDINATOR, 3, key="g", key_type=0)
        leader, generation = alone(client)
        with GroupClient(server.bootstrap_servers) as other:
            member_id = other.join().member_id
            other.send_join(member_id)
            while client.heartbeat(leader, generation) != ErrorCode.REBALANCE_IN_PROGRESS:
                pass
            server.directory.delete_topic("__consumer_offsets")
            assert other.joined().error_code == ErrorCode.NOT_COORDINATOR
        assert client.heartbeat(leader, generation) == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("api_key", "version", "ask"),
    [
        (api_keys.DESCRIBE_GROUPS, 5, lambda times: {"groups": ["g"] * times}),
        (api_keys.CONSUMER_GROUP_DESCRIBE, 1, lambda times: {"group_ids": ["g"] * times}),
        (api_keys.OFFSET_FETCH, 8, lambda times: {"groups": [{"group_id": "g", "topics": None}] * times}),
        (api_keys.OFFSET_FETCH, 7, lambda times: {"group_id": "g", "topics": _named("t", [0] * times)}),
        (api_keys.OFFSET_FETCH, 7, lambda times: {"group_id": "g", "topics": _named("t", [0]) * times}),
        (api_keys.DESCRIBE_TRANSACTIONS, 0, lambda times: {"transactional_ids": ["x"] * times}),
    ],
)
def test_nothing_is_told_again_and_again(
    broker: Server, api_key: int, version: int, ask: Callable[[int], dict[str, Any]]
) -> None:
    """A request of a few kilobytes would otherwise have an answer of gigabytes."""
    conversation = Conversation(broker.bootstrap_servers)
    more = {"include_authorized_operations": False, "require_stable": False}
    assert conversation.ask(api_key, version, {**ask(10), **more}) != CLOSED
    assert conversation.ask(api_key, version, {**ask(11), **more}) == CLOSED


def _named(topic: str, partitions: list[int]) -> list[dict[str, Any]]:
    return [{"name": topic, "partition_indexes": partitions}]

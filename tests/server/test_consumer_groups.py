"""Groups of the consumer protocol (KIP-848) over the wire: raw heartbeats, real clients, restarts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from octavo.broker.setting import Source
from octavo.broker.wire import api_keys
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import ErrorCode
from octavo.records import BatchBuilder
from octavo.server.serving import Server, serve
from tests.server.conversation import Conversation
from tests.server.group_client import GroupClient
from tests.server.questions_configs import GROUP, SET, alter
from tests.server.questions_configs import describe as describe_settings
from tests.server.raw import RawClient, header

CONFIG = {
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS = 4
EACH = 25
PATIENCE_S = 60
NUMBERS = itertools.count()


def fill(server: Server) -> None:
    """Create the topic, with records in each partition, and that of the coordinators."""
    server.directory.create_topic("t", PARTITIONS)
    for partition in range(PARTITIONS):
        builder = BatchBuilder()
        for number in range(EACH):
            builder.append(None, b"%d" % number, timestamp_ms=number)
        server.directory.log("t", partition).append(builder.build())
    with GroupClient(server.bootstrap_servers) as client:
        found = client.ask(api_keys.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g"])
        assert found.coordinators[0].error_code == ErrorCode.NONE


@pytest.fixture(scope="module")
def broker() -> Iterator[Server]:
    with serve(config=CONFIG) as server:
        fill(server)
        yield server


@pytest.fixture
def client(broker: Server) -> Iterator[GroupClient]:
    with GroupClient(broker.bootstrap_servers, f"consumers-{next(NUMBERS)}") as client:
        yield client


def beat(client: GroupClient, member_id: str, epoch: int, *, version: int = 1, **fields: Any) -> SimpleNamespace:
    content: dict[str, Any] = {
        "group_id": client.group_id,
        "member_id": member_id,
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": None,
    }
    if not version:
        del content["subscribed_topic_regex"]
    return client.ask(api_keys.CONSUMER_GROUP_HEARTBEAT, version, **(content | fields))


def join(client: GroupClient, member_id: str, **fields: Any) -> SimpleNamespace:
    common: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    return beat(client, member_id, 0, **(common | fields))


def partitions(answer: SimpleNamespace) -> list[int]:
    return [number for topic in answer.assignment.topic_partitions for number in topic.partitions]


def describe(client: GroupClient, group_id: str, version: int = 1) -> SimpleNamespace:
    content = {"group_ids": [group_id], "include_authorized_operations": True}
    answer = client.ask(api_keys.CONSUMER_GROUP_DESCRIBE, version, **content)
    found: SimpleNamespace = answer.groups[0]
    return found


def test_two_members_share_a_topic(broker: Server, client: GroupClient) -> None:
    first = join(client, "a")
    assert (first.error_code, first.member_id, first.member_epoch, first.heartbeat_interval_ms) == (0, "a", 2, 50)
    assert partitions(first) == [0, 1, 2, 3]
    topic_id = broker.directory.topics["t"].id.bytes
    second = join(client, "b")
    assert (second.member_epoch, partitions(second)) == (3, [])
    assert partitions(beat(client, "a", 2)) == [0, 1]
    assert beat(client, "a", 2, topic_partitions=[{"topic_id": topic_id, "partitions": [0, 1]}]).member_epoch == 3
    assert partitions(beat(client, "b", 3)) == [2, 3]
    assert beat(client, "b", 3).assignment is None
    told = describe(client, client.group_id)
    assert (told.error_code, told.group_state, told.group_epoch, told.assignment_epoch) == (0, "Stable", 3, 3)
    assert told.assignor_name == "uniform"
    assert [(each.member_id, each.member_epoch, each.member_type) for each in told.members] == [
        ("a", 3, 1),
        ("b", 3, 1),
    ]
    (assigned,) = told.members[0].assignment.topic_partitions
    assert (assigned.topic_name, bytes(assigned.topic_id), list(assigned.partitions)) == ("t", topic_id, [0, 1])
    assert beat(client, "b", -1).member_epoch == -1
    assert beat(client, "b", 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_errors_are_told_with_their_reasons(client: GroupClient) -> None:
    answer = beat(client, "", 0)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    answer = join(client, "a", server_assignor="zz")
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    answer = join(client, "a", subscribed_topic_regex="k(?=x)")
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert beat(client, "a", 5).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe(client, "").error_code == ErrorCode.INVALID_GROUP_ID
    told = describe(client, client.group_id, version=0)
    assert told.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert told.error_message == f"Group {client.group_id} not found."


def test_an_old_client_gets_an_id(client: GroupClient) -> None:
    answer = join(client, "", version=0)
    assert answer.member_id
    assert partitions(answer) == [0, 1, 2, 3]


def test_a_group_outlives_the_broker(tmp_path: Path) -> None:
    with serve(tmp_path / "data", config=CONFIG) as server:
        fill(server)
        with GroupClient(server.bootstrap_servers, "durable") as client:
            assert join(client, "a").member_epoch == 2
    with serve(tmp_path / "data", config=CONFIG) as server, GroupClient(server.bootstrap_servers, "durable") as client:
        answer = beat(client, "a", 2)
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, None)


def test_the_feature_is_told(broker: Server) -> None:
    with RawClient(broker.bootstrap_servers) as raw:
        body = write_request(api_keys.API_VERSIONS, 4, {"client_software_name": "a", "client_software_version": "1"})
        raw.send(header(api_keys.API_VERSIONS, 4, flexible=True) + body)
        answer = raw.receive()
    assert answer is not None
    told = read_response(api_keys.API_VERSIONS, 4, memoryview(answer)[4:])  # its header is not flexible
    levels = {each.name: each.max_version_level for each in told.finalized_features}
    assert levels["group.version"] == 1
    assert "group.version" in {each.name for each in told.supported_features}


# --------------------------------------------------------------------------------------------------------- real clients


def librdkafka(server: Server, group: str, *topics: str, **settings: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe(list(topics or ("t",)))
    return consumer


def until(is_true: Callable[[], bool], step: Callable[[], object]) -> None:
    """Take steps until something is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline
        step()


def read_all(consumer: Consumer) -> None:
    """Consume everything, and commit it."""
    offsets: list[int | None] = []

    def step() -> None:
        message = consumer.poll(0.05)
        if message is not None:
            assert message.error() is None
            offsets.append(message.offset())

    until(lambda: len(offsets) == PARTITIONS * EACH, step)
    consumer.commit(asynchronous=False)


def has_half(consumer: Consumer) -> bool:
    return len(consumer.assignment()) == PARTITIONS // 2


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_commits_of_a_client_outlive_the_broker(tmp_path: Path, protocol: str) -> None:
    with serve(tmp_path / "data", config=CONFIG) as server:
        fill(server)
        consumer = librdkafka(server, "durable", **{"group.protocol": protocol})
        read_all(consumer)
        consumer.close()
    with serve(tmp_path / "data", config=CONFIG) as server:
        consumer = librdkafka(server, "durable", **{"group.protocol": protocol})
        wanted = [TopicPartition("t", number) for number in range(PARTITIONS)]
        assert [each.offset for each in consumer.committed(wanted, timeout=PATIENCE_S)] == [EACH] * PARTITIONS
        consumer.close()


@pytest.mark.parametrize("protocols", [("classic", "consumer"), ("consumer", "classic")])
def test_members_of_both_protocols_share_a_topic(broker: Server, protocols: tuple[str, str]) -> None:
    group = f"mixed-{protocols[0]}"
    settings = {"classic": {"heartbeat.interval.ms": "50", "session.timeout.ms": "6000"}, "consumer": {}}

    def start(protocol: str) -> Consumer:
        return librdkafka(broker, group, **{"group.protocol": protocol, **settings[protocol]})

    first = start(protocols[0])
    until(lambda: len(first.assignment()) == PARTITIONS, lambda: first.poll(0.02))
    second = start(protocols[1])
    both = [first, second]
    until(lambda: all(map(has_half, both)), lambda: [each.poll(0.02) for each in both])
    first.close()
    until(lambda: len(second.assignment()) == PARTITIONS, lambda: second.poll(0.02))
    second.close()


def test_a_group_has_settings_of_its_own(tmp_path: Path) -> None:
    name = "consumer.heartbeat.interval.ms"
    config = CONFIG | {"group.consumer.session.timeout.ms": "50000"}
    with serve(tmp_path / "data", config=config) as server:
        fill(server)
        with Conversation(server.bootstrap_servers) as conversation:
            for group, value, error in (
                ("own", "700", ErrorCode.NONE),
                ("own", "49", ErrorCode.INVALID_CONFIG),
                ("own", "15001", ErrorCode.INVALID_CONFIG),
            ):
                answer = conversation.ask(*alter(GROUP, group, (name, SET, value)))
                assert answer["responses"][0]["error_code"] == error
        with GroupClient(server.bootstrap_servers, "own") as client:
            joined = join(client, "m")
            assert joined.heartbeat_interval_ms == 700
        with GroupClient(server.bootstrap_servers, "other") as client:
            assert join(client, "m").heartbeat_interval_ms == 50
    with serve(tmp_path / "data", config=config) as server:
        with GroupClient(server.bootstrap_servers, "own") as client:
            assert beat(client, "m", joined.member_epoch).heartbeat_interval_ms == 700
        with Conversation(server.bootstrap_servers) as conversation:
            (told,) = conversation.ask(*describe_settings(GROUP, "own"))["results"]
        found = {each["name"]: (each["value"], each["config_source"]) for each in told["configs"]}
        assert found[name] == ("700", Source.GROUP)
        assert found["consumer.session.timeout.ms"] == ("50000", Source.STATIC)

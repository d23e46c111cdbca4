"""librdkafka's admin client creates, describes, changes and deletes topics."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from octavo.broker.wire.api_keys import FETCH
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import ErrorCode
from octavo.server.serving import Server
from tests.server.raw import RawClient, header

PATIENCE_S = 60


@pytest.fixture
def admin(served: Server) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": served.bootstrap_servers}) as client:
        yield client


@pytest.fixture
def topic(admin: AdminClient) -> str:
    name = f"topic-{uuid.uuid4()}"
    admin.create_topics([NewTopic(name, 3, 1, config={"retention.ms": "1000"})])[name].result(PATIENCE_S)
    return name


def settings(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    return found


def change(admin: AdminClient, topic: str, name: str, value: str | None, operation: AlterConfigOpType) -> None:
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def test_a_topic_is_created_and_described(admin: AdminClient, topic: str, served: Server) -> None:
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(PATIENCE_S)
    assert [each.id for each in described.partitions] == [0, 1, 2]
    assert all(len(each.replicas) == len(each.isr) == 1 for each in described.partitions)
    assert described.topic_id is not None
    assert len(served.directory.topics[topic].partitions) == 3


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (NewTopic("bad name", 1, 1), 17),
        (NewTopic("x" * 250, 1, 1), 17),
        (NewTopic("__cluster_metadata", 1, 1), 42),
        (NewTopic("many", 1, 3), 38),
        (NewTopic("none", 0, 1), 37),
        (NewTopic("odd", 1, 1, config={"no.such.thing": "1"}), 40),
        (NewTopic("odd", 1, 1, config={"retention.ms": "abc"}), 40),
        (NewTopic("assigned", 1, replica_assignment=[[7]]), 39),
    ],
)
def test_a_topic_that_cannot_be_is_refused(admin: AdminClient, wanted: NewTopic, code: int) -> None:
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([wanted])[wanted.topic].result(PATIENCE_S)
    assert refused.value.args[0].code() == code
    assert wanted.topic not in admin.list_topics(timeout=PATIENCE_S).topics


def test_names_that_differ_in_dots_alone_collide(admin: AdminClient) -> None:
    name = f"a.b-{uuid.uuid4()}"
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)
    other = name.replace("a.b", "a_b")
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(other, 1, 1)])[other].result(PATIENCE_S)
    assert refused.value.args[0].code() == 17


def test_a_topic_that_is_only_checked_is_not_created(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("checked", 1, 1)], validate_only=True)["checked"].result(PATIENCE_S)
    assert "checked" not in admin.list_topics(timeout=PATIENCE_S).topics


def test_settings_are_described_and_changed(admin: AdminClient, topic: str, served: Server) -> None:
    found = settings(admin, topic)
    assert len(found) == 33
    assert found["retention.ms"].value == "1000"
    assert not found["retention.ms"].is_default
    assert found["segment.bytes"].is_default
    change(admin, topic, "cleanup.policy", "compact", AlterConfigOpType.APPEND)
    assert settings(admin, topic)["cleanup.policy"].value == "delete,compact"
    change(admin, topic, "cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)
    assert settings(admin, topic)["cleanup.policy"].value == "compact"
    assert served.directory.log(topic, 0).config.is_compacted
    change(admin, topic, "retention.ms", None, AlterConfigOpType.DELETE)
    assert settings(admin, topic)["retention.ms"].value == "604800000"
    with pytest.raises(KafkaException) as refused:
        change(admin, topic, "retention.ms", "5", AlterConfigOpType.APPEND)
    assert refused.value.args[0].code() == 40


def test_a_topic_gets_more_partitions(admin: AdminClient, topic: str, served: Server) -> None:
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(PATIENCE_S)
    assert list(admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions) == [0, 1, 2, 3, 4]
    assert served.directory.log(topic, 4).end_offset == 0
    with pytest.raises(KafkaException) as refused:
        admin.create_partitions([NewPartitions(topic, 5)])[topic].result(PATIENCE_S)
    assert refused.value.args[0].code() == 37


def test_records_are_deleted_and_offsets_listed(admin: AdminClient, topic: str, served: Server) -> None:
    producer = Producer({"bootstrap.servers": served.bootstrap_servers})
    for number in range(10):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    first = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        listed: int = admin.list_offsets({first: spec})[first].result(PATIENCE_S).offset
        return listed

    assert offset(OffsetSpec.latest()) == 10
    deleted = admin.delete_records([TopicPartition(topic, 0, 4)])[TopicPartition(topic, 0, 4)].result(PATIENCE_S)
    assert deleted.low_watermark == 4
    assert offset(OffsetSpec.earliest()) == 4
    everything = TopicPartition(topic, 0, -1)
    assert admin.delete_records([everything])[everything].result(PATIENCE_S).low_watermark == 10


def test_a_deleted_topic_is_gone(admin: AdminClient, topic: str, served: Server) -> None:
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    assert topic not in admin.list_topics(timeout=PATIENCE_S).topics
    with pytest.raises(KafkaException) as refused:
        admin.delete_topics([topic])[topic].result(PATIENCE_S)
    assert refused.value.args[0].code() == 3


def test_a_fetch_that_waits_for_a_topic_is_answered_when_it_is_deleted(
    admin: AdminClient, topic: str, served: Server
) -> None:
    wanted = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "partition_max_bytes": 1_000_000}
    content = {
        "replica_id": -1,
        "max_wait_ms": 600_000,
        "min_bytes": 1,
        "max_bytes": 1_000_000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [wanted]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    with RawClient(served.bootstrap_servers) as client:
        client.send(header(FETCH, 11, flexible=False) + write_request(FETCH, 11, content))
        admin.delete_topics([topic])[topic].result(PATIENCE_S)
        answer = client.receive()
    assert answer is not None
    (response,) = read_response(FETCH, 11, memoryview(answer)[4:]).responses
    assert response.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

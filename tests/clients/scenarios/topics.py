"""Topics, their settings, and records that are deleted."""

from __future__ import annotations

from typing import Final

import pytest

from tests.clients.driver import ClientError, Record
from tests.clients.features import Stage, eventually, feature

_GROUP: Final = "Topics"
_UNKNOWN_TOPIC: Final = 3
_TOPIC_EXISTS: Final = 36
_INVALID_PARTITIONS: Final = 37
_INVALID_CONFIG: Final = 40


@feature(_GROUP, "create a topic", "With partitions and settings; a second time it is TOPIC_ALREADY_EXISTS.")
def create(stage: Stage) -> None:
    stage.client.create_topic(stage.name, 3, {"retention.ms": "1234567"})
    stage.await_partitions(3)
    topic = stage.stored_topic()
    assert topic is not None
    assert (len(topic.partitions), topic.config) == (3, {"retention.ms": "1234567"})
    with pytest.raises(ClientError) as refused:
        stage.client.create_topic(stage.name, 1, {})
    assert refused.value.code == _TOPIC_EXISTS


@feature(_GROUP, "list topics", "All names are told.")
def list_topics(stage: Stage) -> None:
    topic = stage.new_topic()
    assert topic in stage.client.list_topics()
    assert f"{topic}-not" not in stage.client.list_topics()


@feature(_GROUP, "describe a topic", "How many partitions a topic has is told.")
def describe(stage: Stage) -> None:
    topic = stage.new_topic(5)
    assert stage.client.partitions(topic, may_create=True) == 5


@feature(_GROUP, "add partitions", "A topic gets more partitions, which take records; fewer is INVALID_PARTITIONS.")
def add_partitions(stage: Stage) -> None:
    topic = stage.new_topic(1)
    stage.client.add_partitions(topic, 4)
    stage.await_partitions(4)
    stored = stage.stored_topic()
    assert stored is not None
    assert len(stored.partitions) == 4
    with pytest.raises(ClientError) as refused:
        stage.client.add_partitions(topic, 2)
    assert refused.value.code == _INVALID_PARTITIONS
    stage.client.produce(topic, [Record(value=b"there", partition=3)], {})
    assert [record.value for record in stage.stored(3)] == [b"there"]


@feature(_GROUP, "delete a topic", "It is gone; a second time it is UNKNOWN_TOPIC_OR_PARTITION.")
def delete(stage: Stage) -> None:
    topic = stage.new_topic()
    stage.client.delete_topic(topic)
    stage.await_partitions(0)
    assert stage.stored_topic() is None
    with pytest.raises(ClientError) as refused:
        stage.client.delete_topic(topic)
    assert refused.value.code == _UNKNOWN_TOPIC


@feature(_GROUP, "auto-creation", "A topic is created when a record is produced to it.")
def auto_creation(stage: Stage) -> None:
    stage.client.produce(stage.name, [Record(value=b"first")], {})
    assert [record.value for record in stage.stored()] == [b"first"]


@feature(
    _GROUP, "no auto-creation by the client", "A client that does not allow it is told that there is no such topic."
)
def no_auto_creation_by_the_client(stage: Stage) -> None:
    assert stage.client.partitions(stage.name, may_create=False) == 0
    assert stage.stored_topic() is None


@feature(
    _GROUP,
    "no auto-creation by the broker",
    "With auto.create.topics.enable=false there is no such topic, whatever the client allows, until it is created.",
)
def no_auto_creation_by_the_broker(stage: Stage) -> None:
    stage = stage.strict()
    assert stage.client.partitions(stage.name, may_create=True) == 0
    assert stage.stored_topic() is None
    topic = stage.new_topic(2)
    assert stage.client.partitions(topic, may_create=True) == 2


@feature(_GROUP, "describe settings", "All settings of a topic are told, its own and the defaults.")
def describe_settings(stage: Stage) -> None:
    topic = stage.new_topic(cleanup_policy="compact", max_message_bytes="54321")
    settings = stage.client.describe_config(topic)
    expected = {
        "cleanup.policy": "compact",
        "max.message.bytes": "54321",
        "retention.ms": "604800000",
        "compression.type": "producer",
        "min.insync.replicas": "1",
    }
    assert {name: settings.get(name) for name in expected} == expected


@feature(_GROUP, "replace settings", "AlterConfigs: a topic has the settings given, and no others of its own.")
def replace_settings(stage: Stage) -> None:
    topic = stage.new_topic(retention_ms="1000")
    stage.client.replace_config(topic, {"max.message.bytes": "4321"})
    eventually(lambda: stage.stored_settings() == {"max.message.bytes": "4321"})
    with pytest.raises(ClientError) as refused:
        stage.client.replace_config(topic, {"max.message.bytes": "many"})
    assert refused.value.code == _INVALID_CONFIG


@feature(_GROUP, "change settings", "IncrementalAlterConfigs: some settings are set or removed, others stay.")
def change_settings(stage: Stage) -> None:
    topic = stage.new_topic(retention_ms="1000", max_message_bytes="4321")
    stage.client.change_config(topic, {"retention.ms": None, "cleanup.policy": "compact"})
    eventually(lambda: stage.stored_settings() == {"max.message.bytes": "4321", "cleanup.policy": "compact"})
    with pytest.raises(ClientError) as refused:
        stage.client.change_config(topic, {"cleanup.policy": "shred"})
    assert refused.value.code == _INVALID_CONFIG


@feature(_GROUP, "delete records", "Records before an offset are gone for consumers; -1 deletes all.")
def delete_records(stage: Stage) -> None:
    topic = stage.new_topic()
    stage.other.produce(topic, [Record(value=b"%d" % number) for number in range(10)], {})
    assert stage.client.delete_records(topic, 0, 7) == 7
    (first,) = stage.other.consume(topic, 0, "earliest", 1, {})
    assert (first.offset, first.value) == (7, b"7")
    assert stage.client.delete_records(topic, 0, -1) == 10
    assert stage.other.offsets(topic, 0) == (10, 10)

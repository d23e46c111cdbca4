"""A real broker and Octavo on one directory: what either says of its topics, the other goes on with."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.cli import main
from octavo.cli.exits import COULD_NOT_RUN, FINE
from octavo.log import DataDirectory
from octavo.log.files.meta_properties import random_uuid
from octavo.log.files.partition_metadata import write_topic_id
from octavo.log.metadata import MetadataStore, handover
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from tests.kafka import client
from tests.kafka.broker import Broker, Quorum
from tests.kafka.client import (
    OLD_RESOURCES,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from tests.kafka.conftest import NewBroker
from tests.selection import some

pytestmark = OLD_RESOURCES

CONFIG = {"retention.ms": "-1", "segment.bytes": "2097152"}
# Snapshots of the metadata after every few records, and a new segment of its log for every few batches.
MANY_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "500",
    "internal.metadata.log.segment.bytes": "1000",
    "internal.metadata.max.batch.size.in.bytes": "900",
    "metadata.max.idle.interval.ms": "50",
    "metadata.max.retention.bytes": "4000",
    "internal.metadata.delete.delay.millis": "0",
}


def opened(*folders: Path, read_only: bool = True) -> MetadataStore:
    return MetadataStore.open(folders, storage=DISK, read_only=read_only)


@contextmanager
def admin_of(broker: Broker) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    try:
        yield admin
    finally:
        admin.close()


def create(admin: KafkaAdminClient, topics: Mapping[str, int], config: Mapping[str, str] = CONFIG) -> None:
    options = {"replication_factor": 1, "configs": dict(config)}
    new = {name: {"num_partitions": count, **options} for name, count in topics.items()}
    admin.create_topics(new, wait_for_metadata=True)


def told_by(broker: Broker) -> dict[str, tuple[UUID | None, list[int]]]:
    """The topics that the broker knows: id and partitions."""
    return {
        str(topic.name): (topic.topic_id, sorted(partition.partition_index for partition in topic.partitions))
        for topic in client.metadata(broker.port).topics
    }


def known_to(store: MetadataStore) -> dict[str, tuple[UUID | None, list[int]]]:
    return {name: (topic.id, list(topic.partitions)) for name, topic in store.topics.items()}


def config_of(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    """What a topic has of its own."""
    told: dict[str, Any] = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    [described] = told.values()
    return {
        name: entry["value"]
        for name, entry in described[topic].items()
        if "DYNAMIC_TOPIC" in str(entry["config_source"])
    }


def values_in(broker: Broker, topic: str, partition: int, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.address, auto_offset_reset="earliest", consumer_timeout_ms=20_000, group_id=None
    )
    consumer.assign([TopicPartition(topic, partition)])
    values: list[bytes] = []
    for record in consumer:
        values.append(record.value)
        if len(values) == count:
            break
    consumer.close()
    return values


def produce(broker: Broker, topic: str, partition: int, *values: bytes, idempotent: bool = False) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.address, enable_idempotence=idempotent)
    for value in values:
        producer.send(topic, key=b"key", value=value, partition=partition).get(20)
    producer.close()


def write_partition(
    folder: Path, topic_id: UUID, values: list[bytes], *, leader_epoch: int = 0, producer_id: int = -1
) -> None:
    """A log as simple as can be, that was written just now."""
    folder.mkdir()
    write_topic_id(DISK, folder, topic_id)
    first = -1 if producer_id < 0 else 0
    builder = BatchBuilder(
        leader_epoch=leader_epoch, producer_id=producer_id, producer_epoch=first, base_sequence=first
    )
    for value in values:
        builder.append(None, value, timestamp_ms=time.time_ns() // 1_000_000)
    (folder / "00000000000000000000.log").write_bytes(builder.build())


def contents(folder: Path) -> dict[str, bytes]:
    """All files but those that Kafka itself changes at a start: it forgets the epoch of a leader that wrote nothing."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in {".lock", "leader-epoch-checkpoint"}
    }


def assert_no_stray(broker: Broker) -> None:
    assert broker.lines_with("stray") == []
    assert not [path for folder in broker.folders for path in folder.glob("*-stray")]


@pytest.mark.parametrize(
    ("quorum", "settings"),
    some([("dynamic", MANY_SNAPSHOTS), ("static", {}), ("dynamic", {})]),
    ids=["snapshots", "static", "dynamic"],
)
def test_what_a_broker_wrote_is_read_and_added_to_and_the_broker_goes_on_with_it(
    tmp_path: Path, new_broker: NewBroker, quorum: Quorum, settings: dict[str, str]
) -> None:
    data = tmp_path / "data"
    broker = new_broker(data, quorum=quorum, settings=settings)
    broker.format()
    broker.start()
    with admin_of(broker) as admin:
        create(admin, {"orders": 3, "events": 1, "gone": 2})
        resource = ConfigResource(ConfigResourceType.TOPIC, "orders", {"cleanup.policy": "compact"})
        admin.alter_configs([resource])
        admin.delete_topics(["gone"])
        while "gone" in (told := told_by(broker)):
            pass  # the broker follows its controller
        assert known_to(opened(data)) == told  # also while the broker writes
    produce(broker, "orders", 1, b"from Kafka")
    broker.stop()
    if settings:
        snapshots = [
            path for path in (data / "__cluster_metadata-0").glob("*.checkpoint") if not path.name.startswith("0" * 20)
        ]
        assert snapshots

    store = opened(data, read_only=False)
    assert known_to(store) == told
    assert store.topics["orders"].config == {**CONFIG, "cleanup.policy": "compact"}
    assert store.image.features["metadata.version"] == 30
    assert store.image.brokers.keys() == {1}
    assert all(store.folder_of(state) == data for state in store.topics["orders"].partitions.values())

    topic = store.create_topic("ours", 2, {"retention.ms": "12345"})
    write_partition(data / "ours-1", topic.id, [b"from Octavo"])
    store.set_config("orders", {"cleanup.policy": None, "retention.ms": "777"})
    store.delete_topic("events")
    expected = known_to(store)
    broker.start()
    assert told_by(broker) == expected
    with admin_of(broker) as admin:
        assert config_of(admin, "ours") == {"retention.ms": "12345"}
        assert config_of(admin, "orders") == {**CONFIG, "retention.ms": "777"}
        create(admin, {"more": 1})
    assert values_in(broker, "orders", 1, 1) == [b"from Kafka"]
    assert values_in(broker, "ours", 1, 1) == [b"from Octavo"]
    broker.stop()
    assert [line for line in broker.lines_with("stray") if "events-0" not in line] == []
    assert "more" in opened(data).topics


@pytest.mark.parametrize("quorum", ["dynamic", pytest.param("static", marks=pytest.mark.exhaustive)])
def test_a_directory_that_kafka_has_never_seen_is_handed_over_and_served(
    tmp_path: Path, new_broker: NewBroker, quorum: Quorum, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    store = opened(data, read_only=False)
    topic = store.create_topic("orders", 2, CONFIG)
    write_partition(data / "orders-0", topic.id, [b"a", b"b"], leader_epoch=7)
    write_partition(data / "orders-1", topic.id, [b"c"])
    found_id = random_uuid()
    write_partition(data / "found-0", found_id, [b"d"], producer_id=0)
    assert main(["handover", str(data)]) == FINE
    assert "leader epochs brought up to those of the logs: orders-0" in capsys.readouterr().out

    broker = new_broker(data, quorum=quorum)
    broker.start()
    assert told_by(broker) == {"found": (found_id, [0]), "orders": (topic.id, [0, 1])}
    assert values_in(broker, "orders", 0, 2) == [b"a", b"b"]
    assert values_in(broker, "orders", 1, 1) == [b"c"]
    # A producer that is given the id 0 once more would find its first record to be there already.
    produce(broker, "found", 0, b"e", idempotent=True)
    assert values_in(broker, "found", 0, 2) == [b"d", b"e"]
    with admin_of(broker) as admin:
        assert config_of(admin, "orders") == CONFIG
        assert config_of(admin, "found") == {"retention.ms": "-1"}
    produce(broker, "orders", 0, b"e")
    assert main(["handover", str(data)]) == COULD_NOT_RUN  # it is in use
    assert "is in use by process" in capsys.readouterr().err
    broker.stop()
    assert_no_stray(broker)
    assert broker.lines_with("epoch from quorum store") == []

    after = opened(data).topics["orders"]
    assert after.id == topic.id
    assert after.partitions[0].leader_epoch > 7
    assert handover([data]).raised == ()
    broker.start()
    assert values_in(broker, "orders", 0, 3) == [b"a", b"b", b"e"]
    broker.stop()
    assert_no_stray(broker)
    assert broker.troubles == []  # it was closed in good order, and so nothing is checked


def test_a_directory_on_two_disks_is_handed_over(tmp_path: Path, new_broker: NewBroker) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    store = opened(one, two, read_only=False)
    topic = store.create_topic("orders", 4, CONFIG)
    for number, state in topic.partitions.items():
        folder = store.folder_of(state)
        assert folder is not None
        write_partition(folder / f"orders-{number}", topic.id, [b"%d" % number])
    (one / "orders-0").rename(two / "orders-0")
    done = handover([two, one])  # in whatever order
    broker = new_broker(two, one, settings={"metadata.log.dir": done.settings["metadata.log.dir"]})
    broker.start()
    for number in range(4):
        assert values_in(broker, "orders", number, 1) == [b"%d" % number]
    broker.stop()
    assert_no_stray(broker)
    assert (two / "orders-0").is_dir()
    assert not (one / "orders-0").exists()


@pytest.mark.exhaustive
def test_after_a_crash_of_the_broker_its_metadata_are_read_and_added_to(tmp_path: Path, new_broker: NewBroker) -> None:
    data = tmp_path / "data"
    broker = new_broker(data)
    broker.format()
    broker.start()
    with admin_of(broker) as admin:
        create(admin, {"orders": 2})
    for partition in (0, 1):  # Kafka writes a topic's id into a folder with its first append at the latest, not before
        produce(broker, "orders", partition, b"from Kafka")
    told = told_by(broker)
    broker.kill()
    store = opened(data, read_only=False)
    assert known_to(store) == told
    store.create_topic("ours", 1, {})
    expected = known_to(store)
    with (data / "__cluster_metadata-0/00000000000000000000.log").open("ab") as log:
        log.write(os.urandom(100))  # as a crash may leave it
    assert known_to(opened(data)) == expected
    broker.start()
    assert told_by(broker) == expected
    broker.stop()
    assert_no_stray(broker)


def test_a_directory_that_was_formatted_and_never_started_begins_with_what_the_format_says(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    data = tmp_path / "data"
    broker = new_broker(data, quorum="dynamic")
    broker.format()
    store = opened(data, read_only=False)
    topic = store.create_topic("orders", 1, CONFIG)
    assert store.image.features["metadata.version"] == 30  # Kafka 4.3's own
    assert store.cluster_id == broker.cluster_id
    broker.start()
    assert told_by(broker) == {"orders": (topic.id, [0])}
    broker.stop()
    assert_no_stray(broker)


@pytest.mark.exhaustive
def test_a_directory_of_kafka_3_9_is_read_and_added_to_and_kafka_4_goes_on_with_it(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    data = tmp_path / "data"
    old = new_broker(data, release="legacy")
    old.format()
    old.start()
    with admin_of(old) as admin:
        create(admin, {"orders": 2})
    produce(old, "orders", 0, b"from Kafka 3.9")
    told = told_by(old)
    old.stop()
    store = opened(data, read_only=False)
    assert known_to(store) == told
    assert store.topics["orders"].config == CONFIG
    topic = store.create_topic("ours", 1, CONFIG)
    write_partition(data / "ours-0", topic.id, [b"from Octavo"])
    done = handover([data])
    assert done.settings["controller.quorum.voters"] == "1@localhost:9093"  # the log names no voters, as it did then

    broker = new_broker(data)
    broker.start()
    assert told_by(broker) == known_to(store)
    assert values_in(broker, "orders", 0, 1) == [b"from Kafka 3.9"]
    assert values_in(broker, "ours", 0, 1) == [b"from Octavo"]
    broker.stop()
    assert_no_stray(broker)


@pytest.mark.exhaustive
def test_where_the_cluster_is_of_an_old_metadata_version_partitions_are_added_in_that(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    data = tmp_path / "data"
    broker = new_broker(data)
    broker.format(metadata_version="3.6-IV2")  # partitions have no directories yet
    broker.start()
    with admin_of(broker) as admin:
        create(admin, {"orders": 1})
    broker.stop()
    store = opened(data, read_only=False)
    assert store.topics["orders"].partitions[0].directories == ()
    topic = store.create_topic("ours", 1, {})
    assert topic.partitions[0].directories == ()
    write_partition(data / "ours-0", topic.id, [b"from Octavo"], leader_epoch=3)
    assert [partition.folder for partition in handover([data]).raised] == ["ours-0"]
    broker.start()
    assert told_by(broker) == known_to(store)
    assert values_in(broker, "ours", 0, 1) == [b"from Octavo"]
    broker.stop()
    assert_no_stray(broker)


def test_where_the_metadata_have_a_folder_of_their_own_kafka_finds_new_partitions_under_its_unchanged_settings(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    """And only what was asked for is changed: opening and closing what a broker has closed leaves it as it was."""
    data, meta = tmp_path / "data", tmp_path / "meta"
    broker = new_broker(data, settings={"metadata.log.dir": str(meta)})
    broker.format()
    broker.start()
    with admin_of(broker) as admin:
        create(admin, {"orders": 1})
    produce(broker, "orders", 0, b"from Kafka")
    broker.stop()
    before = contents(data)
    with DataDirectory.open([data, meta]) as opened_pair:
        assert opened_pair.log("orders", 0).high_watermark == 1
    assert contents(data) == before
    with DataDirectory.open([data, meta]) as opened_pair:
        opened_pair.create_topic("ours", 2, CONFIG)
        builder = BatchBuilder()
        builder.append(None, b"from Octavo", timestamp_ms=time.time_ns() // 1_000_000)
        for partition in range(2):
            opened_pair.log("ours", partition).append(builder.build())
    done = handover([data, meta])
    assert (done.settings["log.dirs"], done.settings["metadata.log.dir"]) == (str(data), str(meta))
    assert {difference.name for difference in done.differences} == {"listeners", "controller.listener.names"}
    broker.start()
    assert [values_in(broker, "ours", partition, 1) for partition in range(2)] == [[b"from Octavo"]] * 2
    broker.stop()
    assert_no_stray(broker)
    with DataDirectory.open([data, meta]) as opened_pair:
        assert [opened_pair.log("ours", partition).end_offset for partition in range(2)] == [1, 1]


def test_kafka_takes_no_directory_for_unclean_that_octavo_has_closed_also_with_a_new_folder(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    broker = new_broker(old)
    broker.format()
    broker.start()
    with admin_of(broker) as admin:
        create(admin, {"orders": 1})
    broker.stop()
    with DataDirectory.open([old, new]) as data:
        data.create_topic("ours", 2)
    broker = new_broker(old, new, settings={"metadata.log.dir": str(old)})
    broker.start()
    assert broker.lines_with("UNCLEAN partition change", "handleBrokerUncleanShutdown") == []
    broker.stop()

"""Disks that change hands between brokers of both kinds, and a disk that fails."""

from __future__ import annotations

import json
import resource
import shutil
from typing import Final

import pytest
from confluent_kafka import KafkaError, Message, Producer

from octavo.log.followed.followed_metadata import FollowedMetadata
from tests.cluster.nodes import Cluster, Kind, Node
from tests.cluster.replicas import expect_equal_replicas

TOPIC: Final = "disks"
NUMBER: Final = 2
COUNT: Final = 300
VALUE: Final = bytes(1000)
LIMIT: Final = 20_000  # less than any log, and more than what the broker says of it
PATIENCE_MS: Final = 25_000  # less than the time after which a producer asks again


def produce(cluster: Cluster) -> None:
    """Produce to all partitions with acks=all. It fails if a leader leaves a request unanswered."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    settings = {"bootstrap.servers": cluster.address, "acks": "all", "message.timeout.ms": PATIENCE_MS, "log_level": 0}
    producer = Producer(settings)
    for number in range(COUNT):
        producer.produce(TOPIC, VALUE, partition=number % 3, on_delivery=delivered)
    assert producer.flush(60) == 0
    assert not failed


def marked_epoch(broker: Node) -> int | None:
    """The broker epoch in the mark of a clean shutdown; None if there is no mark."""
    path = broker.data / ".kafka_cleanshutdown"
    if not path.exists():
        return None
    epoch: int = json.loads(path.read_bytes())["brokerEpoch"]
    return epoch


def registered_epoch(broker: Node) -> int:
    """The broker epoch in the metadata that a broker has left."""
    metadata = FollowedMetadata(broker.data)
    try:
        return metadata.image.brokers[broker.node_id].broker_epoch
    finally:
        metadata.close()


def test_damaged_metadata_are_fetched_anew(cluster: Cluster) -> None:
    """The controllers have them all. An epoch of theirs that never was does not keep a broker from finding them."""
    broker = cluster.brokers[NUMBER]
    if broker.kind == "kafka":
        pytest.skip("a broker of Apache Kafka does not start then")
    cluster.create(TOPIC, 3)
    produce(cluster)
    broker.stop()
    metadata = broker.data / "__cluster_metadata-0"
    (metadata / f"{10**6:020}-{1:010}.checkpoint").write_bytes(b"garbage")
    (metadata / "quorum-state").write_text(json.dumps({"leaderId": -1, "leaderEpoch": 1 << 20, "data_version": 1}))
    broker.start()
    assert broker.lines_with("metadata on the disk are damaged")
    [aside] = broker.data.glob("__cluster_metadata-0.*-stray")
    shutil.rmtree(aside)
    cluster.await_in_sync(TOPIC)
    assert json.loads((metadata / "quorum-state").read_bytes())["leaderEpoch"] < 1 << 20
    produce(cluster)
    cluster.delete(TOPIC)


@pytest.mark.soak(40)
@pytest.mark.parametrize("kill", [False, True])
def test_a_directory_changes_hands(cluster: Cluster, kill: bool) -> None:
    """Whoever finds it knows how it was left: after a clean stop nothing is checked, and after a crash everything."""
    broker = cluster.brokers[NUMBER]
    cluster.create(TOPIC, 3)
    kinds: tuple[Kind, ...] = ("kafka", "octavo", "kafka", "octavo")
    try:
        for kind in kinds:
            produce(cluster)
            if kill:
                broker.kill()
                assert marked_epoch(broker) is None
            else:
                broker.stop()
                assert marked_epoch(broker) == registered_epoch(broker)
            broker.kind = kind
            broker.start()
            cluster.await_in_sync(TOPIC)
            if kind == "kafka":
                # The task for retention begins before there is a cleaner, if it begins at once, as in these tests.
                assert bool([line for line in broker.troubles if "kafka-log-retention" not in line]) is kill
                assert not broker.lines_with("stray")
            else:
                assert not broker.lines_with("damaged", "stray", "has failed")
        produce(cluster)
        expect_equal_replicas(cluster, [TOPIC])
    finally:
        broker.kind = "octavo"
        cluster.admin.delete_topics([TOPIC])[TOPIC].result(60)


def test_a_broker_whose_disk_fails_makes_way(cluster: Cluster) -> None:
    """It says so and stops, others lead at once, and it comes back when the disk is well again."""
    broker = cluster.brokers[NUMBER]
    cluster.create(TOPIC, 3)
    try:
        produce(cluster)
        resource.prlimit(broker.process_id, resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        produce(cluster)
        broker.await_end()
        assert broker.lines_with("the disk has failed")
        assert marked_epoch(broker) is None
        broker.start()
        cluster.await_in_sync(TOPIC)
        produce(cluster)
        expect_equal_replicas(cluster, [TOPIC])
    finally:
        cluster.admin.delete_topics([TOPIC])[TOPIC].result(60)

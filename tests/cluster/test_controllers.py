"""Brokers of Octavo and controllers of Apache Kafka that are killed, hang, or have features of an older release."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kio.schema.update_features.v2 import UpdateFeaturesRequest, UpdateFeaturesResponse
from kio.schema.update_features.v2.request import FeatureUpdateKey
from kio.static.primitive import i8, i16, i32Timedelta

from tests.cluster.network import Network
from tests.cluster.nodes import PATIENCE_S, Cluster, Kind, Node, wait_until
from tests.kafka.client import ask
from tests.kafka.cluster import write_meta_properties
from tests.kafka.releases import Name


@pytest.fixture
def cluster(java: str, other_network: Network, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, other_network, {1: "octavo", 2: "octavo"}, controllers=3) as cluster:
        cluster.create("led-by-each", 2)
        yield cluster


def _isr(cluster: Cluster, partition: int, asked: int) -> set[int]:
    state = cluster.partitions("led-by-each", asked=cluster.brokers[asked]).get(partition)
    return set() if state is None else state.isr


def _write(cluster: Cluster) -> None:
    """Write to the first partitions what only the leaders need to have."""
    producer = Producer({"bootstrap.servers": cluster.address, "acks": 1, "log_level": 0})
    for partition in (0, 1):
        producer.produce("led-by-each", b"value", partition=partition)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.soak(20)
def test_the_active_controller_is_killed(cluster: Cluster) -> None:
    killed = cluster.active
    killed.kill()
    cluster.admin.create_topics([NewTopic("new", 1, 2)])["new"].result(
        PATIENCE_S
    )  # forwarded to whoever is active then
    cluster.await_in_sync("led-by-each", "new")
    killed.start()
    cluster.await_live()


@pytest.mark.soak(20)
def test_replicas_leave_and_join_while_a_controller_hangs(cluster: Cluster) -> None:
    hanging = cluster.active
    hanging.pause()
    cluster.network.cut(1, 2)
    cluster.network.cut(2, 1)
    _write(cluster)
    wait_until(lambda: _isr(cluster, 0, 1) == {1}, "the follower stays in sync")
    wait_until(lambda: _isr(cluster, 1, 2) == {2}, "the follower stays in sync")
    cluster.network.heal()
    cluster.await_in_sync("led-by-each")
    hanging.resume()
    cluster.await_live()


@pytest.mark.soak(20)
def test_a_replaced_disk_can_lead(cluster: Cluster) -> None:
    """The controller gives the leadership to nobody whose directory it does not know."""
    _write(cluster)
    first, second = cluster.brokers.values()
    second.stop()
    shutil.rmtree(second.data)
    second.data.mkdir()
    write_meta_properties(second.data, second.node_id)
    second.start()
    cluster.await_in_sync("led-by-each")
    first.kill()
    wait_until(lambda: _leaders(cluster) == {2}, "it does not lead")


@pytest.mark.soak(40)
@pytest.mark.parametrize("metadata_version", ["3.3", "3.7", "4.0"])
def test_an_older_cluster_is_upgraded(java: str, other_network: Network, tmp_path: Path, metadata_version: str) -> None:
    kinds: dict[int, Kind] = {1: "kafka", 2: "octavo", 3: "octavo"}
    with Cluster(tmp_path, other_network, kinds, metadata_version=metadata_version) as cluster:
        cluster.create("led-by-each", 3)
        _write(cluster)
        _restart_each(cluster)
        _upgrade(cluster.brokers[2], "metadata.version", 30)
        _write(cluster)
        cluster.create("new", 3)
        _restart_each(cluster)
        if metadata_version == "4.0":
            _upgrade(cluster.brokers[3], "eligible.leader.replicas.version", 1)
            _restart_each(cluster)
        assert not [line for node in cluster.of_kind("octavo") for line in node.said if "has fenced" in line]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "release", ["legacy", *(pytest.param(each, marks=pytest.mark.soak(25)) for each in ("4.0", "4.1", "4.2"))]
)
def test_a_cluster_of_another_release_has_members(
    java: str, other_network: Network, tmp_path: Path, release: Name
) -> None:
    """The metadata log, registrations, heartbeats, changes of ISRs, forwarded requests and producer ids."""
    with Cluster(tmp_path, other_network, {1: "kafka", 2: "octavo"}, release=release) as cluster:
        cluster.create("led-by-each", 2)
        _write(cluster)
        producer = Producer({"bootstrap.servers": cluster.brokers[2].address, "enable.idempotence": True})
        producer.produce("led-by-each", b"value", partition=1)
        assert producer.flush(PATIENCE_S) == 0
        cluster.brokers[2].stop()
        wait_until(lambda: _isr(cluster, 0, 1) == {1}, "it stays in sync")
        cluster.brokers[2].start()
        cluster.await_in_sync("led-by-each")
        cluster.brokers[1].kill()  # it was in sync, and the other one can lead all
        wait_until(lambda: _leaders(cluster) == {2}, "it does not lead")


def _upgrade(broker: Node, feature: str, level: int) -> None:
    update = FeatureUpdateKey(feature=feature, max_version_level=i16(level), upgrade_type=i8(1))
    timeout = i32Timedelta.parse(timedelta(seconds=PATIENCE_S))
    question = UpdateFeaturesRequest(timeout=timeout, feature_updates=(update,), validate_only=False)
    host, _, port = broker.address.rpartition(":")
    told = ask(int(port), question, UpdateFeaturesResponse, host=host)
    assert not told.error_code, told.error_message


def _restart_each(cluster: Cluster) -> None:
    topics = sorted(set(cluster.admin.list_topics().topics) - {"__consumer_offsets", "__transaction_state"})
    for number, broker in cluster.brokers.items():
        broker.stop() if number % 2 else broker.kill()
        broker.start()
        cluster.await_in_sync(*topics)
    _write(cluster)


def _leaders(cluster: Cluster) -> set[int]:
    return {each.leader for each in cluster.partitions("led-by-each", asked=cluster.brokers[2]).values()}

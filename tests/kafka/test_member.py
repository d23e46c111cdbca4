"""An Octavo broker joins controllers of Apache Kafka, follows and leads partitions with one of its brokers, and leaves.

One controller and one broker of Apache Kafka serve all tests here; the Octavo broker is in this process.
"""

from __future__ import annotations

import itertools
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0 import UnregisterBrokerRequest, UnregisterBrokerResponse

import octavo
from octavo.broker.member.member import Member
from octavo.broker.wire.api_keys import CREATE_TOPICS
from octavo.client.connection import BrokerConnection
from octavo.cluster.life_cycle import State
from octavo.errors import BadDirectory, CannotJoin
from octavo.server.serving import Server
from tests.kafka.broker import Broker
from tests.kafka.client import ask
from tests.kafka.cluster import SESSION_MS, StockCluster, write_meta_properties
from tests.kafka.releases import KafkaUnavailable, do_without
from tests.ports import free_port

KAFKA: Final = 2
_IDS: Final = itertools.count(3)  # of Octavo brokers: the controller remembers each for a while
PATIENCE_S: Final = 60
_ASK_AGAIN_S: Final = 0.02


@pytest.fixture(scope="module")
def cluster(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockCluster]:
    try:
        made = StockCluster(tmp_path_factory.mktemp("member"))
    except KafkaUnavailable as reason:
        do_without(reason)
    with made as cluster:
        cluster.start()
        broker = cluster.new_broker(KAFKA, settings={"offsets.topic.replication.factor": "1"})
        broker.start()
        yield cluster


class Joining:
    """Starts Octavo brokers of a cluster on one folder."""

    def __init__(self, cluster: StockCluster, folder: Path) -> None:
        self.folder: Final = folder
        self.node_id: Final = next(_IDS)
        self.said: Final[list[str]] = []
        port = free_port()
        self.config: Final = {
            "process.roles": "broker",
            "node.id": str(self.node_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": cluster.bootstrap,
            "log.dirs": str(folder),
            "broker.heartbeat.interval.ms": "200",
            "replica.fetch.backoff.ms": "50",
            "offsets.topic.replication.factor": "1",
        }

    def __call__(self, changes: Mapping[str, str] | None = None) -> Server:
        return octavo.serve(config=self.config | dict(changes or {}), say=self.said.append)


@pytest.fixture
def join(cluster: StockCluster, tmp_path: Path) -> Joining:
    return Joining(cluster, tmp_path / "octavo")


@pytest.fixture
def kafka(cluster: StockCluster) -> Broker:
    return cluster.brokers[KAFKA]


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(_ASK_AGAIN_S)


def member_of(server: Server) -> Member:
    assert server.broker.member is not None
    return server.broker.member


def create(broker: Broker, topic: str, *replicas: int) -> None:
    """Create a topic with one partition. A client would look for a controller, and find brokers of earlier tests."""
    new = {
        "name": topic,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": list(replicas)}],
        "configs": [{"name": "min.insync.replicas", "value": "2"}],
    }
    with BrokerConnection("127.0.0.1", broker.port) as connection:
        asked = {"topics": [new], "timeout_ms": 1000 * PATIENCE_S, "validate_only": False}
        assert connection.ask(CREATE_TOPICS, asked).topics[0].error_code == 0


def produce(address: str, topic: str, count: int) -> None:
    failed: list[KafkaError] = []

    def note(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 5, "log_level": 0})
    for number in range(count):
        producer.produce(topic, b"value %d" % number, on_delivery=note)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert not failed


def isr(broker: Broker, topic: str) -> tuple[int, set[int]]:
    """Return the leader of a topic's partition and the replicas in sync, as Apache Kafka knows them."""
    found = AdminClient({"bootstrap.servers": broker.address}).list_topics(topic, timeout=PATIENCE_S)
    partition = found.topics[topic].partitions[0]
    return partition.leader, set(partition.isrs)


def records(folder: Path, topic: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((folder / f"{topic}-0").glob("*.log")))


def check_equal(join: Joining, kafka: Broker, server: Server, topic: str, count: int) -> None:
    """Check that both have all records, and that their files are the same."""
    log = server.directory.log(topic, 0)
    wait_until(lambda: log.high_watermark == log.end_offset == count)
    wait_until(lambda: records(join.folder, topic) == records(kafka.folders[0], topic))


def test_a_broker_follows_and_leads_and_comes_back(join: Joining, kafka: Broker) -> None:
    with join() as server:
        for topic, leader, follower in (("followed", KAFKA, join.node_id), ("led", join.node_id, KAFKA)):
            create(kafka, topic, leader, follower)
            produce(kafka.address, topic, 2000)
            assert isr(kafka, topic) == (leader, {KAFKA, join.node_id})
            check_equal(join, kafka, server, topic, 2000)
        epoch = member_of(server).life.broker_epoch
    assert isr(kafka, "led") == (KAFKA, {KAFKA})  # the leader has moved before the broker stopped
    assert f'"brokerEpoch":{epoch}}}' in (join.folder / ".kafka_cleanshutdown").read_text()
    with join() as server:  # which the controller refuses until it has forgotten the last run
        assert member_of(server).life.broker_epoch > epoch
        wait_until(lambda: isr(kafka, "led") == (KAFKA, {KAFKA, join.node_id}))
        produce(kafka.address, "led", 500)
        check_equal(join, kafka, server, "led", 2500)
        assert len(server.directory.log("led", 0).epochs) == 2
    assert not [said for said in join.said if "has fenced" in said]


def test_a_fenced_broker_says_so_and_comes_back(join: Joining, kafka: Broker) -> None:
    with join() as server:
        create(kafka, "fenced", join.node_id, KAFKA)
        produce(kafka.address, "fenced", 10)
        life = member_of(server).life
        next_request = life.next_request
        life.next_request = lambda *_: None  # type: ignore[method-assign] # the controller hears nothing for a while
        wait_until(lambda: any("has fenced this broker" in said for said in join.said))
        wait_until(lambda: isr(kafka, "fenced") == (KAFKA, {KAFKA}))
        life.next_request = next_request  # type: ignore[method-assign] # as before
        wait_until(lambda: any("has let this broker in again" in said for said in join.said))
        wait_until(lambda: isr(kafka, "fenced") == (KAFKA, {KAFKA, join.node_id}))


@pytest.mark.exhaustive
def test_a_broker_whose_disk_is_slow_is_not_fenced(join: Joining, kafka: Broker) -> None:
    """Reads hold up the thread that sends heartbeats, for longer than a session lasts."""
    with join() as server:
        create(kafka, "slow", join.node_id, KAFKA)
        member, is_over = member_of(server), threading.Event()
        wait_until(lambda: isr(kafka, "slow") == (join.node_id, {KAFKA, join.node_id}))

        def read() -> None:
            time.sleep(2.5 * SESSION_MS / 1000)
            is_over.set()

        server._reactor.call(read)
        assert is_over.wait(PATIENCE_S)
        applied = member.publishing.offset
        wait_until(lambda: member.publishing.offset > applied)  # it hears of what happened meanwhile
        assert isr(kafka, "slow")[0] == join.node_id
        assert not [said for said in join.said if "has fenced" in said]


def test_metadata_that_cannot_be_taken_over_end_the_broker_in_order(
    join: Joining, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with join() as server:
        create(kafka, "before", join.node_id, KAFKA)
        produce(kafka.address, "before", 10)
        member = member_of(server)

        def fail(end_offset: int) -> None:
            raise BadDirectory(join.folder, "a record makes no sense")

        monkeypatch.setattr(server.directory.metadata, "apply", fail)  # type: ignore[attr-defined] # of a member
        create(kafka, "after", KAFKA, join.node_id)
        assert member.has_ended.wait(PATIENCE_S)
        assert member.failure is not None
        assert "new metadata cannot be taken over" in member.failure
        assert "a record makes no sense" in member.failure
        wait_until(lambda: not server.is_serving)
        assert isr(kafka, "before") == (KAFKA, {KAFKA})


def test_a_disk_that_fails_is_reported_before_the_broker_stops(join: Joining, kafka: Broker) -> None:
    with join() as server:
        create(kafka, "disk", join.node_id, KAFKA)
        produce(kafka.address, "disk", 10)
        server.broker.troubles.failed("something", OSError(5, "Input/output error"))
        assert member_of(server).has_ended.wait(PATIENCE_S)
        wait_until(lambda: not server.is_serving)
        wait_until(lambda: isr(kafka, "disk") == (KAFKA, {KAFKA}))
    assert [said for said in join.said if "disk has failed" in said] == [
        "the disk has failed: Input/output error",
        "the broker stops: its disk has failed",
    ]


def test_a_broker_that_was_unregistered_says_so_and_comes_back_when_it_is_started_again(
    join: Joining, kafka: Broker
) -> None:
    with join() as server:
        create(kafka, "unregistered", join.node_id, KAFKA)
        produce(kafka.address, "unregistered", 10)
        unregister = UnregisterBrokerRequest(broker_id=BrokerId(join.node_id))
        assert ask(kafka.port, unregister, UnregisterBrokerResponse).error_code == 0
        wait_until(lambda: any("was unregistered" in said for said in join.said))
        wait_until(lambda: isr(kafka, "unregistered") == (KAFKA, {KAFKA}))
        server.hurry()
    with join():
        wait_until(lambda: isr(kafka, "unregistered") == (KAFKA, {KAFKA, join.node_id}))


def test_a_folder_of_another_cluster_is_refused(join: Joining) -> None:
    join.folder.mkdir()
    write_meta_properties(join.folder, join.node_id, cluster_id="AnotherClusterAltogeth")
    with pytest.raises(CannotJoin, match=r"^the controllers are of another cluster$"):
        join()


def test_a_broker_without_controllers_says_so(join: Joining) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and never answers
        silent.listen(0)
        places = {"controller.quorum.bootstrap.servers": f"127.0.0.1:{silent.getsockname()[1]}"}
        join.folder.mkdir()
        write_meta_properties(join.folder, join.node_id)
        with pytest.raises(CannotJoin, match=r"^no controller answers as the active one; these were asked: 127.0.0.1:"):
            join({**places, "initial.broker.registration.timeout.ms": "300"})
    assert (join.folder / ".kafka_cleanshutdown").exists()


def test_another_broker_with_the_same_id_is_refused(join: Joining, tmp_path: Path) -> None:
    with join() as server:
        second = {"log.dirs": str(tmp_path / "second"), "listeners": "PLAINTEXT://127.0.0.1:0"}
        with pytest.raises(CannotJoin, match=f"^another broker is registered as node {join.node_id}"):
            join({**second, "initial.broker.registration.timeout.ms": "3000"})
        assert member_of(server).life.state is State.RUNNING


def test_the_command_has_others_lead_before_it_ends(join: Joining, kafka: Broker, tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text("".join(f"{name}={value}\n" for name, value in join.config.items()))
    command = [sys.executable, "-m", "octavo.cli", "serve", "--config", str(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"serving {join.folder} at 127.0.0.1:")
        create(kafka, "stopped", join.node_id, KAFKA)
        produce(kafka.address, "stopped", 100)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert isr(kafka, "stopped") == (KAFKA, {KAFKA})
    assert "without effect" not in said
    assert said.endswith("octavo: stopping\n")
    assert (join.folder / ".kafka_cleanshutdown").exists()


def test_a_signal_ends_the_wait_for_controllers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = tmp_path / "server.properties"
        settings.write_text(
            "process.roles=broker\nnode.id=9\ncontroller.listener.names=CONTROLLER\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{silent.getsockname()[1]}\nlog.dirs={tmp_path / 'data'}\n"
        )
        command = [sys.executable, "-m", "octavo.cli", "serve", "--config", str(settings)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            silent.accept()[0].close()
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (0, "octavo: stopped before the broker was a member of its cluster\n")


def test_a_cluster_with_a_later_metadata_version_is_refused(java: str, tmp_path: Path) -> None:
    settings = {"unstable.feature.versions.enable": "true"}
    with StockCluster(tmp_path / "newer", settings=settings) as newer:
        newer.start(metadata_version="4.4-IV0")
        sentence = "the cluster has finalized metadata.version at level 31, and this broker supports levels 7 to 30"
        with pytest.raises(CannotJoin, match=sentence):
            Joining(newer, tmp_path / "octavo")()


@pytest.mark.soak(40)  # the broker waits ten seconds for the controllers
def test_a_broker_that_stops_does_not_wait_for_dead_controllers_for_ever(java: str, tmp_path: Path) -> None:
    with StockCluster(tmp_path / "cluster") as cluster:
        cluster.start()
        [controller] = cluster.controllers
        join = Joining(cluster, tmp_path / "octavo")
        with join():
            controller.kill()
        first, last = join.said
        assert first.startswith(f"the active controller, node {controller.node_id}, has not answered for ")
        assert last == "the controllers do not answer, and the broker shuts down without them"
        assert (join.folder / ".kafka_cleanshutdown").exists()
        controller.start()
        join.said.clear()
        with join() as server:
            controller.kill()
            server.hurry()  # as a second signal does
        assert not join.said

"""A cluster of controllers of Apache Kafka and brokers of both kinds: `Cluster`.

    with Cluster(tmp_path, network, {1: "kafka", 2: "octavo", 3: "octavo"}) as cluster:
        cluster.create("orders", 2)                  # on all brokers, min.insync.replicas=2
        cluster.brokers[2].kill()                    # or stop, pause, resume
        cluster.brokers[2].start()
        cluster.await_in_sync("orders")

A broker has one `server.properties` whichever program runs it, so it can be stopped and started again as the other kind
on the same directory. The coordinators' topics are on broker 1 alone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.metadata.v12 import MetadataResponse
from kio.static.primitive import i8

from tests.cluster.network import Network, Place
from tests.kafka.broker import Broker, Quorum
from tests.kafka.client import ask, metadata
from tests.kafka.cluster import CLUSTER_ID, FIRST_CONTROLLER, SESSION_MS, write_meta_properties
from tests.kafka.releases import Name

Kind = Literal["kafka", "octavo"]

PATIENCE_S: Final = 120
COORDINATORS: Final = ("__consumer_offsets", "__transaction_state")  # their topics
COORDINATOR: Final = 1  # the broker that has the coordinators' topics
_ASK_AGAIN_S: Final = 0.05
_MIXED: Final = {
    "controller.listener.names": "CONTROLLER",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "1000",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "2000",  # a cut in one direction is noticed by time-outs only
    "controller.socket.timeout.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "controlled.shutdown.enable": "true",
    "broker.session.timeout.ms": str(SESSION_MS),
    "controller.quorum.election.timeout.ms": "500",
    "broker.heartbeat.interval.ms": "300",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
_INTERNAL: Final = {"cleanup.policy": "compact", "min.insync.replicas": "1", "compression.type": "producer"}


class PartitionState(NamedTuple):
    """What a broker tells of a partition."""

    leader: int
    replicas: set[int]
    isr: set[int]


class Node(Broker):
    """A node in its place of the network, as a process of either program."""

    def __init__(
        self,
        folder: Path,
        place: Place,
        node_id: int,
        settings: Mapping[str, str],
        kind: Kind,
        release: Name = "broker",
    ) -> None:
        quorum: Quorum = "static" if "controller.quorum.voters" in settings else "dynamic"
        super().__init__(folder, settings=settings, quorum=quorum, release=release)
        self.kind = kind
        self.data: Final = folder
        self.place: Final = place
        self._node_id: Final = node_id
        self._earlier: list[str] = []

    @property
    def node_id(self) -> int:
        """Its id, also before it is formatted."""
        return self._node_id

    @property
    def address(self) -> str:
        """Where others find it."""
        return self.place.address

    def advertise(self, listeners: str) -> None:
        """Tell others of these listeners; before it is started."""
        self._settings["advertised.listeners"] = listeners

    @property
    def said(self) -> list[str]:
        """Every line that was logged in all its lives."""
        return [*self._earlier, *self.lines]

    def launch(self) -> None:
        """Starts the node, and returns at once."""
        self._earlier += self.lines
        self._log.with_suffix(".earlier").write_text("\n".join(self._earlier), "utf-8")  # for whoever looks for a fault
        super().launch()

    def is_ready(self) -> bool:
        """Whether it serves clients."""
        return self.node_id in self.known_brokers()

    def metadata(self) -> MetadataResponse:
        """What it knows of the cluster; raises `OSError` if it does not answer."""
        host, _, port = self.address.rpartition(":")
        return metadata(int(port), host=host)

    def known_brokers(self) -> set[int]:
        """The ids of the brokers that it knows to serve."""
        try:
            return {int(each.node_id) for each in self.metadata().brokers}
        except OSError:
            return set()

    def knows(self, brokers: set[int]) -> bool:
        """Return whether it knows that these brokers serve, and no others."""
        return self.known_brokers() == brokers

    def pause(self) -> None:
        """Stop the process with SIGSTOP, and return when all its threads stand still."""
        os.kill(self.process_id, signal.SIGSTOP)
        wait_until(lambda: _is_stopped(self.process_id), "the process does not stop")

    def resume(self) -> None:
        """Let a process that is stopped go on."""
        os.kill(self.process_id, signal.SIGCONT)

    @property
    def has_ended(self) -> bool:
        """Whether the process that was started has ended."""
        return self._ended(0)

    def await_end(self) -> None:
        """Wait until the process has ended by itself."""
        assert self._ended(PATIENCE_S), f"node {self.node_id} goes on"
        self._process = None

    def _command(self, main: str, *arguments: str) -> Sequence[str]:
        if self.kind == "octavo":
            assert main == "kafka.Kafka"
            return [*self.place.prefix, sys.executable, "-m", "octavo.cli", "serve", "--config", *arguments]
        return [*self.place.prefix, *super()._command(main, *arguments)]


class ControllerNode(Node):
    """A controller of Apache Kafka."""

    def is_ready(self) -> bool:
        """Whether it knows an active controller, or answers with an error, as with an old metadata.version."""
        told = self._describe()
        return told is not None and (told.controller_id >= 0 or bool(told.error_code))

    def active_node(self) -> int:
        """The id of the active controller as this one knows it; -1 if it does not know or answer."""
        told = self._describe()
        return -1 if told is None else told.controller_id

    def _describe(self) -> DescribeClusterResponse | None:
        question = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=i8(2))
        host, _, port = self.address.rpartition(":")
        try:
            return ask(int(port), question, DescribeClusterResponse, host=host)
        except OSError:
            return None


class Cluster:
    """Controllers and brokers. A context manager, which starts all and leaves no process behind."""

    def __init__(
        self,
        folder: Path,
        network: Network,
        kinds: Mapping[int, Kind],
        *,
        controllers: int = 1,
        settings: Mapping[str, str] | None = None,
        metadata_version: str | None = None,
        release: Name = "broker",
    ) -> None:
        """Start nothing yet.

        metadata_version: what the cluster begins with, such as "3.9"; otherwise the newest
        release: that of the nodes of Apache Kafka
        """
        self.folder: Final = folder
        self.network: Final = network
        self._metadata_version: Final = metadata_version
        self._release: Final[Name] = release
        self._settings: Final = _MIXED | dict(settings or {})
        ids = range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers)
        places = {number: network.place(number) for number in ids}
        bootstrap = ",".join(place.address for place in places.values())
        voters = ",".join(f"{number}@{place.address}" for number, place in places.items())
        self._quorum: Final = (
            {"controller.quorum.bootstrap.servers": bootstrap}
            if controllers == 1 and metadata_version is None
            else {"controller.quorum.voters": voters}
        )
        self.controllers: Final = {number: self._controller(number, place) for number, place in places.items()}
        self.brokers: Final = {number: self._broker(number, kind) for number, kind in kinds.items()}

    def _controller(self, number: int, place: Place) -> ControllerNode:
        settings = {
            "default.replication.factor": "3",
            **self._settings,
            **self._quorum,
            "process.roles": "controller",
            "node.id": str(number),
            "listeners": f"CONTROLLER://{place.listen}",
            "advertised.listeners": f"CONTROLLER://{place.address}",
            "auto.leader.rebalance.enable": "false",
        }
        return ControllerNode(self.folder / f"controller-{number}", place, number, settings, "kafka", self._release)

    def _broker(self, number: int, kind: Kind) -> Node:
        place = self.network.place(number)
        settings = {
            **self._settings,
            **self._quorum,
            "process.roles": "broker",
            "node.id": str(number),
            "broker.rack": f"rack-{number}",
            "listeners": f"PLAINTEXT://{place.listen}",
            "advertised.listeners": f"PLAINTEXT://{place.address}",
        }
        return Node(self.folder / f"broker-{number}", place, number, settings, kind, self._release)

    # ---------------------------------------------------------------------------------------------- starting, stopping

    def start(self) -> None:
        """Start everything, and return when all brokers serve and the coordinators have their topics."""
        for controller in self.controllers.values():
            controller.format(cluster_id=CLUSTER_ID, metadata_version=self._metadata_version)
            controller.launch()
        for broker in self.brokers.values():
            broker.data.mkdir(parents=True, exist_ok=True)
            write_meta_properties(broker.data, broker.node_id)
            broker.launch()
        for node in (*self.controllers.values(), *self.brokers.values()):
            node.await_ready()
        self.await_live()
        for name in COORDINATORS:
            self.create(name, 1, [COORDINATOR], _INTERNAL)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()

    def _kill(self) -> None:
        for node in (*self.brokers.values(), *self.controllers.values()):
            node.kill()

    def mend(self) -> None:
        """Have all nodes run and reach each other."""
        self.network.heal()
        for node in (*self.controllers.values(), *self.brokers.values()):
            if node.runs and not node.has_ended:
                node.resume()
            else:
                node.kill()
                node.launch()
        for node in (*self.controllers.values(), *self.brokers.values()):
            node.await_ready()
        self.await_live()

    @property
    def active(self) -> ControllerNode:
        """The active controller."""
        found: list[ControllerNode] = []

        def look() -> bool:
            found[:] = [each for number, each in self.controllers.items() if each.runs and each.active_node() == number]
            return bool(found)

        wait_until(look, "no controller is active")
        return found[0]

    def of_kind(self, kind: Kind) -> list[Node]:
        """The brokers of a kind, by their ids."""
        return [each for each in self.brokers.values() if each.kind == kind]

    # ------------------------------------------------------------------------------------------------------ for clients

    @property
    def address(self) -> str:
        """What bootstrap.servers takes: all brokers."""
        return ",".join(each.address for each in self.brokers.values())

    @cached_property
    def admin(self) -> AdminClient:
        """A client for administration."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0, "reconnect.backoff.max.ms": 100})

    def create(
        self,
        topic: str,
        partitions: int = 1,
        replicas: Sequence[int] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and return when all replicas are in sync. Partition n has the n-th broker as its leader."""
        ids = list(self.brokers) if replicas is None else list(replicas)
        assignment = [ids[number % len(ids) :] + ids[: number % len(ids)] for number in range(partitions)]
        wanted = {"min.insync.replicas": str(min(2, len(ids)))} | dict(config or {})
        new = NewTopic(topic, partitions, replica_assignment=assignment, config=wanted)
        try:
            self.admin.create_topics([new])[topic].result(PATIENCE_S)
        except KafkaException as failure:  # on a busy machine, the client may ask again before it is answered
            if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        self.await_in_sync(topic)

    def delete(self, *topics: str) -> None:
        """Delete topics, so that disks do not fill up and later tests have less to replicate."""
        for deleted in self.admin.delete_topics(list(topics)).values():
            deleted.result(PATIENCE_S)

    def partitions(self, topic: str, *, asked: Node | None = None) -> dict[int, PartitionState]:
        """What a broker knows of a topic's partitions; nothing if it does not answer."""
        try:
            told = (asked or next(iter(self.brokers.values()))).metadata()
        except OSError:
            return {}
        return {
            part.partition_index: PartitionState(part.leader_id, set(part.replica_nodes), set(part.isr_nodes))
            for each in told.topics
            if each.name == topic
            for part in each.partitions
        }

    def await_live(self) -> None:
        """Return when every broker knows that all brokers serve."""
        for broker in self.brokers.values():
            wait_until(partial(broker.knows, set(self.brokers)), f"{broker.address} does not know all brokers")

    def await_in_sync(self, *topics: str) -> None:
        """Return when the partitions of topics have a leader, and all replicas are in sync, as every broker knows."""
        for broker in self.brokers.values():
            for topic in topics:
                wait_until(
                    partial(self.is_in_sync, topic, broker),
                    f"not all replicas of {topic} are in sync, says {broker.address}",
                )

    def is_in_sync(self, topic: str, asked: Node) -> bool:
        """Return whether a broker says that the partitions of a topic have a leader, and all replicas are in sync."""
        told = self.partitions(topic, asked=asked).values()
        return bool(told) and all(each.leader > 0 and each.isr == each.replicas for each in told)

    def leader(self, topic: str, partition: int = 0, *, besides: int | None = None) -> int:
        """The id of the broker that leads a partition.

        besides: who is not asked, because it may not know
        """
        asked = next(each for number, each in self.brokers.items() if number != besides and each.runs)

        def found() -> int:
            return state.leader if (state := self.partitions(topic, asked=asked).get(partition)) else -1

        wait_until(lambda: found() > 0, f"{topic}-{partition} has no leader")
        return found()


def wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    """Ask again and again until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, otherwise
        time.sleep(_ASK_AGAIN_S)


def _is_stopped(process_id: int) -> bool:
    """Return whether all threads are stopped. The first one that is told has to run for that."""
    try:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{process_id}/task").iterdir()]
    except OSError:  # one has ended meanwhile
        return False
    return {stat.rpartition(")")[2].split()[0] for stat in stats} == {"T"}

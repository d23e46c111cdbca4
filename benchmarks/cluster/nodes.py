"""The clusters that are compared: a controller of Apache Kafka, and three brokers of Apache Kafka or of Octavo."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.broker.served import HEAP_MIB, JAVA, Pair, Served
from benchmarks.log.sets import scratch
from benchmarks.measure import tell
from benchmarks.warm_broker import DEFAULTS
from tests.kafka.broker import Broker
from tests.kafka.cluster import StockCluster, write_meta_properties

BROKERS: Final = 3
SESSION_MS: Final = 6000  # broker.session.timeout.ms, of both clusters
_SETTINGS: Final = {
    **DEFAULTS,
    "broker.heartbeat.interval.ms": "200",  # a session ends so much earlier or later, by chance
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": str(BROKERS),
    "transaction.state.log.replication.factor": str(BROKERS),
    "background.threads": "10",  # Kafka's default
}


class Node(Broker):
    """A broker of a cluster: Apache Kafka with the JVM's flags of its own start script, or `octavo serve`."""

    def __init__(self, folder: Path, cluster: StockCluster, node_id: int, *, is_octavo: bool) -> None:
        heap = [f"-Xms{HEAP_MIB}m", f"-Xmx{HEAP_MIB}m"]
        super().__init__(folder, settings=_SETTINGS, quorum="dynamic", options=heap)
        self._is_octavo: Final = is_octavo
        self.take_part_by(cluster.bootstrap, node_id=node_id, settings={})
        folder.mkdir(parents=True)
        write_meta_properties(folder, node_id)

    def _command(self, main: str, *arguments: str) -> Sequence[str]:
        if self._is_octavo:
            return [sys.executable, "-m", "octavo.cli", "serve", "--config", *arguments]
        java, *_ = super()._command(main)
        return [java, *JAVA, *self._options, "-cp", ":".join(map(str, self.release.jars)), main, *arguments]


class BrokersOf(NamedTuple):
    """The brokers of one cluster."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def address(self) -> str:
        """What bootstrap.servers takes."""
        return ",".join(node.address for node in self.nodes)

    @property
    def served(self) -> Served:
        """The brokers as they run now; the controller does not count."""
        return Served(self.name, self.address, tuple(node.process_id for node in self.nodes))


class Clusters(NamedTuple):
    """The two clusters of a comparison."""

    kafka: BrokersOf
    octavo: BrokersOf

    @property
    def pair(self) -> Pair:
        """Their brokers as they run now."""
        return Pair(self.kafka.served, self.octavo.served)


@contextmanager
def both() -> Iterator[Clusters]:
    """Run both clusters, on folders of one disk. Raises `KafkaUnavailable`."""
    with scratch() as folder, ExitStack() as running:
        yield Clusters(
            *(_start(running, folder / name, name, is_octavo=name == "octavo") for name in ("Kafka", "octavo"))
        )


def _start(running: ExitStack, folder: Path, name: str, **kind: Any) -> BrokersOf:
    tell(f"{BROKERS} brokers of {name} start, with a controller of Apache Kafka")
    settings = {"broker.session.timeout.ms": str(SESSION_MS), "min.insync.replicas": "2"}
    cluster = running.enter_context(StockCluster(folder, settings=settings))
    cluster.start()
    nodes = tuple(Node(folder / f"broker-{number}", cluster, number, **kind) for number in range(1, BROKERS + 1))
    for number, node in enumerate(nodes, 1):
        cluster.brokers[number] = node  # it is killed with the others
        node.launch()
    for node in nodes:
        node.await_ready()
    return BrokersOf(name, nodes)

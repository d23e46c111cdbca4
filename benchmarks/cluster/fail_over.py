"""Measure how long acks=all is not acknowledged when the leader of a partition is killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Final

from confluent_kafka import ElectionType, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, PartitionMetadata

from benchmarks.broker.load import Load
from benchmarks.cluster.nodes import BROKERS, SESSION_MS, BrokersOf, Clusters
from benchmarks.measure import Result, tell

_TOPIC: Final = "failed-over"
_PATIENCE_S: Final = 120
_ASK_AGAIN_S: Final = 0.05
_LOOK_AGAIN_S: Final = 0.02
_NOBODY: Final = -1
# A client without long pauses. It is a new one that writes to the new leader: an old one looks for it once a second.
_EAGER: Final = {
    "acks": "all",
    "linger.ms": "0",
    "log_level": "0",
    "retry.backoff.ms": "20",
    "retry.backoff.max.ms": "50",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "100",
    "topic.metadata.refresh.fast.interval.ms": "20",
    "message.timeout.ms": "120000",
    "socket.timeout.ms": "5000",
}


def measure(clusters: Clusters, load: Load, *, repeat: int) -> list[Result]:
    """Kill the leader again and again, of both clusters by turns; `load` is what the brokers carry in between."""
    name = f"fail-over of a killed leader, sessions of {SESSION_MS / 1000:g} s"
    tell(name)
    for cluster in clusters:
        cluster.served.create(_TOPIC, BROKERS, {"min.insync.replicas": "2"})
    taken: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    for turn in range(repeat + 1):
        for cluster in clusters:
            seconds = _fail_over(cluster, load)
            if turn:
                taken[cluster.name].append(seconds)
    theirs, ours = taken.values()
    return [
        Result(
            name=name,
            ratio=median(theirs) / median(ours),
            ours=median(ours),
            peer=median(theirs),
            unit="s",
            target=1.0,
            best_ratio=min(theirs) / min(ours),
        )
    ]


def _fail_over(cluster: BrokersOf, load: Load) -> float:
    """Kill the leader of partition 0, and return the seconds until a record is acknowledged. All run again then."""
    admin = AdminClient({"bootstrap.servers": cluster.address, "log_level": "0"})
    replace(load, partitions=BROKERS).run(cluster.served, "produce", _TOPIC)  # one that was restarted gets warm
    leader = _partition(admin, 0).leader
    node = cluster.nodes[leader - 1]
    assert node.node_id == leader
    others = ",".join(each.address for each in cluster.nodes if each is not node)
    _write(Producer({"bootstrap.servers": cluster.address, **_EAGER}))
    survivors = AdminClient({"bootstrap.servers": others, "log_level": "0"})
    assert _partition(survivors, 0).leader == leader
    begin = time.perf_counter()
    node.kill()
    _await(lambda: _partition(survivors, 0).leader not in (leader, _NOBODY), _LOOK_AGAIN_S)
    _write(Producer({"bootstrap.servers": others, **_EAGER}))
    taken = time.perf_counter() - begin
    node.start()
    _await(lambda: all(len(_partition(admin, number).isrs) == BROKERS for number in range(BROKERS)))
    _elect_preferred(admin)
    return taken


def _write(producer: Producer) -> None:
    """Write a record to partition 0; return when it is acknowledged."""

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            raise KafkaException(error)

    producer.produce(_TOPIC, b"x", partition=0, on_delivery=delivered)
    if producer.flush(_PATIENCE_S):
        raise RuntimeError(f"nothing was acknowledged in {_PATIENCE_S} s")


def _partition(admin: AdminClient, number: int) -> PartitionMetadata:
    return admin.list_topics(_TOPIC, timeout=_PATIENCE_S).topics[_TOPIC].partitions[number]


def _elect_preferred(admin: AdminClient) -> None:
    """Have every partition led by its first replica, so that the same broker is killed in all rounds."""
    partitions = [TopicPartition(_TOPIC, number) for number in range(BROKERS)]
    admin.elect_leaders(ElectionType.PREFERRED, partitions).result(_PATIENCE_S)

    def is_done() -> bool:
        return all((each := _partition(admin, number)).leader == each.replicas[0] for number in range(BROKERS))

    _await(is_done)


def _await(is_so: Callable[[], bool], pause_s: float = _ASK_AGAIN_S) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the cluster is not whole again after {_PATIENCE_S} s")
        time.sleep(pause_s)

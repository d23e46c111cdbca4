"""Measure what many partitions cost: creating them, doing nothing with them, using a part of them, and a restart.

While partitions are created, and while a broker comes back, a client asks every other broker tiny questions without a
break: a broker that does not answer for long would miss its heartbeats, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.broker import requests
from benchmarks.broker.load import Load
from benchmarks.broker.requests import Connections
from benchmarks.cluster.nodes import BROKERS, BrokersOf
from benchmarks.measure import Result, tell

COUNTS: Final = (1000, 3000)  # partitions of the cluster, each with a replica on every broker
_USED: Final = 100  # partitions of the topic that is written to, or half of the new ones if they are few
_IDLE_S: Final = 20
_SETTLE_S: Final = 5
_PATIENCE_S: Final = 300
_LOOK_AGAIN_S: Final = 0.2
_BETWEEN_QUESTIONS_S: Final = 0.02
_GIB: Final = 1 << 30
_PRODUCER: Final = {"acks": "all", "log_level": "0", "message.timeout.ms": str(_PATIENCE_S * 1000)}
_CONFIG: Final = {"min.insync.replicas": "2"}


class Figures(NamedTuple):
    """What a number of partitions costs one cluster."""

    create_s: float
    create_cpu_s: float
    create_pause_s: float
    idle: float  # processors that all brokers use together while nothing happens
    cpu_per_gib_s: float
    restart_s: float
    restart_cpu_s: float
    restart_pause_s: float


_NAMES: Final = {
    "create_s": ("create {more} partitions", "s"),
    "create_cpu_s": ("create {more} partitions: CPU of the brokers", "s"),
    "create_pause_s": ("longest answer while they are created", "s"),
    "idle": ("CPU of the idle brokers", "s per s"),
    "cpu_per_gib_s": ("produce to {used} of them: CPU of the brokers per GiB", "s"),
    "restart_s": ("restart of a broker until all are in sync", "s"),
    "restart_cpu_s": ("restart of a broker: CPU of the brokers", "s"),
    "restart_pause_s": ("longest answer of the others during a restart", "s"),
}


def measure(clusters: Sequence[BrokersOf], load: Load, *, scale: int) -> list[Result]:
    """Compare the clusters, Kafka's first, with more and more partitions; `load` is written to some of them."""
    results: list[Result] = []
    before = 0
    for count in COUNTS:
        more, before = (count - before) // scale, count
        theirs, ours = (_measure(cluster, count // scale, more, load) for cluster in clusters)
        for field, (name, unit) in _NAMES.items():
            their_figure, figure = getattr(theirs, field), getattr(ours, field)
            title = f"{count // scale:,} partitions: {name.format(more=f'{more:,}', used=_used(more))}"
            results.append(Result(name=title, ratio=their_figure / figure, ours=figure, peer=their_figure, unit=unit))
    return results


def _measure(cluster: BrokersOf, count: int, more: int, load: Load) -> Figures:
    tell(f"{count:,} partitions of {cluster.name}")
    used, used_count = f"used-{count}", _used(more)
    before = cluster.served.cpu_seconds()
    with _asking(cluster, range(BROKERS)) as create_pause:
        create_s = _create(cluster, {used: used_count, f"idle-{count}": more - used_count})
    create_cpu_s = cluster.served.cpu_seconds() - before
    time.sleep(_SETTLE_S)
    idle = _idle(cluster)
    load = replace(load, partitions=used_count)
    load.run(cluster.served, "produce", used)
    before = cluster.served.cpu_seconds()
    load.run(cluster.served, "produce", used)
    cpu_s = (cluster.served.cpu_seconds() - before) * _GIB / load.size
    with _asking(cluster, range(1, BROKERS)) as restart_pause:
        restart_s, restart_cpu_s = _restart(cluster)
    return Figures(create_s, create_cpu_s, create_pause(), idle, cpu_s, restart_s, restart_cpu_s, restart_pause())


def _used(more: int) -> int:
    return min(_USED, more // 2)


def _create(cluster: BrokersOf, topics: dict[str, int]) -> float:
    """Create topics, and return the seconds until every partition has acknowledged a record: all replicas have it."""
    admin = _admin(cluster)
    begin = time.perf_counter()
    wanted = [NewTopic(name, count, BROKERS, config=_CONFIG) for name, count in topics.items()]
    for future in admin.create_topics(wanted, operation_timeout=_PATIENCE_S, request_timeout=_PATIENCE_S).values():
        future.result(_PATIENCE_S)
    producer = Producer({"bootstrap.servers": cluster.address, **_PRODUCER})
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    for name, count in topics.items():
        for number in range(count):
            producer.produce(name, b"x", partition=number, on_delivery=delivered)
    if producer.flush(_PATIENCE_S) or failed:
        raise RuntimeError(f"not all partitions took a record: {failed[:1]}")
    return time.perf_counter() - begin


def _idle(cluster: BrokersOf) -> float:
    before, begin = cluster.served.cpu_seconds(), time.perf_counter()
    time.sleep(_IDLE_S)
    return (cluster.served.cpu_seconds() - before) / (time.perf_counter() - begin)


def _restart(cluster: BrokersOf) -> tuple[float, float]:
    """Stop the first broker and start it. Returns the seconds from then until all its replicas are in sync.

    The other figure is the processor time that all brokers take for that.
    """
    node = cluster.nodes[0]
    others = cluster._replace(nodes=cluster.nodes[1:])
    admin = _admin(others)
    expected = _partitions(admin)
    node.stop()
    before, begin = others.served.cpu_seconds(), time.perf_counter()
    node.launch()
    node.await_ready()
    _await(lambda: _partitions_in_sync(admin) == expected)
    return time.perf_counter() - begin, cluster.served.cpu_seconds() - before


def _partitions(admin: AdminClient) -> int:
    return sum(len(topic.partitions) for topic in admin.list_topics(timeout=_PATIENCE_S).topics.values())


def _partitions_in_sync(admin: AdminClient) -> int:
    """Return how many partitions have all their replicas in sync."""
    topics = admin.list_topics(timeout=_PATIENCE_S).topics.values()
    return sum(len(each.isrs) == BROKERS for topic in topics for each in topic.partitions.values())


@contextmanager
def _asking(cluster: BrokersOf, which: Sequence[int]) -> Iterator[Callable[[], float]]:
    """Ask some brokers tiny questions meanwhile. Yields what returns the seconds that the slowest answer took."""
    longest = [0.0] * len(which)
    is_over = threading.Event()
    question = requests.list_offsets("nobody-has-this-topic")

    def ask(place: int, address: str) -> None:
        with Connections(address, 1) as client:
            while not is_over.wait(_BETWEEN_QUESTIONS_S):
                asked = time.perf_counter()
                client.ask(question)
                longest[place] = max(longest[place], time.perf_counter() - asked)

    threads = [
        threading.Thread(target=ask, args=(place, cluster.nodes[number].address)) for place, number in enumerate(which)
    ]
    for thread in threads:
        thread.start()
    try:
        yield lambda: max(longest)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _admin(cluster: BrokersOf) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.address, "log_level": "0", "socket.timeout.ms": "300000"})


def _await(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all replicas are in sync after {_PATIENCE_S} s")
        time.sleep(_LOOK_AGAIN_S)

"""Compare three brokers of Octavo with three of Apache Kafka, in clusters with a controller of Apache Kafka each.

nodes       the clusters
fail_over   how long nothing is acknowledged when a leader is killed
partitions  what thousands of partitions cost
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from benchmarks.broker.load import LIBRDKAFKA, Load
from benchmarks.broker.memory import typical
from benchmarks.broker.served import Pair, Served
from benchmarks.broker.throughput import NO_DELAY, Targets, librdkafka, produce
from benchmarks.cluster import fail_over, partitions
from benchmarks.cluster.nodes import Clusters, both
from benchmarks.measure import Result, tell

_PARTITIONS: Final = 6
_CONFIG: Final = {**NO_DELAY, "min.insync.replicas": "2"}
_TARGETS: Final = Targets(1.0, 1 / 0.8)
_OWN: Final = Load(LIBRDKAFKA, {"acks": "all"}, partitions=_PARTITIONS)  # the client's own settings
# Each batch is a request of its own, and a broker takes the next one of a client when all replicas have it.
_SMALL: Final = replace(librdkafka(16, acks="all"), partitions=_PARTITIONS, size=64 << 20)
_LZ4: Final = Load(LIBRDKAFKA, {"acks": "all", "compression.type": "lz4"}, partitions=_PARTITIONS)
_LOADS: Final = {
    "librdkafka, acks=all, three replicas": (_OWN, _TARGETS),
    "librdkafka, acks=all, three replicas, lz4": (_LZ4, _TARGETS),
    "librdkafka, acks=all, three replicas, batches of 16 KiB": (_SMALL, Targets()),
}
_MEMORY: Final = 2.0
PARTS: Final = ("produce", "memory", "fail_over", "partitions")


def run(*, repeat: int, quick: bool = False, only: Sequence[str] = ()) -> list[Result]:
    """Run the parts that are named, or all of them; `quick` uses a tenth of the data."""
    scale = 10 if quick else 1
    results: list[Result] = []
    with both() as clusters:
        _warm_up(clusters.pair, scale=scale)
        for part in only or PARTS:
            if part == "produce":
                results += _produce(clusters.pair, repeat=repeat, scale=scale)
            elif part == "memory":
                results.append(_memory(clusters.pair, scale=scale))
            elif part == "fail_over":
                results += _fail_over(clusters, repeat=repeat, scale=scale)
            else:
                results += partitions.measure(clusters, replace(_OWN, size=(256 << 20) // scale), scale=scale)
    return results


def _warm_up(pair: Pair, *, scale: int) -> None:
    """Let both clusters work until the JVMs have compiled what is worth it."""
    for brokers in pair:
        tell(f"{brokers.name} is warmed up")
        brokers.create("warm", _PARTITIONS, _CONFIG)
        for load in (_OWN, _SMALL, _LZ4, _OWN, _SMALL):
            replace(load, size=(384 << 20) // scale).run(brokers, "produce", "warm")
        brokers.delete("warm")


def _produce(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    results = []
    for name, (load, targets) in _LOADS.items():
        results += produce(name, pair, load, targets, config=_CONFIG, repeat=repeat, scale=scale)
    return results


def _memory(pair: Pair, *, scale: int) -> Result:
    """Compare the resident memory of all brokers while they are used."""
    tell("memory under load")
    theirs, ours = (typical(brokers, partial(_use, brokers, scale)) for brokers in pair)
    name = "memory of all brokers under load"
    return Result(name=name, ratio=theirs / ours, ours=ours, peer=theirs, unit="MiB", target=_MEMORY)


def _use(brokers: Served, scale: int) -> None:
    brokers.create("used", _PARTITIONS, _CONFIG)
    for load, _ in _LOADS.values():
        replace(load, size=load.size // scale).run(brokers, "produce", "used")
    brokers.delete("used")


def _fail_over(clusters: Clusters, *, repeat: int, scale: int) -> list[Result]:
    return fail_over.measure(clusters, replace(_SMALL, size=(64 << 20) // scale), repeat=repeat)

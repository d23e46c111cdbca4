"""Compare producing and fetching: how fast it goes, and the processor time that the broker takes for a GiB."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Final, NamedTuple

from benchmarks.broker.load import JAVA, LIBRDKAFKA, Load
from benchmarks.broker.passes import Pass, take_turns
from benchmarks.broker.served import Pair, Served
from benchmarks.measure import Result, tell

_GIB: Final = 1 << 30
NO_DELAY: Final = {"file.delete.delay.ms": "1000"}  # what was measured is not kept on the disk
_QUEUE: Final = {
    "queue.buffering.max.messages": "1000000",
    "queue.buffering.max.kbytes": "131072",
    "batch.num.messages": "100000",
    "message.max.bytes": "2000000",
    "linger.ms": "20",
}
_BATCH: Final = {16: "16384", 1024: "1040384"}  # by KiB; the largest are just below `max.message.bytes` of topics
FETCH: Final = {
    "fetch.message.max.bytes": str(8 << 20),
    "queued.min.messages": "1000000",
    "queued.max.messages.kbytes": "262144",
}


class Targets(NamedTuple):
    """The ratios to reach; None is not judged."""

    speed: float | None = None
    cpu: float | None = None  # Kafka's processor time to ours


def librdkafka(batch_kib: int, **properties: str) -> Load:
    """Return a load of librdkafka with acks=1 and batches of this size."""
    return Load(LIBRDKAFKA, {**_QUEUE, "acks": "1", "batch.size": _BATCH[batch_kib], **properties})


def java(**properties: str) -> Load:
    """Return a load of the Java client with acks=all, and otherwise the client's own settings."""
    return Load(JAVA, {"acks": "all", **{name.replace("_", "."): value for name, value in properties.items()}})


def compare_passes(
    name: str, pair: Pair, size: int, run: Callable[[Served], Pass], targets: Targets, *, repeat: int
) -> list[Result]:
    """Let both brokers take turns, after a round that does not count; `size` is what one pass moves, in bytes."""
    tell(name)
    theirs, ours = take_turns(pair, run, repeat)
    speed, their_speed = (size / median(each.seconds for each in several) for several in (ours, theirs))
    cpu, their_cpu = (median(each.cpu_seconds for each in several) * _GIB / size for several in (ours, theirs))
    best, their_best = (size / min(each.seconds for each in several) for several in (ours, theirs))
    least, their_least = (min(each.cpu_seconds for each in several) for several in (ours, theirs))
    return [
        Result(
            name=name,
            ratio=speed / their_speed,
            ours=speed,
            peer=their_speed,
            unit="B/s",
            target=targets.speed,
            best_ratio=best / their_best,
        ),
        Result(
            name=f"{name}: CPU of the broker per GiB",
            ratio=their_cpu / cpu,
            ours=cpu,
            peer=their_cpu,
            unit="s",
            target=targets.cpu,
            best_ratio=their_least / least,
        ),
    ]


def produce(
    name: str,
    pair: Pair,
    load: Load,
    targets: Targets,
    *,
    repeat: int,
    scale: int,
    config: Mapping[str, str] = NO_DELAY,
) -> list[Result]:
    """Produce to a new topic in each pass; `config` is that of the topic."""
    load = replace(load, size=load.size // scale)
    numbers = itertools.count()

    def run(broker: Served) -> Pass:
        topic = f"{name.replace(' ', '').replace(',', '-').replace('=', '')}-{next(numbers)}"
        broker.create(topic, load.partitions, config)
        before = broker.cpu_seconds()
        seconds = load.run(broker, "produce", topic)
        cpu_seconds = broker.cpu_seconds() - before
        broker.delete(topic)
        return Pass(seconds, cpu_seconds)

    return compare_passes(f"produce, {name}", pair, load.size, run, targets, repeat=repeat)


def warm_up(pair: Pair, *, scale: int) -> None:
    """Let both brokers work until the JVM has compiled what is worth it."""
    for broker in pair:
        tell(f"{broker.name} is warmed up")
        broker.create("warm", 1, NO_DELAY)
        for load in (librdkafka(16), librdkafka(1024), librdkafka(16)):
            replace(load, size=(1 << 30) // scale).run(broker, "produce", "warm")
        for _ in range(2):
            replace(Load(LIBRDKAFKA, FETCH), size=(1 << 30) // scale).run(broker, "fetch", "warm")
        broker.delete("warm")


def measure_produce(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    """Measure the lines of producing that have a bar."""
    measured = partial(produce, repeat=repeat, scale=scale)
    large = replace(librdkafka(1024), size=512 << 20)
    lz4 = replace(java(compression_type="lz4"), partitions=6)
    return [
        *measured("librdkafka, acks=1, batches of 16 KiB", pair, librdkafka(16), Targets(1.2, 1 / 0.8)),
        *measured("librdkafka, acks=1, batches of 1 MiB", pair, large, Targets(1.5, 1 / 0.5)),
        *measured("Java, acks=all", pair, java(), Targets(1.0)),
        *measured("Java, acks=all, lz4, six partitions", pair, lz4, Targets(0.9, 1.0)),
    ]


def measure_fetch(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    """Measure the lines of fetching that have a bar: a topic that was produced before, with each of the clients."""
    size = (512 << 20) // scale
    for broker in pair:
        broker.create("fetched", 1, NO_DELAY)
        replace(librdkafka(16), size=size).run(broker, "produce", "fetched")
    results = []
    for load, targets in ((Load(LIBRDKAFKA, FETCH), Targets(1.0)), (Load(JAVA), Targets(0.9))):
        run = partial(_fetch, replace(load, size=size))
        results += compare_passes(f"fetch, {load.client}", pair, size, run, targets, repeat=repeat)
    for broker in pair:
        broker.delete("fetched")
    return results


def _fetch(load: Load, broker: Served) -> Pass:
    before = broker.cpu_seconds()
    seconds = load.run(broker, "fetch", "fetched")
    return Pass(seconds, broker.cpu_seconds() - before)


def inform(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    """Measure the lines that have none."""
    measured = partial(produce, repeat=repeat, scale=scale)
    results = []
    for codec in ("zstd", "gzip"):
        load = replace(librdkafka(1024, **{"compression.type": codec}), size=128 << 20)
        results += measured(f"librdkafka, {codec}, batches of 1 MiB", pair, load, Targets())
    small = replace(librdkafka(16), value_size=100, size=64 << 20)
    many = replace(librdkafka(16), partitions=1000, size=128 << 20)
    results += measured("librdkafka, records of 100 bytes", pair, small, Targets())
    results += measured("librdkafka, 1,000 partitions", pair, many, Targets())
    return results

"""Compare the memory of the brokers: before and under load, and with many idle connections."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Final

from benchmarks.broker import requests
from benchmarks.broker.load import LIBRDKAFKA, Load
from benchmarks.broker.requests import Connections
from benchmarks.broker.served import Served, kafka, octavo
from benchmarks.broker.throughput import FETCH, NO_DELAY, librdkafka
from benchmarks.log.sets import scratch
from benchmarks.measure import Result, tell, within
from tests.kafka.broker import BrokerFailed

_HEAPS_MIB: Final = (48, 64, 96, 128, 192, 256, 512)  # from the smallest on
_LOAD: Final = 256 << 20
_BEFORE_MIB: Final = 40
_IDLE: Final = 2000
_AT_ONCE: Final = 25  # connections that are made before they are used: fewer than a broker lets wait to be accepted
_IDLE_MIB: Final = 10
_INTERVAL_S: Final = 0.1


def measure(*, scale: int) -> list[Result]:
    """Measure Octavo once, and Kafka with the smallest heap that carries the load."""
    with scratch() as folder, octavo(folder / "octavo") as broker:
        tell("memory before and under load")
        before = within("memory before anything is produced", broker.memory_mib(), _BEFORE_MIB, "MiB")
        idle = _idle_connections(broker)
        ours = typical(broker, lambda: _use(broker, scale))
        our_peak = broker.peak_mib()
    heap_mib, theirs, their_peak = _smallest_kafka(scale)
    peer = f"vs Kafka with a heap of {heap_mib} MiB"
    typically = Result(
        name=f"memory under load, median, {peer}",
        ratio=theirs / ours,
        ours=ours,
        peer=theirs,
        unit="MiB",
        target=1 / 0.4,
    )
    at_most = Result(
        name=f"memory under load, peak (VmHWM), {peer}",
        ratio=their_peak / our_peak,
        ours=our_peak,
        peer=their_peak,
        unit="MiB",
    )
    return [
        before,
        typically,
        at_most,
        idle,
    ]


def _use(broker: Served, scale: int) -> None:
    """Produce small and large batches, compressed and not, and fetch them."""
    broker.create("used", 1, NO_DELAY)
    size = _LOAD // scale // 1024 * 1024  # whole records
    for load in (librdkafka(16), librdkafka(1024), librdkafka(1024, **{"compression.type": "zstd"})):
        replace(load, size=size).run(broker, "produce", "used")
    replace(Load(LIBRDKAFKA, FETCH), size=3 * size).run(broker, "fetch", "used")


def typical(broker: Served, use: Callable[[], None]) -> float:
    """Return the memory while the broker is used: the median of many looks at it."""
    done = threading.Event()
    sizes = [broker.memory_mib()]

    def watch() -> None:
        while not done.wait(_INTERVAL_S):
            sizes.append(broker.memory_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        use()
    finally:
        done.set()
        watcher.join()
    return median(sizes)


def _smallest_kafka(scale: int) -> tuple[int, float, float]:
    """Return the smallest heap with which Kafka carries the load, and how much memory it took: typically, at most."""
    for heap_mib in _HEAPS_MIB:
        with scratch() as folder:
            try:
                with kafka(folder / "kafka", heap_mib=heap_mib) as broker:
                    return heap_mib, typical(broker, partial(_use, broker, scale)), broker.peak_mib()
            except (BrokerFailed, subprocess.CalledProcessError, OSError) as error:
                tell(f"Kafka does not carry it with {heap_mib} MiB: {type(error).__name__}")
    raise RuntimeError("Kafka carries the load with none of the heaps")


def _idle_connections(broker: Served) -> Result:
    """Measure what connections cost that have asked once and do nothing any more."""
    broker.create("idle")
    request = requests.metadata("idle")
    with Connections(broker.address, 1) as clients:
        clients.ask_all(request)
    before = broker.memory_mib()
    with ExitStack() as idle:
        for _ in range(_IDLE // _AT_ONCE):
            idle.enter_context(Connections(broker.address, _AT_ONCE)).ask_all(request)
        more = broker.memory_mib() - before
    return within(f"memory of {_IDLE:,} idle connections", max(more, 0.0), _IDLE_MIB, "MiB")

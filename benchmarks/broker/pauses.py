"""Measure the longest pause of the reactor while everything goes on that takes long.

One client asks tiny questions without a break, and notes how long the slowest answer took. Meanwhile others create
topics, and produce to topics whose segments roll all the time, one of which is compacted. The broker has just been
started, so it loads its kernels, too. The reactor's own turns are timed as well (`timed_server`).
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.broker import requests
from benchmarks.broker.requests import Connections
from benchmarks.broker.served import Served
from benchmarks.broker.throughput import librdkafka
from benchmarks.log.sets import scratch
from benchmarks.measure import Result, tell, within

_LIMIT_MS: Final = 50
_SEGMENT: Final = {"segment.bytes": str(16 << 20)}
_COMPACTED: Final = {
    **_SEGMENT,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "1000",
}
_SETTINGS: Final = "log.cleaner.backoff.ms=500\nlog.retention.check.interval.ms=1000\n"
_PATIENCE_S: Final = 60


def measure(*, repeat: int, scale: int) -> list[Result]:
    """Measure pauses from outside and inside; each round has a new broker."""
    rounds = [_round(scale) for _ in range(repeat)]
    return [
        within(
            "longest answer to a tiny request during all that takes long", median(a for a, _ in rounds), _LIMIT_MS, "ms"
        ),
        within("longest turn of the reactor during all that takes long", median(b for _, b in rounds), _LIMIT_MS, "ms"),
    ]


def _round(scale: int) -> tuple[float, float]:
    """Return the longest answer and the longest turn, in milliseconds."""
    tell("pauses")
    with scratch() as folder:
        settings = folder / "server.properties"
        settings.write_text(_SETTINGS)
        process = _start(folder / "data", settings)
        try:
            assert process.stdout is not None
            broker = Served("octavo", process.stdout.readline().split()[-1], (process.pid,))
            outside = _longest_answer(broker, scale)
            process.terminate()
            inside = float(process.stdout.read().split()[-1])
        finally:
            process.kill()
            process.wait(_PATIENCE_S)
    return outside * 1e3, inside * 1e3


def _start(data: Path, settings: Path) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "benchmarks.broker.timed_server", "--data", str(data), "--config", str(settings)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _longest_answer(broker: Served, scale: int) -> float:
    broker.create("asked")
    works = [threading.Thread(target=_all, args=(work,)) for work in _works(broker, scale)]
    request = requests.list_offsets("asked")
    longest = 0.0
    with Connections(broker.address, 1) as client:
        client.ask(request)
        for work in works:
            work.start()
        while any(work.is_alive() for work in works):
            asked = time.perf_counter()
            client.ask(request)
            longest = max(longest, time.perf_counter() - asked)
            time.sleep(0.0005)  # the answers are tiny; the others need the processors
    return longest


def _all(work: list[Callable[[], object]]) -> None:
    for step in work:
        step()


def _works(broker: Served, scale: int) -> list[list[Callable[[], object]]]:
    """Return what the other clients do, each one thing after the other."""
    load = replace(librdkafka(16), size=(256 << 20) // scale)
    return [
        [partial(broker.create, f"created-{number}", 8) for number in range(20 // scale or 1)],
        [lambda: broker.create("rolled", 1, _SEGMENT), lambda: load.run(broker, "produce", "rolled")],
        [lambda: broker.create("compacted", 1, _COMPACTED), lambda: _produce_keys(broker, scale)],
    ]


def _produce_keys(broker: Served, scale: int) -> None:
    """Produce records with few keys, so that compaction finds much to do."""
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": broker.address, "linger.ms": "20", "queue.buffering.max.messages": "100000"}
    )
    for number in range(200_000 // scale):
        while True:
            try:
                producer.produce("compacted", bytes(512), str(number % 1000))
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(_PATIENCE_S)

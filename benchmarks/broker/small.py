"""Compare small requests: the processor time of the broker for one, and how long the answer takes."""

from __future__ import annotations

import time
from statistics import median, quantiles
from typing import Final

from benchmarks.broker import requests
from benchmarks.broker.requests import Connections
from benchmarks.broker.served import Pair, Served
from benchmarks.broker.throughput import NO_DELAY
from benchmarks.measure import Result, tell
from octavo.records import BatchBuilder

_CONNECTIONS: Final = 8
_PIPELINED: Final = 25  # requests that are sent without waiting
_REQUESTS: Final = 16_000  # of each kind in one pass
_CPU: Final = 1 / 0.7
_RATE: Final = 100  # requests per second
_LATENCY_S: Final = 4.0


def cpu_per_request(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    """Measure requests of three kinds, one after the other on each connection, and several without waiting."""
    results = []
    for broker in pair:
        broker.create("small", 1, NO_DELAY)
    kinds = {
        "produce": requests.produce("small"),
        "metadata": requests.metadata("small"),
        "list offsets": requests.list_offsets("small"),
    }
    for kind, request in kinds.items():
        for several, how in ((1, "one at a time"), (_PIPELINED, f"{_PIPELINED} sent at once")):
            name = f"CPU of the broker per small request, {kind}, {_CONNECTIONS} connections, {how}"
            results.append(_cpu(name, pair, request, _CONNECTIONS, several, _CPU, repeat=repeat, scale=scale))
    for broker in pair:
        broker.delete("small")
    return results


def many_connections(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    """Measure small requests on 500 connections that are all used."""
    for broker in pair:
        broker.create("active", 1, NO_DELAY)
    name = "CPU of the broker per small request, produce, 500 connections, one at a time"
    result = _cpu(name, pair, requests.produce("active"), 500, 1, None, repeat=repeat, scale=scale)
    for broker in pair:
        broker.delete("active")
    return [result]


def _cpu(
    name: str,
    pair: Pair,
    request: bytes,
    connections: int,
    several: int,
    target: float | None,
    *,
    repeat: int,
    scale: int,
) -> Result:
    tell(name)
    rounds = max(1, _REQUESTS // scale // connections // several)
    count = rounds * connections * several
    taken: dict[Served, list[float]] = {each: [] for each in pair}
    for turn in range(repeat + 1):
        for broker in pair:
            with Connections(broker.address, connections) as clients:
                clients.ask_all(request)
                before = broker.cpu_seconds()
                for _ in range(rounds):
                    clients.ask_all(request, several)
                if turn:
                    taken[broker].append((broker.cpu_seconds() - before) / count * 1e6)
    theirs, ours = (taken[each] for each in pair)
    return Result(
        name=name,
        ratio=median(theirs) / median(ours),
        ours=median(ours),
        peer=median(theirs),
        unit="us",
        target=target,
        best_ratio=min(theirs) / min(ours),
    )


def latency(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    """Produce one record of 1 KiB at a time with acks=1, a hundred per second and broker, to both by turns."""
    tell("latency at 100 requests per second")
    builder = BatchBuilder()
    builder.append(None, bytes(1024), timestamp_ms=1_700_000_000_000)
    batch = builder.build()
    for broker in pair:
        broker.create("latency", 1, NO_DELAY)
    request = requests.produce("latency", batch)
    tails: dict[Served, list[tuple[float, float]]] = {each: [] for each in pair}
    for turn in range(repeat + 1):
        times = _paced(pair, request, round(_LATENCY_S * _RATE / scale))
        if turn:
            for broker, several in times.items():
                cuts = quantiles(several, n=100)
                tails[broker].append((cuts[49], cuts[98]))
    for broker in pair:
        broker.delete("latency")
    results = []
    for at, (name, target) in enumerate((("p50", 1.0), ("p99", 1 / 1.2))):
        theirs, ours = ([each[at] * 1e3 for each in tails[broker]] for broker in pair)
        results.append(
            Result(
                name=f"latency at {_RATE} requests per second, {name}",
                ratio=median(theirs) / median(ours),
                ours=median(ours),
                peer=median(theirs),
                unit="ms",
                target=target,
                best_ratio=min(theirs) / min(ours),
            )
        )
    return results


def _paced(pair: Pair, request: bytes, count: int) -> dict[Served, list[float]]:
    """Return the seconds that each answer took. A late answer does not make the next request later."""
    times: dict[Served, list[float]] = {each: [] for each in pair}
    with Connections(pair.kafka.address, 1) as theirs, Connections(pair.octavo.address, 1) as ours:
        begin = time.perf_counter()
        for turn in range(count):
            for part, (broker, client) in enumerate(zip(pair, (theirs, ours), strict=True)):
                due = begin + (turn + part / 2) / _RATE
                time.sleep(max(0.0, due - time.perf_counter()))
                asked = time.perf_counter()
                client.ask(request)
                times[broker].append(time.perf_counter() - asked)
    return times

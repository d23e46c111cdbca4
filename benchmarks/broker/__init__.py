"""Compare `octavo serve` with Apache Kafka's broker: the same clients and settings, on the same machine, by turns.

load, clients/      the load of real clients: librdkafka and Kafka's own
throughput          producing and fetching: speed, and processor time of the broker
small               small requests: processor time and latency
memory, starting, pauses        what only one broker at a time can be asked
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.broker import memory, pauses, small, starting, throughput
from benchmarks.broker.load import close_clients
from benchmarks.broker.served import Pair, both
from benchmarks.measure import Result

_OF_BOTH: Final[dict[str, Callable[..., list[Result]]]] = {  # both brokers run at the same time
    "produce": throughput.measure_produce,
    "fetch": throughput.measure_fetch,
    "small": small.cpu_per_request,
    "latency": small.latency,
    "information": throughput.inform,
    "connections": small.many_connections,
}
_OF_ONE: Final = ("memory", "start", "pauses")
PARTS: Final = (*_OF_BOTH, *_OF_ONE)


def run(*, repeat: int, quick: bool = False, only: Sequence[str] = ()) -> list[Result]:
    """Run the parts that are named, or all of them; `quick` uses a tenth of the data."""
    scale = 10 if quick else 1
    wanted = only or PARTS
    results: list[Result] = []
    try:
        if any(part in _OF_BOTH for part in wanted):
            with both() as pair:
                results += _of_both(pair, wanted, repeat=repeat, scale=scale)
        if "memory" in wanted:
            results += memory.measure(scale=scale)
        if "start" in wanted:
            results += starting.measure(repeat=repeat)
        if "pauses" in wanted:
            results += pauses.measure(repeat=repeat, scale=scale)
    finally:
        close_clients()
    return results


def _of_both(pair: Pair, wanted: Sequence[str], *, repeat: int, scale: int) -> list[Result]:
    throughput.warm_up(pair, scale=scale)
    results: list[Result] = []
    for part, measure in _OF_BOTH.items():
        if part in wanted:
            results += measure(pair, repeat=repeat, scale=scale)
    return results

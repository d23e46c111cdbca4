"""Compare compaction, producer state and the in-process clients with Apache Kafka."""

from __future__ import annotations

from benchmarks.compaction.cleaning import clean
from benchmarks.compaction.clients import clients
from benchmarks.compaction.producers import producers
from benchmarks.measure import Result


def run(*, repeat: int, quick: bool = False) -> list[Result]:
    """Run all parts of this benchmark; `quick` uses a tenth of the data."""
    scale = 10 if quick else 1
    return [
        *clean(repeat=repeat, scale=scale),
        *producers(repeat=repeat, scale=scale),
        *clients(repeat=repeat, scale=scale),
    ]

"""Compare `octavo dump` with Kafka's kafka-dump-log, each in a fresh process with what it prints discarded."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.data import DataSet, prepare
from benchmarks.inspect.segment import as_segment, run_discarding, run_kafkas_tool
from benchmarks.measure import Contender, Peer, Result, compare, tell, within

_OVER_KAFKA: Final = 3
_SMALL: Final = DataSet(count=90, batch_count=30)  # a file of 10 KiB
_SMALL_S: Final = 0.4


def dump(*, repeat: int, scale: int) -> list[Result]:
    """Measure a million records of about 100 bytes and of 1 KiB, and a small file."""
    shapes = [DataSet(count=1_000_000 // scale, value_size=size) for size in (100, 1000)]
    prepare([*shapes, _SMALL])
    results = []
    for shape in shapes:
        results += _against_kafka(shape, min(repeat, 5))
    return [*results, *_small(repeat)]


def _against_kafka(shape: DataSet, repeat: int) -> list[Result]:
    with as_segment(shape) as path:
        ours = Contender("octavo", shape.count, lambda: _dump(path, "--format", "jsonl"))
        peer = Contender("kafka-dump-log", shape.count, lambda: run_kafkas_tool(path, "--print-data-log"))
        text = Contender("octavo", shape.count, lambda: _dump(path, "--print-data-log"))
        return [
            *compare(f"dump as JSON, {shape.shape}", ours, [Peer(peer, _OVER_KAFKA)], unit="records/s", repeat=repeat),
            *compare(f"dump as Kafka's text, {shape.shape}", text, [Peer(peer, 1)], unit="records/s", repeat=repeat),
        ]


def _small(repeat: int) -> list[Result]:
    tell("dump a small file")
    with as_segment(_SMALL) as path:
        return [
            within(
                f"dump a file of 10 KiB, {name}", median(_dump(path, *options) for _ in range(repeat)), _SMALL_S, "s"
            )
            for name, options in (("as JSON", ("--format", "jsonl")), ("as Kafka's text", ("--print-data-log",)))
        ]


def _dump(path: Path, *options: str) -> float:
    return run_discarding([sys.executable, "-m", "octavo.cli", "dump", str(path), *options])

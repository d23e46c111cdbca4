"""Compare `octavo dump` with Kafka's kafka-dump-log, each in a fresh process with what it prints discarded."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.data import DataSet, prepare
from benchmarks.inspect.segment import NAME, as_segment, run_discarding, run_kafkas_tool
from benchmarks.log.sets import scratch
from benchmarks.measure import Contender, Peer, Result, compare, tell, within
from octavo.records import read_batches

_OVER_KAFKA: Final = 3
_SMALL: Final = 10 << 10  # bytes of a small file
_SMALL_S: Final = 0.4


def dump(*, repeat: int, scale: int) -> list[Result]:
    """Measure a million records of about 100 bytes and of 1 KiB, and a small file."""
    shapes = [DataSet(count=1_000_000 // scale, value_size=size) for size in (100, 1000)]
    prepare(shapes)
    results = []
    for shape in shapes:
        results += _against_kafka(shape, min(repeat, 5))
    return [*results, *_small(shapes[0], repeat)]


def _against_kafka(shape: DataSet, repeat: int) -> list[Result]:
    with as_segment(shape) as path:
        ours = Contender("octavo", shape.count, lambda: _dump(path, "--format", "jsonl"))
        peer = Contender("kafka-dump-log", shape.count, lambda: run_kafkas_tool(path, "--print-data-log"))
        text = Contender("octavo", shape.count, lambda: _dump(path, "--print-data-log"))
        return [
            *compare(f"dump as JSON, {shape.shape}", ours, [Peer(peer, _OVER_KAFKA)], unit="records/s", repeat=repeat),
            *compare(f"dump as Kafka's text, {shape.shape}", text, [Peer(peer, 1)], unit="records/s", repeat=repeat),
        ]


def _small(shape: DataSet, repeat: int) -> list[Result]:
    tell("dump a small file")
    with scratch() as folder:
        path = folder / NAME
        path.write_bytes(_beginning(shape))
        return [
            within(
                f"dump a file of 10 KiB, {name}", median(_dump(path, *options) for _ in range(repeat)), _SMALL_S, "s"
            )
            for name, options in (("as JSON", ("--format", "jsonl")), ("as Kafka's text", ("--print-data-log",)))
        ]


def _beginning(shape: DataSet) -> bytes:
    """Return the first batches of a data set, of 10 KiB or a little more."""
    with shape.path.open("rb") as file:
        data = file.read(1 << 20)
    end = next(batch.position + batch.size for batch in read_batches(data) if batch.position + batch.size >= _SMALL)
    return data[:end]


def _dump(path: Path, *options: str) -> float:
    return run_discarding([sys.executable, "-m", "octavo.cli", "dump", str(path), *options])

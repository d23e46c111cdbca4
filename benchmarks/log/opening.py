"""Measure opening a data directory of many partitions that was closed cleanly."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.log import sets
from benchmarks.measure import Result, tell, within
from octavo.log import DataDirectory

_PARTITIONS: Final = 1_000
_EACH_MS: Final = 2.0


def open_many(*, repeat: int, scale: int) -> list[Result]:
    """Measure opening partitions that each have one segment of a few batches."""
    count = _PARTITIONS // scale
    name = f"open {count:,} cleanly closed partitions, each"
    tell(name)
    batch = sets.as_sent(sets.small())[0]
    with sets.scratch() as folder:
        data = folder / "data"
        with DataDirectory.open(data) as directory:
            directory.create_topic("events", partitions=count)
            for number in range(count):
                for _ in range(3):
                    directory.log("events", number).append(batch)
        times = [_open(data, count) for _ in range(repeat)]
    return [within(name, 1e3 * median(times) / count, _EACH_MS, "ms")]


def _open(data: Path, count: int) -> float:
    begin = perf_counter()
    directory = DataDirectory.open(data)
    taken = perf_counter() - begin
    assert all(log.recovery.was_clean and log.end_offset for log in directory.logs)
    assert len(directory.logs) == count
    directory.close()
    return taken

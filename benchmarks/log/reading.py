"""Measure how long it takes to read one batch at a random position in a segment."""

from __future__ import annotations

import os
from random import Random
from time import perf_counter
from typing import Final

from benchmarks.log import sets
from benchmarks.measure import Result, tell, within
from octavo.log import Log, LogConfig

_MEDIAN_US: Final = 30
_READS: Final = 20_000


def read(*, scale: int) -> list[Result]:
    """Measure reading one batch of 16 KiB: finding it by offset with the index, and reading its bytes."""
    data = sets.segment(scale).path
    name = f"random read of a batch in {data.stat().st_size / 2**30:.2g} GiB"
    tell(name)
    random = Random(1)
    with sets.scratch() as folder:
        partition = folder / "topic-0"
        partition.mkdir()
        os.link(data, partition / "00000000000000000000.log")
        with Log.open(partition, LogConfig.from_properties({"segment.bytes": str(2**31 - 1)})) as log:
            times = []
            for _ in range(_READS):
                offset = random.randrange(log.end_offset)
                begin = perf_counter()
                part = log.read(offset, 1).records
                times.append(perf_counter() - begin)
                assert part
    times.sort()
    median_us, slow_us = (1e6 * times[len(times) * share // 100] for share in (50, 99))
    return [
        within(f"{name}, median", median_us, _MEDIAN_US, "us"),
        Result(name=f"{name}, 99 of 100", ratio=_MEDIAN_US / slow_us, ours=slow_us, peer=_MEDIAN_US, unit="us"),
    ]

"""Measure reading: one batch at a random position in a segment, and all records of a log through fetches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Final

from benchmarks.log import sets
from benchmarks.measure import Contender, Peer, Result, compare, tell, timed, within
from octavo.log import Log, LogConfig
from octavo.records import ArrowDecoder, to_arrow

_MEDIAN_US: Final = 30
_READS: Final = 20_000
_FETCH: Final = 1 << 20  # bytes
_OF_MAPPED: Final = 0.92  # share of the speed over a mapped file that fetches are to reach


@contextmanager
def _log_of(data: Path) -> Iterator[Log]:
    """Open a log whose only segment is the file `data`."""
    with sets.scratch() as folder:
        partition = folder / "topic-0"
        partition.mkdir()
        os.link(data, partition / "00000000000000000000.log")
        with Log.open(partition, LogConfig.from_properties({"segment.bytes": str(2**31 - 1)})) as log:
            yield log


def read(*, scale: int) -> list[Result]:
    """Measure reading one batch of 16 KiB: finding it by offset with the index, and reading its bytes."""
    data = sets.segment(scale).path
    name = f"random read of a batch in {data.stat().st_size / 2**30:.2g} GiB"
    tell(name)
    random = Random(1)
    with _log_of(data) as log:
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


def decode(*, repeat: int, scale: int) -> list[Result]:
    """Compare decoding all records through fetches of 1 MiB with decoding them over the mapped file."""
    data_set = sets.segment(scale)
    with _log_of(data_set.path) as log:
        ours = Contender("octavo", data_set.count, timed(partial(_decode_fetches, log)))
        peer = Contender("the mapped file", data_set.count, timed(partial(_decode_mapped, data_set.path)))
        name = "decode a log through fetches of 1 MiB"
        return compare(name, ours, [Peer(peer, _OF_MAPPED)], unit="records/s", repeat=repeat)


def _decode_fetches(log: Log) -> None:
    decoder = ArrowDecoder()
    offset = rows = 0
    while offset < log.end_offset:
        part = log.read(offset, _FETCH, whole_batches=True)
        rows += sum(chunk.num_rows for chunk in decoder.read(part.records, offsets=(offset, None)))
        offset = part.next_offset
    assert rows == log.end_offset


def _decode_mapped(path: Path) -> None:
    with path.open("rb") as file:
        data = mmap(file.fileno(), 0, access=ACCESS_READ)
    assert sum(chunk.num_rows for chunk in to_arrow(data))

"""Compare `octavo verify` of a segment with reading it and computing checksums, and with Kafka's kafka-dump-log."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np

from benchmarks.data import DataSet, prepare
from benchmarks.inspect.segment import as_segment, run_kafkas_tool
from benchmarks.log.recovering import read_and_check
from benchmarks.log.sets import SMALL
from benchmarks.measure import Contender, Peer, Result, compare, tell
from octavo.inspect.verify import check_file
from octavo.log.segment.block_reader import BlockReader
from octavo.log.storage import DISK
from octavo.records.compression import Inflater
from octavo.records.kernels import kernels, scan
from octavo.records.kernels.batch_checksums import first_mismatch
from octavo.records.kernels.batch_inflation import BatchInflation

_TARGETS: Final = {100: 0.4, 1000: 0.6}  # of reading and checksums alone, by the size of values
_COMPRESSED: Final = 0.6  # of reading, checksums and decompressing
_OVER_KAFKA: Final = 10  # how often a tenth of the data is checked while Kafka's tool reads it once


def verify(*, repeat: int, scale: int) -> list[Result]:
    """Measure all shapes of segments, each in one process on both sides."""
    shapes = [_shape("none", 100, scale), _shape("none", 1000, scale)]
    compressed = [_shape(codec, 100, scale) for codec in ("lz4", "snappy", "zstd", "gzip")]
    prepare([*shapes, *compressed, _shape("none", 100, 10 * scale)])
    results = []
    for shape in shapes:
        peer = Contender("reading and CRC-32C", _size(shape), partial(read_and_check, shape.path))
        results += _verify(shape, Peer(peer, _TARGETS[shape.value_size]), repeat)
    for shape in compressed:
        peer = Contender("reading, CRC-32C and decompressing", _size(shape), partial(_inflate, shape.path))
        results += _verify(shape, Peer(peer, _COMPRESSED), repeat)
    return [*results, *_kafka(_shape("none", 100, 10 * scale), repeat)]


def _shape(codec: str, value_size: int, scale: int) -> DataSet:
    """Return a segment whose records take 1 GiB before they are compressed, in batches of about 16 KiB."""
    batch_count = SMALL[value_size]
    count = {100: 9_000_000, 1000: 1_050_000}[value_size] // scale // batch_count * batch_count
    return DataSet(codec, count=count, batch_count=batch_count, value_size=value_size)


def _size(shape: DataSet) -> int:
    return shape.path.stat().st_size


def _verify(shape: DataSet, peer: Peer, repeat: int) -> list[Result]:
    with as_segment(shape) as path:
        ours = Contender("octavo", _size(shape), lambda: _check(path))
        return compare(f"verify a segment, {shape.shape}", ours, [peer], unit="B/s", repeat=repeat)


def _check(path: Path) -> float:
    begin = perf_counter()
    found = list(check_file(path))
    taken = perf_counter() - begin
    assert not found, found
    return taken


def _inflate(path: Path) -> float:
    """Read a file, check the checksums of its batches and decompress them, with what is fastest for each."""
    begin = perf_counter()
    file = DISK.open(path)
    end = file.size()
    kernel_set, inflater = kernels(end), Inflater()
    reader = BlockReader(kernel_set, 1 << 20, 1 << 10)
    reader.begin(file, 0, end)
    while reader.next() == scan.MORE:
        assert first_mismatch(kernel_set, reader.memory, reader.table) is None
        rows = np.arange(len(reader.table))
        inflation = BatchInflation(kernel_set, inflater, reader.memory, reader.table, rows)
        while inflation.next_row is not None:
            inflater.clear()
            inflation.go_on(2 << 20)
            assert inflation.error is None
    return perf_counter() - begin


def _kafka(shape: DataSet, repeat: int) -> list[Result]:
    """Compare with Kafka's tool, whose JVM starts anew for each pass. It is slow: fewer data, and few passes."""
    tell("Kafka's kafka-dump-log")
    with as_segment(shape) as path:
        ours = Contender("octavo", _size(shape), lambda: _check(path))
        peer = Contender(
            "kafka-dump-log --deep-iteration", _size(shape), lambda: run_kafkas_tool(path, "--deep-iteration")
        )
        name = f"verify a segment of {_size(shape) / 2**20:.0f} MiB"
        return compare(name, ours, [Peer(peer, _OVER_KAFKA)], unit="B/s", repeat=min(repeat, 3))

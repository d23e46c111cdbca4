"""Encode the same rows with `from_arrow` and write them to a file, in one process without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final, NamedTuple

import pyarrow as pa

from octavo.records import Codec, from_arrow
from octavo.spark import OctavoSource

_BATCH_SIZE: Final = 256 << 10  # that of the sink


class Plain(NamedTuple):
    """The median seconds of a pass over all rows."""

    encoding: float
    writing: float  # of what was encoded, with a sync at the end


def measure(rows: Path, folder: Path, codec: Codec, repeat: int) -> Plain:
    """Encode the rows of a log, some at a time, and write the bytes to a file, which is removed again."""
    encoding, writing = [], []
    for _ in range(repeat):
        path = folder / "plain"
        encoded = written = 0.0
        with path.open("wb", buffering=0) as file:
            for batch in _batches(rows):
                begin = perf_counter()
                data = from_arrow(batch, codec=codec, max_size=_BATCH_SIZE)
                middle = perf_counter()
                file.write(data)
                encoded += middle - begin
                written += perf_counter() - middle
            begin = perf_counter()
            os.fdatasync(file.fileno())
            written += perf_counter() - begin
        path.unlink()
        encoding.append(encoded)
        writing.append(written)
    return Plain(median(encoding), median(writing))


def _batches(rows: Path) -> Iterator[pa.RecordBatch]:
    """Yield keys and values as Spark has them. Reading them is not measured."""
    source = OctavoSource({"path": str(rows), "columns": "key,value"})
    reader = source.reader(source.schema())
    for task in reader.partitions():
        yield from reader.read(task)

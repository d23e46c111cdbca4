"""Decode a log and write it as Parquet with pyarrow in two processes, without Spark, plan or commit.

No export can be faster: this is the same work, divided in advance among processes that are warm.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from mmap import ACCESS_READ, mmap
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from octavo.records.arrow.decoder import ArrowDecoder
from octavo.spark.tables.data_files import ROW_GROUP_SIZE, parquet_options

PROCESSES: Final = 2
_COLUMNS: Final = ("key", "value", "offset", "timestamp", "timestampType", "headers")
_PARTITION: Final = pa.scalar(0, pa.int32())


class Alone:
    """Processes that write Parquet, which are started when they are needed."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def write(self, folder: str, target: str, codec: str) -> None:
        """Write the only segment of a log to as many files as there are processes."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(PROCESSES, get_context("spawn"))
        [segment] = Path(folder).glob("*/*.log")
        Path(target).mkdir()
        parts = [self._pool.submit(write_part, segment, target, codec, part) for part in range(PROCESSES)]
        for part in parts:
            part.result()

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown()


def write_part(segment: Path, target: str, codec: str, part: int) -> None:
    """Decode a part of the segment, and write it to a file as a task of an export does."""
    begin, end = _limits(segment, part)
    decoder = ArrowDecoder(columns=_COLUMNS)
    schema = decoder.schema.append(pa.field("partition", pa.int32()))
    with (
        segment.open("rb") as file,
        mmap(file.fileno(), 0, access=ACCESS_READ) as data,
        pq.ParquetWriter(f"{target}/{part}.parquet", schema, **parquet_options(schema, codec)) as writer,
    ):
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in decoder.read(data, start=begin, end=end):
            waiting.append(batch.append_column(schema.field("partition"), pa.repeat(_PARTITION, batch.num_rows)))
            size += batch.nbytes
            if size >= ROW_GROUP_SIZE:
                _write(writer, waiting)
                waiting, size = [], 0
        _write(writer, waiting)


def _write(writer: pq.ParquetWriter, batches: list[pa.RecordBatch]) -> None:
    if batches:
        rows = pa.Table.from_batches(batches)
        writer.write_table(rows, row_group_size=rows.num_rows)


def _limits(segment: Path, part: int) -> tuple[int, int]:
    """Return where a part of the segment begins and ends: at batches that are in its index."""
    positions = np.fromfile(segment.with_suffix(".index"), ">i4")[1::2]
    positions = positions[positions > 0]  # a broker that has the index open has made it longer
    size = segment.stat().st_size
    limits = [
        0,
        *(int(positions[np.searchsorted(positions, size * number // PROCESSES)]) for number in range(1, PROCESSES)),
        size,
    ]
    return limits[part], limits[part + 1]

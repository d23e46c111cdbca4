"""What the footers of Parquet files tell about them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from octavo.errors import BadTable
from octavo.spark.tables.written import WrittenFile, parse_path
from octavo.spark.threads import in_threads


def read_footers(root: Path, paths: Iterable[str]) -> list[WrittenFile]:
    """Read the footers of data files, several at a time. Raises `BadTable` for what is none."""
    return in_threads(partial(_read_footer, root), paths)


def _read_footer(root: Path, path: str) -> WrittenFile:
    parts = parse_path(path)
    if parts is None:
        raise BadTable(root / path, "no data file of a table has this name")
    try:
        with pq.ParquetFile(root / path, memory_map=False) as file:
            footer = file.metadata
            offsets, timestamps = _range(footer, "offset"), _range(footer, "timestamp")
    except pa.ArrowException as error:
        raise BadTable(root / path, f"this is no Parquet file: {error}") from None
    if offsets is None:
        raise BadTable(root / path, "its footer tells no offsets")
    return WrittenFile(
        path=path,
        topic=parts.topic,
        partition=parts.partition,
        day=parts.day,
        first_offset=offsets[0],
        last_offset=offsets[1],
        row_count=footer.num_rows,
        size=(root / path).stat().st_size,
        min_timestamp_us=None if timestamps is None else timestamps[0],
        max_timestamp_us=None if timestamps is None else timestamps[1],
    )


def _range(footer: pq.FileMetaData, column: str) -> tuple[int, int] | None:
    """Return the smallest and the largest value of a column of integers or timestamps, by the statistics."""
    number = next(each for each in range(footer.num_columns) if footer.schema.column(each).path == column)
    found = []
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(number).statistics
        if statistics is not None and statistics.has_min_max:
            found += [statistics.min_raw, statistics.max_raw]
    return (int(min(found)), int(max(found))) if found else None

"""Files for tables of every format, without Spark: rows as the tasks of an export write them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from octavo.log.names import TopicPartition
from octavo.spark.tables.delta import DeltaTarget
from octavo.spark.tables.iceberg import IcebergTarget
from octavo.spark.tables.place import FilePlace
from octavo.spark.tables.progress import Progress, Reached
from octavo.spark.tables.target import Target
from octavo.spark.tables.written import WrittenFile, new_path

os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")  # or Polars warns that it lacks a faster one

ID: Final = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)
OTHER_ID: Final = UUID(int=7)
DAY: Final = 19_675  # 2023-11-14
HOUR_US: Final = 3_600_000_000
ORDERS: Final = TopicPartition("orders", 0)

SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        pa.field("day", pa.date32()),
    ]
)
NOTES: Final = {"format": "1", "raw": "true", "schema": '{"a": "ü"}'}
FORMATS: Final[dict[str, type[DeltaTarget] | type[IcebergTarget]]] = {"delta": DeltaTarget, "iceberg": IcebergTarget}


def open_lake(format_name: str, path: Path | str, **options: str) -> DeltaTarget | IcebergTarget:
    """Open a table of this format."""
    return FORMATS[format_name].open(str(path), options)


def created(format_name: str, path: Path | str, **options: str) -> DeltaTarget | IcebergTarget:
    """Open a new table of this format."""
    target = open_lake(format_name, path, **options)
    target.create(SCHEMA, NOTES)
    return target


def rows(partition: TopicPartition, offsets: Sequence[int], day: int | None) -> pa.Table:
    """Return rows of one partition and day, an hour apart."""
    times = [None if day is None else (day * 24 + number % 24) * HOUR_US for number in range(len(offsets))]
    columns: dict[str, Any] = {
        "key": [None if offset % 3 == 0 else b"key %d" % offset for offset in offsets],
        "value": [b"%s %d" % (str(partition).encode(), offset) for offset in offsets],
        "topic": [partition.topic] * len(offsets),
        "partition": [partition.partition] * len(offsets),
        "offset": list(offsets),
        "timestamp": times,
        "timestampType": [0] * len(offsets),
        "headers": [[{"key": "a", "value": b"\xff"}] if offset % 2 else None for offset in offsets],
        "day": [None if day is None else date(1970, 1, 1) + timedelta(days=day)] * len(offsets),
    }
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in SCHEMA})


def write_rows(place: FilePlace, table: pa.Table, partition: TopicPartition, day: int | None) -> WrittenFile:
    """Write a data file, as a task does."""
    offsets, times = (
        table["offset"].to_pylist(),
        [t for t in table["timestamp"].cast("int64").to_pylist() if t is not None],
    )
    path = new_path(partition, day, offsets[0], offsets[-1])
    if not place.has_partition_columns:
        table = table.drop_columns(["topic", "day"])
    out = place.create(path)
    pq.write_table(table, pa.PythonFile(out, "w"))
    out.finish(path)
    size = _size(place, path)
    least, most = (min(times), max(times)) if times else (None, None)
    return WrittenFile(path, *partition, day, offsets[0], offsets[-1], len(offsets), size, least, most)


def write(place: FilePlace, offsets: range, day: int | None = DAY, partition: TopicPartition = ORDERS) -> WrittenFile:
    """Write a data file with such rows."""
    return write_rows(place, rows(partition, offsets, day), partition, day)


def _size(place: FilePlace, path: str) -> int:
    if place.root.is_local:
        return (place.root.path() / path).stat().st_size
    return place.root.storage().status(place.root.path() / path).size


def reached(next_offset: int, topic_id: UUID | None = ID, partition: TopicPartition = ORDERS) -> Progress:
    """Return the progress of one partition."""
    return Progress({partition: Reached(topic_id, next_offset)})


def export(target: Target, end: int, day: int | None = DAY) -> list[WrittenFile]:
    """Export `ORDERS` up to an offset, in one round, from where the table is."""
    before = target.progress()
    begin = before[ORDERS].next_offset if before else 0
    after = before.advanced(reached(end))
    place = target.begin(before, after)
    files = [write(place, range(begin, end), day)]
    target.commit(files, before, after)
    return files


def table_offsets(target: DeltaTarget | IcebergTarget) -> list[int]:
    """Return the offsets of all rows, as the library of the format reads them in a new process' view of the table."""
    return sorted(read_table(target)["offset"].to_pylist())


def read_table(target: DeltaTarget | IcebergTarget) -> pa.Table:
    """Return all rows: of Delta by `deltalake`, of Iceberg by Polars."""
    target.progress()
    if isinstance(target, DeltaTarget):
        return target._existing.to_pyarrow_table()
    # `pyiceberg` reads lists of structs that are null as empty ones
    return pl.scan_iceberg(target._existing, reader_override="native").collect().to_arrow()

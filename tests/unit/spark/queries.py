"""Does what Spark does with a data source, in one process: plans a query, sends its tasks through pickle, and reads."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from octavo.spark import OctavoSource
from octavo.spark.versions import arrow_schema

Rows = list[dict[str, Any]]


def plan(path: Path | str, **options: str) -> tuple[DataSourceReader, list[InputPartition], pa.Schema]:
    """A reader as the tasks get it, the tasks, and the schema of what they give; names have `_` for a dot."""
    source = pickle.loads(pickle.dumps(OctavoSource({"path": str(path)} | _named(options))))
    schema = source.schema()
    reader = source.reader(schema)
    tasks = list(reader.partitions())
    return *pickle.loads(pickle.dumps((reader, tasks))), arrow_schema(schema)


def read_tasks(reader: DataSourceReader, tasks: Sequence[InputPartition], schema: pa.Schema) -> pa.Table:
    """What the tasks give. Every batch is exactly of the schema."""
    batches = [batch for task in tasks for batch in reader.read(task)]
    for batch in batches:
        assert isinstance(batch, pa.RecordBatch)
        assert batch.schema.equals(schema)
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema)


def read(path: Path | str, **options: str) -> Rows:
    """The rows of a batch query, in the order of its tasks."""
    rows: Rows = read_tasks(*plan(path, **options)).to_pylist()
    return rows


def offsets(path: Path | str, **options: str) -> list[int]:
    """The offsets of a batch query, in order."""
    return sorted(row["offset"] for row in read(path, **options))


def _named(options: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in options.items()}

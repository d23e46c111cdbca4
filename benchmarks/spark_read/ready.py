"""A data source that passes ready-made Arrow batches to Spark and decodes nothing. No data source can be faster.

The batches are exactly those that our source makes, with the same tasks, rows and schema. `prepare` writes them to
files in Arrow's own format, and the workers map these files into memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from benchmarks.data import FOLDER
from benchmarks.measure import tell
from octavo.spark import OctavoSource
from octavo.spark.slices import Task


class ReadySource(DataSource):
    """The data source behind `format("ready")`, with the options of our source."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ready"

    def schema(self) -> StructType:
        """Return the schema of our source."""
        return OctavoSource(self.options).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader with the tasks of our source."""
        return ReadyReader(dict(self.options), schema)


class ReadyReader(DataSourceReader):
    """A reader that reads the files of `prepare` and decodes nothing."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the tasks of our source."""
        return list(OctavoSource(self._options).reader(self._schema).partitions())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the batches that our source made."""
        from octavo.spark.task_reader import spare_the_collector

        with pa.memory_map(str(_file(self._options, partition))) as file:
            batches = pa.ipc.open_file(file)
            for number in range(batches.num_record_batches):
                yield batches.get_batch(number)
        spare_the_collector()


def prepare(options: Mapping[str, str]) -> None:
    """Write the batches of our source to files, unless the files exist."""
    source = OctavoSource(options)
    reader = source.reader(source.schema())
    for task in reader.partitions():
        path = _file(options, task)
        if path.exists():
            continue
        tell(f"ready-made batches: {path.name}")
        unfinished = path.with_suffix(".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        batches: Iterator[Any] = iter(reader.read(task))
        first = next(batches)
        with pa.ipc.new_file(str(unfinished), first.schema) as target:
            target.write_batch(first)
            for batch in batches:
                target.write_batch(batch)
        unfinished.rename(path)


def _file(options: Mapping[str, str], task: InputPartition) -> Path:
    assert isinstance(task, Task)
    (piece,) = task.slices
    names = sorted((name.lower(), value) for name, value in options.items())
    digest = hashlib.sha256(repr(names).encode()).hexdigest()[:12]
    return FOLDER / "spark" / f"ready-{digest}" / f"{piece.position}-{piece.end}.arrow"

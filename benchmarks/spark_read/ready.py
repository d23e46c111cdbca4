"""A data source that hands over ready-made Arrow batches and decodes nothing: the most that any can reach.

It has the tasks, the schema and the batch size of ours, and as many rows; the batch is the log's first one, decoded
once in each worker, before anything counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from octavo.spark import OctavoSource
from octavo.spark.slices import Task

if TYPE_CHECKING:
    import pyarrow as pa


class ReadySource(DataSource):
    """`format("ready")`, with the options of ours."""

    @classmethod
    def name(cls) -> str:
        """Of the format."""
        return "ready"

    def schema(self) -> StructType:
        """As ours."""
        return OctavoSource(self.options).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """With the tasks of ours."""
        return ReadyReader(tuple(sorted(self.options.items())), schema)


class ReadyReader(DataSourceReader):
    """Reads nothing."""

    def __init__(self, options: tuple[tuple[str, str], ...], schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """As ours."""
        return list(OctavoSource(dict(self._options)).reader(self._schema).partitions())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """As many rows as ours."""
        from octavo.spark.tasks import spare_the_collector

        assert isinstance(partition, Task)
        batch = first_batch(self._options)
        left = sum(piece.end_offset - piece.first_offset for piece in partition.slices)
        while left >= batch.num_rows:
            yield batch
            left -= batch.num_rows
        if left:
            yield batch.slice(0, left)
        spare_the_collector()


@cache
def first_batch(options: tuple[tuple[str, str], ...]) -> pa.RecordBatch:
    """The first batch that ours would hand over."""
    source = OctavoSource(dict(options))
    reader = source.reader(source.schema())
    return next(iter(reader.read(reader.partitions()[0])))

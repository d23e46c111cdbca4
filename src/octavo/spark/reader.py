"""Batch queries, which the driver plans and the tasks read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from octavo.spark.options import Options
from octavo.spark.plan import plan_tasks
from octavo.spark.ranges import Logs, batch_ranges
from octavo.spark.slices import Task
from octavo.spark.versions import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


class OctavoReader(DataSourceReader):
    """The reader of a batch query.

    It does not define `pushFilters`: in Spark 4.3, a filter that was pushed once also applies to later queries of the
    same `load()`, whose results would be wrong.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks. Spark calls this once for each `load()`."""
        logs = Logs(self._options, decides=False)
        try:
            return list(logs.plan(lambda sources: plan_tasks(self._options, batch_ranges(self._options, sources))))
        finally:
            logs.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one task as Arrow batches."""
        return read_task(self._options, self._schema, partition)


def read_task(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task as Arrow batches, with exactly the types that Spark expects."""
    if not isinstance(partition, Task):  # Spark passes a partition of its own if there are no tasks
        return iter(())
    from octavo.spark.task_reader import TaskReader

    return TaskReader(options, arrow_schema(schema)).read(partition)

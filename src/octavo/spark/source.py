"""The data source: what Spark calls.

`load()` runs `__init__` and `schema()`: options, paths and topics are checked there, so that what is wrong is told at
that line. Whether a query is a batch or a stream is not known before it runs: what is wrong for one of the two alone is
told then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from octavo.spark.options import Options, check_batch, read_options
from octavo.spark.partitions import find_partitions
from octavo.spark.plan import plan_tasks
from octavo.spark.ranges import Logs, batch_ranges, check_limits
from octavo.spark.schema import check_schema, schema_of
from octavo.spark.slices import Task

if TYPE_CHECKING:
    import pyarrow as pa


class OctavoSource(DataSource):
    """`format("octavo")`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raises `InvalidInput`."""
        self.options = dict(options)
        self._options = read_options(self.options)

    @classmethod
    def name(cls) -> str:
        """Of the format."""
        return "octavo"

    def schema(self) -> StructType:
        """Of the records. Raises `InvalidInput`, and `BadDirectory` where there is nothing to read."""
        schema = schema_of(self._options)
        check_limits(self._options, find_partitions(self._options))
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch query. Raises `InvalidInput`."""
        check_schema(schema, self._options)
        check_batch(self._options)
        return OctavoReader(self._options, schema)


class OctavoReader(DataSourceReader):
    """A batch query. It defines no `pushFilters`: what Spark 4.3 pushes stays, and makes later queries wrong."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """The tasks. Spark asks once for each `load()`."""
        logs = Logs(self._options)
        try:
            return list(plan_tasks(self._options, batch_ranges(self._options, logs.look())))
        finally:
            logs.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What one task reads."""
        return read_task(self._options, self._schema, partition)


def read_task(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The Arrow batches of a task, exactly of the types that Spark wants."""
    if not isinstance(partition, Task):  # Spark's own, where there is nothing to read
        return iter(())
    from pyspark.sql.pandas.types import to_arrow_schema

    from octavo.spark.tasks import TaskReader

    return TaskReader(options, to_arrow_schema(schema, timezone="UTC")).read(partition)

"""The data source: what Spark calls.

`load()` runs `__init__` and `schema()`: options, paths and topics are checked there, so that what is wrong is told at
that line. Whether a query is a batch or a stream is not known before it runs: what is wrong for one of the two alone is
told then.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from octavo.spark.options import check_batch, check_stream, read_options
from octavo.spark.partitions import find_partitions
from octavo.spark.ranges import check_limits
from octavo.spark.reader import OctavoReader
from octavo.spark.schema import check_schema, schema_of
from octavo.spark.stream import OctavoStreamReader


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
        check_limits(self._options, find_partitions(self._options), all_named=False)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch query. Raises `InvalidInput`."""
        check_schema(schema, self._options)
        check_batch(self._options)
        return OctavoReader(self._options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For a streaming query. Raises `InvalidInput`."""
        check_schema(schema, self._options)
        check_stream(self._options)
        return OctavoStreamReader(self._options, schema)

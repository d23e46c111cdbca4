"""The data source that Spark calls, to read and to write.

`load()` runs `__init__` and `schema()`. Options, paths and topics are checked there, so that an error points at that
line. At that time Spark does not yet say whether the query is a batch or a stream; only a query with an end must be a
batch. So options that are wrong for only one of the two are reported when the query runs. Missing partitions are also
reported then if the query may be a stream, because a stream can continue without them.

`save()` runs `__init__` and `writer()`. A stream that writes is started before `streamWriter()` runs, so its errors are
those of its first micro-batch. `__init__` is not told whether it is for reading or for writing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from octavo.errors import InvalidInput, MissingPartitions
from octavo.spark.limits import check_named, check_times
from octavo.spark.options import Options, check_batch, check_stream, limits_per_trigger, read_options
from octavo.spark.partitions import find_partitions
from octavo.spark.reader import OctavoReader
from octavo.spark.replicas import Clusters, check_ids
from octavo.spark.schema import check_schema, schema_of
from octavo.spark.sink.options import is_of_the_sink, read_sink_options
from octavo.spark.sink.writer import OctavoStreamWriter, OctavoWriter
from octavo.spark.stream import OctavoStreamReader
from octavo.spark.threads import in_threads
from octavo.spark.versions import check_stream_limits, check_stream_writes

_log = logging.getLogger("octavo.spark")

_ONLY_APPENDED = "records of a log are not replaced, only appended"


class OctavoSource(DataSource):
    """The data source behind `format("octavo")`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Parse and check the options, unless some are of the sink alone. Raises `InvalidInput`."""
        self.options = dict(options)
        if not any(is_of_the_sink(name.lower()) for name in options):
            _ = self._options

    @cached_property
    def _options(self) -> Options:
        return read_options(self.options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "octavo"

    def schema(self) -> StructType:
        """Check that the partitions exist, and return the schema.

        Raises `InvalidInput`, and `BadDirectory` if there is nothing to read.
        """
        schema = schema_of(self._options)
        check_times(self._options)
        try:
            self._check_partitions()
        except MissingPartitions as missing:
            if self._options.fail_on_data_loss:
                raise
            _log.warning("%s", missing)
        return schema

    def _check_partitions(self) -> None:
        found = find_partitions(self._options)
        check_named(self._options, found, all_named=self._has_end())
        if not found and self._options.subscribe_pattern is not None:
            _log.warning(
                "no topic matches subscribePattern = %s: there is nothing to read, or not yet",
                self._options.subscribe_pattern,
            )
        Clusters().check(found)
        in_threads(check_ids, [replicas for replicas in found.values() if len(replicas) > 1])

    def _has_end(self) -> bool:
        """Whether an ending limit is set that only a batch query can have. (A stream ignores `endingTimestamp`.)"""
        ending = self._options.ending
        return ending is not None and ending.timestamp_ms is None

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query. Raises `InvalidInput`."""
        check_schema(schema, self._options)
        check_batch(self._options)
        return OctavoReader(self._options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a streaming query. Raises `InvalidInput`."""
        check_schema(schema, self._options)
        check_stream(self._options)
        check_stream_limits(list(limits_per_trigger(self._options)))
        return OctavoStreamReader(self._options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query. Raises `InvalidInput`, `BadDirectory`."""
        if overwrite:
            raise InvalidInput(f'{_ONLY_APPENDED}: write mode("append")')
        return OctavoWriter(read_sink_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Return the writer of a streaming query. Raises `InvalidInput`, `BadDirectory`."""
        check_stream_writes()
        if overwrite:
            raise InvalidInput(f'{_ONLY_APPENDED}: write outputMode("append"), or use foreachBatch')
        return OctavoStreamWriter(read_sink_options(self.options), schema)

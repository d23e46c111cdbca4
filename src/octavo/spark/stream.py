"""A streaming query: tails the directory while somebody else writes it.

Offsets are those of Kafka's connector, `{"topic":{"0":23}}`: the next to be read of each partition. A micro-batch ends
at batches that were complete and checked when it was planned, so what is being written is never seen. Partitions that
are new since the last micro-batch are read from their start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from octavo.log.names import TopicPartition
from octavo.spark.admission import Patience, limit_bytes, limit_rows
from octavo.spark.offsets import LATEST, Nested, Offsets, flat, nested
from octavo.spark.options import Limit, Options
from octavo.spark.plan import plan_tasks
from octavo.spark.ranges import Logs, OffsetRange, SourceLog, check_limits, lose, resolve
from octavo.spark.reader import read_task

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("octavo.spark")

Sources = Mapping[TopicPartition, SourceLog]


class OctavoStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What Spark asks of a stream. One lives as long as the query, on the driver; others go to the tasks, to read."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._logs: Logs | None = None
        self._patience: Patience | None = None
        self._target: Offsets | None = None  # of a query that ends with what is there now

    # ------------------------------------------------------------------------------------------------------ planning

    def initialOffset(self) -> Nested:  # noqa: N802 - Spark's name
        """Where a new query begins."""
        sources = self._look(must_be_there=True)
        check_limits(self._options, sources)
        limit = self._options.starting or Limit("startingOffsets", offset=LATEST)
        starts = resolve(limit, sources, starting=True, latest_if_no_match=self._options.latest_if_no_match)
        return nested(starts)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much a micro-batch takes, unless the trigger says otherwise. Spark takes but one; `_limited` has all."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: Nested, limit: ReadLimit) -> Nested:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends."""
        sources = self._look()
        before = flat(start)
        ends = self._ends(sources, before)
        if self._target is not None:
            ends = {
                partition: min(end, self._target[partition])
                for partition, end in ends.items()
                if partition in self._target
            }
        starts = {partition: before.get(partition, self._start_of(sources, partition)) for partition in ends}
        if not isinstance(limit, ReadAllAvailable):
            if self._has_to_wait(starts, ends):
                return start
            ends = self._limited(sources, starts, ends)
        return nested(ends)

    def reportLatestOffset(self) -> Nested | None:  # noqa: N802 - Spark's name
        """How far the log goes, for the query's progress."""
        return nested({partition: source.end for partition, source in self._look().items()}) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What there is now is what this query reads."""
        self._target = {partition: source.end for partition, source in self._look().items()}

    def partitions(self, start: Nested, end: Nested) -> list[InputPartition]:
        """The tasks of a micro-batch. Raises `DataLoss`, if that is to fail a query."""
        starts, ends = flat(start), flat(end)
        sources = self._look()
        for partition in starts.keys() - ends.keys():
            _log.warning("%s is gone", partition)
            lose(self._options, partition, starts[partition], starts[partition] + 1)
        ranges = []
        for partition, stop in ends.items():
            source = sources.get(partition)
            first = starts.get(partition)
            if first is None:
                first = self._start_of(sources, partition)
                if first > 0:  # it is new: nobody has read what went before
                    lose(self._options, partition, 0, first)
            if first < stop:
                found = self._range(source, partition, first, stop)
                if found is not None:
                    ranges.append(found)
        return list(plan_tasks(self._options, ranges))

    def commit(self, end: Nested) -> None:
        """Nothing has to be kept for what is done."""

    def stop(self) -> None:
        """Close all files."""
        if self._logs is not None:
            self._logs.close()

    # ------------------------------------------------------------------------------------------------------- reading

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What one task reads."""
        return read_task(self._options, self._schema, partition)

    def __getstate__(self) -> dict[str, Any]:
        """Of one that goes to the tasks: it only reads."""
        return {**self.__dict__, "_logs": None, "_patience": None, "_target": None}

    # -------------------------------------------------------------------------------------------------------- inside

    def _look(self, *, must_be_there: bool = False) -> Sources:
        if self._logs is None:
            self._logs = Logs(self._options)
        return self._logs.look(must_be_there=must_be_there)

    def _ends(self, sources: Sources, before: Offsets) -> Offsets:
        """How far each partition goes, never back: the high watermark that is recorded may be behind what was read."""
        ends = {}
        for partition, source in sources.items():
            begun = before.get(partition, source.start)
            if source.log.end_offset < begun:
                lose(self._options, partition, source.log.end_offset, begun)
                ends[partition] = source.end
            else:
                ends[partition] = max(begun, source.end)
        return ends

    @staticmethod
    def _start_of(sources: Sources, partition: TopicPartition) -> int:
        source = sources.get(partition)
        return 0 if source is None else source.start

    def _has_to_wait(self, starts: Offsets, ends: Offsets) -> bool:
        smallest = self._options.min_offsets_per_trigger
        if smallest is None or self._target is not None:
            return False
        if self._patience is None:
            self._patience = Patience(smallest, self._options.max_trigger_delay_ms)
        return self._patience.waits(starts, ends, time.monotonic() * 1000)

    def _limited(self, sources: Sources, starts: Offsets, ends: Offsets) -> Offsets:
        if self._options.max_offsets_per_trigger is not None:
            ends = limit_rows(starts, ends, self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            ends = limit_bytes(sources, starts, ends, self._options.max_bytes_per_trigger)
        return ends

    def _range(self, source: SourceLog | None, partition: TopicPartition, first: int, stop: int) -> OffsetRange | None:
        """What is still there of a range of offsets."""
        if source is None:
            lose(self._options, partition, first, stop)
            return None
        start, end = max(first, min(source.start, stop)), min(stop, source.log.end_offset)
        if start > first:
            lose(self._options, partition, first, start)
        if end < stop:
            lose(self._options, partition, max(end, start), stop)
        return OffsetRange(source, start, end) if start < end else None

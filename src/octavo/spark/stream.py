"""Streaming queries, which tail the directory while a broker or another program writes it.

Offsets have the form of Spark's Kafka connector, `{"topic":{"0":23}}`: the next offset to read in each partition. A
micro-batch ends after batches that were complete and checked when it was planned, so a batch that is still being
written is never read. Partitions that are new since the last micro-batch are read from their start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from octavo.log.names import TopicPartition
from octavo.spark.admission import Patience, limit_bytes, limit_rows
from octavo.spark.limits import check_named
from octavo.spark.offsets import LATEST, Nested, Offsets, from_nested, partition_list, to_nested
from octavo.spark.options import Limit, Options
from octavo.spark.plan import plan_tasks
from octavo.spark.ranges import Logs, OffsetRange, Sources, clip_to_log, report_data_loss, resolve
from octavo.spark.reader import read_task
from octavo.spark.versions import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("octavo.spark")


class _Answer(NamedTuple):
    """The result of `latestOffset`, with the partitions for which it was computed."""

    sources: Sources
    latest: Offsets  # the offsets before which the query may read
    ends: Offsets  # the offsets where the next micro-batch ends


class OctavoStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a streaming query.

    One instance lives on the driver as long as the query, and plans. Copies of it read in the tasks.

    Spark says where a micro-batch begins from 4.2 on. An older one asks for nothing but the end, so the reader keeps in
    mind where the last micro-batch ended: it is there that the next one begins. When a query is restarted, it learns
    that from `partitions`, which Spark first asks for an empty range at the offsets in the checkpoint.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._logs: Logs | None = None
        self._patience: Patience | None = None
        self._initial: Nested | None = None
        self._target: Offsets | None = None  # the end of a query with trigger availableNow
        self._answer: _Answer | None = None  # the last result of `latestOffset`
        self._reached: Offsets | None = None  # where the last micro-batch ended that is known of

    # ------------------------------------------------------------------------------------------------------ planning

    def initialOffset(self) -> Nested:  # noqa: N802 - Spark's name
        """Return the offsets where a new query begins. Spark asks several times, and must get the same answer."""
        if self._initial is None:
            self._initial = to_nested(self._open().plan(self._starts))
        return self._initial

    def _starts(self, sources: Sources) -> Offsets:
        check_named(self._options, sources, streaming=True)
        limit = self._options.starting or Limit("startingOffsets", offset=LATEST)
        return resolve(limit, self._options, sources, starting=True)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a micro-batch that applies unless the trigger sets another.

        Spark accepts only one limit; `_limited` applies all of them.
        """
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: Nested | None = None, limit: ReadLimit | None = None
    ) -> Nested:
        """Return the offsets where the next micro-batch ends. Before Spark 4.2 there are no arguments, and no limit."""
        if start is None:
            before = from_nested(self.initialOffset()) if self._reached is None else self._reached
        else:
            before = from_nested(start)
        logs = self._open()
        answer = logs.plan(lambda sources: self._find_latest(sources, before), must_be_there=False)
        if limit is not None and not isinstance(limit, ReadAllAvailable):
            sources, latest, _ = answer
            starts = {partition: _begin(sources, before, partition) for partition in latest}
            if self._has_to_wait(starts, latest):
                answer = _Answer(sources, latest, before)
            else:
                answer = logs.plan(
                    lambda sources: _Answer(sources, latest, self._limited(sources, starts, latest)),
                    sources,
                    must_be_there=False,
                )
        self._answer = answer
        self._reached = answer.ends
        return to_nested(answer.ends)

    def reportLatestOffset(self) -> Nested | None:  # noqa: N802 - Spark's name
        """Return how far the query could read at the last call of `latestOffset`. Spark shows it as progress."""
        return None if self._answer is None else to_nested(self._answer.latest) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Make the query end at the current end of the log."""
        self._target = self._open().plan(lambda sources: self._latest(sources, {}), must_be_there=False)

    def partitions(self, start: Nested, end: Nested) -> list[InputPartition]:
        """Plan the tasks of a micro-batch. Raises `DataLoss` if offsets are missing and `failOnDataLoss` is set."""
        starts, ends = from_nested(start), from_nested(end)
        self._reached = ends
        answer = self._answer
        seen = None if answer is None or answer.ends != ends else answer.sources
        return list(
            self._open().plan(
                lambda sources: plan_tasks(self._options, self._ranges(sources, starts, ends)),
                seen,
                must_be_there=False,
            )
        )

    def commit(self, end: Nested) -> None:
        """Do nothing: Spark keeps the offsets, and nothing else has to be recorded."""

    def stop(self) -> None:
        """Close all files."""
        if self._logs is not None:
            self._logs.close()

    # ------------------------------------------------------------------------------------------------------- reading

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one task as Arrow batches."""
        return read_task(self._options, self._schema, partition)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy in a task, without the state of planning."""
        planning = ("_logs", "_patience", "_initial", "_target", "_answer", "_reached")
        return {**self.__dict__, **dict.fromkeys(planning)}

    # -------------------------------------------------------------------------------------------------------- inside

    def _open(self) -> Logs:
        if self._logs is None:
            self._logs = Logs(self._options, decides=True)
        return self._logs

    def _find_latest(self, sources: Sources, before: Offsets) -> _Answer:
        latest = self._latest(sources, before)
        if self._target is not None:
            latest = self._not_beyond(self._target, sources, before, latest)
        return _Answer(sources, latest, latest)

    def _latest(self, sources: Sources, before: Offsets) -> Offsets:
        """Return the end of each partition, but at least its offset in `before`.

        The recorded high watermark may be below that. If even the log end offset is below that, data were lost: then
        the log end offset is returned.
        """
        ends = {}
        for partition, source in sources.items():
            begun = before.get(partition, source.earliest)
            log_end = source.log.end_offset
            if log_end < begun:
                reason = (
                    f"Partition {partition} offset was changed from {begun} to {log_end}. This could be either 1) a "
                    "user error that the start offset is set beyond available offset when starting query, or 2) the "
                    "kafka topic-partition is deleted and re-created."
                )
                report_data_loss(self._options, partition, log_end, begun, reason)
                ends[partition] = log_end
            else:
                ends[partition] = max(begun, source.end)
        for partition in before.keys() & self._open().empty:
            _log.warning("%s has no segments at this moment: it stays at offset %d", partition, before[partition])
            ends[partition] = before[partition]
        return ends

    @staticmethod
    def _not_beyond(target: Offsets, sources: Sources, before: Offsets, latest: Offsets) -> Offsets:
        """Limit `latest` to `target`, but not to less than what was already read."""
        ends = {}
        for partition, end in latest.items():
            if partition in target or partition in before:
                begun = _begin(sources, before, partition)
                ends[partition] = min(end, max(begun, target.get(partition, begun)))
        return ends

    def _ranges(self, sources: Sources, starts: Offsets, ends: Offsets) -> list[OffsetRange]:
        """Return the ranges of a micro-batch, without offsets that are no longer in the log."""
        gone = starts.keys() - ends.keys()
        for partition in sorted(gone):
            reason = f"Partitions {partition_list(gone)} have been deleted."
            report_data_loss(self._options, partition, starts[partition], starts[partition] + 1, reason)
        ranges = []
        for partition, stop in ends.items():
            source = sources.get(partition)
            first = starts.get(partition)
            if first is None:
                first = 0 if source is None else source.earliest
                if first > 0:
                    reason = f"Added partition {partition} starts from {first} instead of 0."
                    report_data_loss(self._options, partition, 0, first, reason)
            if first > stop:
                _log.warning("%s: a batch that ends at %d begins at %d: nothing is read", partition, stop, first)
            elif source is not None and first < stop:
                # `stop` was below the high watermark when it was chosen; the high watermark recorded now may be lower.
                ranges.append(clip_to_log(self._options, source._replace(end=source.log.end_offset), first, stop))
            elif first < stop:
                new = partition not in starts
                reason = f"Cannot find initial offsets for partitions {partition}. They may have been deleted."
                report_data_loss(self._options, partition, first, stop, reason if new else None)
        return ranges

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


def _begin(sources: Sources, before: Offsets, partition: TopicPartition) -> int:
    """Return the offset where reading continues in a partition. A new partition is read from its start."""
    offset = before.get(partition)
    return sources[partition].earliest if offset is None else offset

"""Which offsets a round of an export reads: from where the table has come to, up to where the logs end.

What was exported may be lost in the log, or what is to be exported: the topic was created again, the log is shorter
than what was exported, or its start offset has moved past it. Then the export fails, or goes on if `failOnDataLoss` is
false.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from octavo.errors import ExportConflict
from octavo.log.files.partition_metadata import read_topic_id
from octavo.log.names import TopicPartition
from octavo.spark.admission import limit_bytes
from octavo.spark.limits import check_named
from octavo.spark.offsets import EARLIEST, LATEST, Offsets
from octavo.spark.options import Limit, Options
from octavo.spark.plan import slices_of
from octavo.spark.ranges import OffsetRange, SourceLog, Sources, report_data_loss, report_start_loss, resolve
from octavo.spark.tables.progress import Progress, Reached
from octavo.spark.threads import in_threads

_log = logging.getLogger("octavo.spark")


class Plan(NamedTuple):
    """What a round exports."""

    ranges: list[OffsetRange]
    before: Progress  # which the commit has to find: the plan is for no other
    after: Progress
    is_last: bool  # whether the table has everything that was there, once this round is done
    left: int  # bytes of the logs that are exported in later rounds


def plan_round(options: Options, sources: Sources, before: Progress, max_bytes: int) -> Plan:
    """Decide what a round exports, of at most about `max_bytes`.

    Raises `DataLoss` if offsets are missing and `failOnDataLoss` is set, and `MissingPartitions` if the options give
    offsets or timestamps of some partitions but not of all. Once there is a table, only the end has to be for all.
    """
    check_named(options, sources, all_named=not before)
    check_named(replace(options, starting=None), sources)
    topic_ids = dict(zip(sources, in_threads(_topic_id, sources.values()), strict=True))
    starts = _starts(options, sources, before, topic_ids)
    ends = _ends(options, sources, starts)
    limited = limit_bytes(sources, starts, ends, max_bytes)
    reached = {
        partition: Reached(topic_ids[partition] or _known_id(before, partition), limited[partition])
        for partition in sources
    }
    ranges = [
        OffsetRange(source, starts[partition], limited[partition])
        for partition, source in sources.items()
        if starts[partition] < limited[partition]
    ]
    later = [OffsetRange(sources[partition], limited[partition], end) for partition, end in ends.items()]
    left = sum(piece.size for each in later for piece in slices_of(each))
    return Plan(ranges, before, before.advanced(reached), limited == ends, left)


def check_topics(plan: Plan) -> None:
    """Check that the tasks have read the topics of the plan, and no later ones of the same names.

    Raises `ExportConflict`. Then the round must not be committed: its rows would count as those of the old topics.
    """
    sources = [each.source for each in plan.ranges]
    for source, topic_id in zip(sources, in_threads(_topic_id, sources), strict=True):
        partition = source.replica.partition
        planned = plan.after[partition].topic_id
        if topic_id is not None and planned is not None and topic_id != planned:
            problem = f"the topic of {partition} was deleted and created again while it was exported"
            raise ExportConflict(source.replica.folder, problem)


def _topic_id(source: SourceLog) -> UUID | None:
    return read_topic_id(source.replica.root.storage(), source.replica.folder)


def _known_id(before: Progress, partition: TopicPartition) -> UUID | None:
    reached = before.get(partition)
    return None if reached is None else reached.topic_id


def _starts(
    options: Options, sources: Sources, before: Progress, topic_ids: Mapping[TopicPartition, UUID | None]
) -> Offsets:
    """Return where each partition goes on.

    In the first export, all begin where the options say. Partitions that come later begin at the earliest offset, as in
    Spark's streams, unless the options name them: with `latest`, what they got since the last export would be missing.
    """
    starting = options.starting or Limit("startingOffsets", offset=EARLIEST)
    named = starting.of_each or {}
    told = {
        partition: source
        for partition, source in sources.items()
        if partition not in before and (not before or partition in named)
    }
    starts = {partition: source.earliest for partition, source in sources.items()}
    starts |= resolve(starting, options, told, starting=True)
    for partition, source in sources.items():
        if partition not in before and starts[partition] < source.start:
            if source.remote is not None:
                report_start_loss(options, source, starts[partition], source.start)
            starts[partition] = source.start
    for partition, source in sources.items():
        if partition in before:
            starts[partition] = _next(options, source, before[partition], topic_ids[partition])
    return starts


def _next(options: Options, source: SourceLog, reached: Reached, topic_id: UUID | None) -> int:
    """Return the offset at which a partition goes on. Raises `DataLoss`."""
    partition, (known_id, offset) = source.replica.partition, reached
    if topic_id is not None and known_id is not None and topic_id != known_id:
        reason = (
            f"The topic of {partition} was deleted and created again since it was exported up to offset {offset}: its "
            "offsets begin anew."
        )
        report_data_loss(options, partition, 0, offset, reason)
        return source.start
    log_end = source.log.end_offset
    if log_end < offset:
        reason = f"{partition} was exported up to offset {offset}, but its log ends at {log_end}."
        report_data_loss(options, partition, log_end, offset, reason)
        return log_end
    if source.start > offset:
        report_start_loss(options, source, offset, source.start)
        return source.start
    return offset


def _ends(options: Options, sources: Sources, starts: Offsets) -> Offsets:
    """Return where each partition ends, and nowhere before its start: the recorded high watermark may be older."""
    ending = options.ending or Limit("endingOffsets", offset=LATEST)
    ends = resolve(ending, options, sources, starting=False)
    return {
        partition: max(starts[partition], min(ends[partition], source.end)) for partition, source in sources.items()
    }

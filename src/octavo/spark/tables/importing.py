"""A table becomes logs again: `import_table`.

Tasks read the files of the table, and stage batches with the offsets that the rows have. Then the driver appends all of
them to the logs of the target, or none. So nothing is imported twice: what was imported has its offsets already.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import InvalidInput
from octavo.log import StagingArea
from octavo.log.config.log_config import LogConfig
from octavo.log.names import TopicPartition, is_internal_topic
from octavo.log.producer.config import ProducerConfig
from octavo.log.storage import DISK
from octavo.spark.tables.on_workers import run_on_workers
from octavo.spark.tables.restore.committing import ImportedTopic, TargetLogs
from octavo.spark.tables.restore.planning import plan_pieces
from octavo.spark.tables.restore.runs import DataFile, Run, survey
from octavo.spark.tables.restore.source_table import SourceTable, open_source
from octavo.spark.tables.restore.staging import Imported, ImportTask, stage
from octavo.spark.tables.topic_configs import restorable
from octavo.spark.tables.watching import OnProgress, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SURVEYED: Final = 64  # files that a task looks at
_BATCH_SIZE: Final = 256 << 10


class ImportSummary(NamedTuple):
    """What an import has done."""

    target: Path
    partitions: Mapping[TopicPartition, range]  # the offsets of each, from the first record to the end of the log
    created: tuple[str, ...]  # topics that were created
    records: int
    size: int  # bytes of the batches
    files: int  # of the table
    seconds: float


def import_table(
    spark: SparkSession,
    source: str | Path,
    target: str | Path,
    *,
    format: str = "parquet",  # noqa: A002 - Spark's name
    source_options: Mapping[str, str] | None = None,
    topics: Collection[str] | None = None,
    topic_config: Mapping[str, str] | None = None,
    compression: str = "none",
    staging_path: str | Path | None = None,
    lock_timeout: float = 30.0,
    sync: bool = True,
    on_progress: OnProgress | None = None,
) -> ImportSummary:
    """Write the rows of a table to the logs of a data directory, with the offsets that they have.

    source: the table, at a path or an address that driver and executors have in common
    target: the data directory, on a file system that they have in common. It and its topics are made if missing
    format: `parquet`, `delta` or `iceberg`
    source_options: how the table is reached: the `target_options` of its export
    topics: the topics to import; None for all
    topic_config: settings of topics that are created, in place of those that they had when they were exported. Unless
        they say otherwise, records are kept for ever
    compression: the codec of the batches, if the table does not tell it
    staging_path: where batches wait for the commit, instead of a folder beside the target
    lock_timeout: how many seconds to wait for the target to be free
    sync: have everything on the disk when this returns
    on_progress: called with the number of bytes that are read, and of those that will be

    Raises `InvalidInput` if the table cannot become logs, or if the target has these offsets already. Raises
    `BadTable`, `BadDirectory`, `DirectoryLocked` and `OSError`. Then nothing was appended. Raises `CommitPending` if
    the commit was decided, and the next opener of the target finishes it.
    """
    began = time.monotonic()
    logs = TargetLogs(target, lock_timeout, staging_path)
    config = dict(topic_config or {})
    LogConfig.from_properties(config)
    codec = ProducerConfig.of({"compression.type": compression}).compression_type
    table = open_source(str(source), format, source_options or {})
    runs = _survey(spark, table.files, topics)
    imported = _topics(runs, table, config)
    logs.check(imported)
    batch_info = all(run.has_batch_info for run in runs)
    pieces = plan_pieces(runs, _ends(imported), batch_info=batch_info)
    batch_size = _batch_size(imported.values())
    tasks = [ImportTask(tuple(each), logs.area, codec, batch_size, sync) for each in pieces]
    done = _stage_all(spark, tasks, logs.area, on_progress)
    committed = logs.commit([each.file for each in done if each.file is not None], imported, sync=sync)
    return ImportSummary(
        target=logs.path,
        partitions=committed.offsets,
        created=committed.created,
        records=sum(each.records for each in done),
        size=sum(each.size for each in done),
        files=len(table.files),
        seconds=time.monotonic() - began,
    )


def _survey(spark: SparkSession, files: Sequence[DataFile], topics: Collection[str] | None) -> list[Run]:
    """Find out which offsets of which partitions are in the files."""
    if topics is not None:
        files = [file for file in files if file.topic is None or file.topic in topics]
    parts = [files[first : first + _SURVEYED] for first in range(0, len(files), _SURVEYED)]
    found = [run for runs in run_on_workers(spark, _survey_all, parts) for run in runs]
    runs = [run for run in found if topics is None or run.partition.topic in topics]
    there = {run.partition.topic for run in runs}
    if not runs and topics is None:
        raise InvalidInput("the table has no rows")
    for topic in sorted(set(topics or ()) - there):
        raise InvalidInput(f"the table has no rows of the topic {topic!r}")
    for topic in filter(is_internal_topic, sorted(there)):
        raise InvalidInput(f"the table has rows of {topic}, which Kafka's coordinators alone write: name other topics")
    return runs


def _survey_all(files: Sequence[DataFile]) -> list[Run]:
    return [run for file in files for run in survey(file)]


def _stage_all(
    spark: SparkSession, tasks: Sequence[ImportTask], area: StagingArea, on_progress: OnProgress | None
) -> list[Imported]:
    """Run the tasks. If one fails, what the others have staged is removed."""
    try:
        with Watch(spark, [task.size for task in tasks], on_progress):
            return run_on_workers(spark, stage, tasks)
    except BaseException:
        area.remove_own(DISK)
        raise


def _topics(runs: Iterable[Run], table: SourceTable, config: Mapping[str, str]) -> dict[str, ImportedTopic]:
    """Return what is known of each topic that has rows."""
    first: dict[str, dict[int, int]] = {}
    for run in runs:
        of_topic = first.setdefault(run.partition.topic, {})
        number = run.partition.partition
        of_topic[number] = min(run.first_offset, of_topic.get(number, run.first_offset))
    topics = {}
    for name, offsets in first.items():
        own = {of.partition: reached for of, reached in table.progress.items() if of.topic == name}
        ids = {reached.topic_id for reached in own.values()}
        topic_id = ids.pop() if len(ids) == 1 else None
        ends = {number: reached.next_offset for number, reached in own.items()}
        exported = table.configs.get(name, {})
        topics[name] = ImportedTopic(offsets, ends, topic_id, {**restorable(exported), **config})
    return topics


def _batch_size(topics: Iterable[ImportedTopic]) -> int:
    """Return how large batches become, if the table does not tell: all topics have to take them."""
    configs = [LogConfig.from_properties(topic.config) for topic in topics]
    return min(_BATCH_SIZE, *(min(config.segment_bytes, config.max_message_bytes) for config in configs))


def _ends(topics: Mapping[str, ImportedTopic]) -> dict[TopicPartition, int]:
    return {TopicPartition(name, number): end for name, topic in topics.items() for number, end in topic.ends.items()}

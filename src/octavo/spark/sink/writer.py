"""What Spark calls to write: `OctavoWriter` for a batch query, `OctavoStreamWriter` for a stream.

Spark makes a writer on the driver, sends it to the tasks, and runs `commit` in a Python process of the driver. The
writer of a stream is made again for every commit. A micro-batch is known by the id of its query and its number, which
are the same when it is repeated.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from octavo.errors import DirectoryLocked, InvalidInput, OthersDecide
from octavo.log import (
    CommitIdentity,
    DataDirectory,
    ExpectedTopic,
    StagedFile,
    StagedWriter,
    StagingArea,
    discard_staged,
)
from octavo.log.metadata import MetadataStore
from octavo.log.partition_folders import find_partitions
from octavo.log.storage import DISK
from octavo.spark.sink.columns import SinkColumns
from octavo.spark.sink.options import SinkOptions
from octavo.spark.sink.task_writer import TaskWriter

_QUERY: Final = "sql.streaming.queryId"
_MICRO_BATCH: Final = "streaming.sql.batchId"
_INSTEAD: Final = 'To write to topics of a running broker or of a cluster, use format("kafka"), or stop the broker.'


@dataclass
class Staged(WriterCommitMessage):
    """What a task tells the commit: what it has staged, where, and how many partitions it took the topics to have."""

    area: StagingArea
    file: StagedFile | None
    topics: dict[str, int] = field(default_factory=dict)


class _Writer:
    """What both writers have in common."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options: Final = options
        self._columns: Final = SinkColumns.of(schema, topic=options.topic, restore=options.restore)
        self._counts: Final = _partition_counts(options)

    def _stage(self, batches: Iterator[pa.RecordBatch], area: StagingArea, first: int) -> Staged:
        staged = StagedWriter(area, sync=self._options.sync)
        now_ms = time.time_ns() // 1_000_000
        task = TaskWriter(staged, self._columns, self._options, self._counts, first=first, now_ms=now_ms)
        try:
            file = task.write(batches)
        except BaseException:
            staged.discard()
            raise
        return Staged(area, file, task.topics)

    def _commit(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        staged = [message for message in messages if isinstance(message, Staged) and message.file is not None]
        if not staged:
            return
        options = self._options
        topics = {name: count for message in staged for name, count in message.topics.items()}
        expected = {name: ExpectedTopic(count, options.topic_config) for name, count in topics.items()}
        files = [message.file for message in staged if message.file is not None]
        try:
            with DataDirectory.open(options.path, lock_timeout=options.lock_timeout_ms / 1000) as directory:
                directory.commit_staged(
                    staged[0].area, files, topics=expected, keep_offsets=options.restore, sync=options.sync
                )
        except (DirectoryLocked, OthersDecide) as error:
            error.add_note(_INSTEAD)
            raise

    def _abort(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        for message in messages:
            if isinstance(message, Staged) and message.file is not None:
                discard_staged(self._options.path, message.area, [message.file])


class OctavoWriter(_Writer, DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        """Check the columns, and choose a staging folder. Raises `InvalidInput`, `BadDirectory`."""
        super().__init__(options, schema)
        identity = None if options.application is None else CommitIdentity(options.application, options.version)
        self._area: Final = StagingArea.of(options.path, folder=options.staging_path, identity=identity)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a task."""
        context = TaskContext.get()
        return self._stage(iterator, self._area, 0 if context is None else context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append what the tasks have staged, all or nothing."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what the tasks have staged, unless a commit has begun that will be finished."""
        self._abort(messages)


class OctavoStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writes the rows of a streaming query, micro-batch by micro-batch."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a task of a micro-batch."""
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY)
        number = None if context is None else context.getLocalProperty(_MICRO_BATCH)
        if context is None or query is None or number is None:
            raise InvalidInput("Spark does not tell which micro-batch this is, and so it cannot be written just once")
        identity = CommitIdentity(query, int(number))
        area = StagingArea.of(self._options.path, folder=self._options.staging_path, identity=identity)
        first = zlib.crc32(f"{query} {number}".encode()) + context.partitionId()
        return self._stage(iterator, area, first)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Append what the tasks have staged, all or nothing, unless this micro-batch was appended before."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove what the tasks have staged, unless a commit has begun that will be finished."""
        self._abort(messages)


def _partition_counts(options: SinkOptions) -> dict[str, int]:
    """Return how many partitions each topic of the directory has. Raises `OthersDecide` if other nodes decide on it."""
    if not options.path.exists():
        return {}
    known = MetadataStore.open([options.path], storage=DISK, read_only=True)
    try:
        known.check_charge()
    except OthersDecide as error:
        error.add_note(_INSTEAD)
        raise
    counts = {name: len(topic.partitions) for name, topic in known.topics.items()}
    for topic, partition in find_partitions(options.path):
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts

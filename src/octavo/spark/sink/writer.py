"""What Spark calls to write: `OctavoWriter` for a batch query, `OctavoStreamWriter` for a stream.

Spark makes a writer on the driver, sends it to the tasks, and runs `commit` in a Python process of the driver. The
writer of a stream is made again for every commit. A micro-batch is known by the id of its query and its number, which
are the same when it is repeated.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from octavo.errors import BadDirectory, DirectoryLocked, InvalidInput
from octavo.log import (
    CommitIdentity,
    DataDirectory,
    ExpectedTopic,
    StagedFile,
    StagedWriter,
    StagingArea,
    discard_staged,
)
from octavo.log.ownership.lock import broker_in
from octavo.spark.sink.columns import SinkColumns
from octavo.spark.sink.options import SinkOptions
from octavo.spark.sink.task_writer import TaskWriter
from octavo.spark.sink.topics import SinkTopics
from octavo.spark.versions import DataSourceStreamArrowWriter

_log = logging.getLogger("octavo.spark")

_QUERY: Final = "sql.streaming.queryId"
_MICRO_BATCH: Final = "streaming.sql.batchId"


@dataclass
class Staged(WriterCommitMessage):
    """What a task tells the commit: what it has staged, where, and how many partitions it took the topics to have."""

    area: StagingArea
    file: StagedFile | None
    topics: dict[str, int] = field(default_factory=dict)
    with_transactions: set[str] = field(default_factory=set)  # topics, if they are restored
    with_markers: set[str] = field(default_factory=set)


class _Writer:
    """What both writers have in common."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options: Final = options
        self._columns: Final = SinkColumns.of(schema, topic=options.topic, restore=options.restore)
        self._topics: Final = SinkTopics.read(options)
        broker = broker_in(options.path)
        if broker is not None:
            raise _in_use(DirectoryLocked(options.path, broker))

    def _stage(self, batches: Iterator[pa.RecordBatch], area: StagingArea, task_number: int) -> Staged:
        staged = StagedWriter(area, sync=self._options.sync)
        now_ms = time.time_ns() // 1_000_000
        first = first_partition(area, task_number)
        task = TaskWriter(staged, self._columns, self._options, self._topics, first=first, now_ms=now_ms)
        try:
            file = task.write(batches)
        except BaseException:
            staged.discard()
            raise
        return Staged(area, file, task.topics, task.with_transactions, task.with_markers)

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
                done = directory.commit_staged(
                    staged[0].area, files, topics=expected, keep_offsets=options.restore, sync=options.sync
                )
            if done.is_repeated:
                _log.warning(
                    "%s, or a later version, is in the logs already: nothing is written", staged[0].area.identity
                )
        except DirectoryLocked as error:
            raise _in_use(error, f", and still has after {options.lock_timeout_ms / 1000:g} s") from None

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
        _check_transactions([message for message in messages if isinstance(message, Staged)])
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
        return self._stage(iterator, area, context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Append what the tasks have staged, all or nothing, unless this micro-batch was appended before."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove what the tasks have staged, unless a commit has begun that will be finished."""
        self._abort(messages)


def first_partition(area: StagingArea, task_number: int) -> int:
    """Return with which partition rows without a key begin. It differs from task to task, and from commit to commit."""
    commit = f"{area.owner} {area.version}".encode()
    return int.from_bytes(hashlib.sha256(commit).digest()[:4]) + task_number


def _check_transactions(staged: list[Staged]) -> None:
    """Raise `InvalidInput` if transactions are restored without their ends: consumers would wait for these for ever."""
    ended = {topic for message in staged for topic in message.with_markers}
    for message in staged:
        for topic in sorted(message.with_transactions - ended):
            raise InvalidInput(
                f"topic {topic!r} has records of transactions, and no row says how a transaction ended: "
                "read it with includeControlRecords, or restore it without the column isTransactional"
            )


def _in_use(error: DirectoryLocked, how_long: str = "") -> BadDirectory:
    """Return what to tell somebody who writes to a directory that another process has open."""
    owner = "another process" if error.pid is None else f"process {error.pid}"
    instead = 'stop it first or, if it is a broker, write to its topics with format("kafka")'
    return BadDirectory(error.path, f"{owner} has it open{how_long}: {instead}")

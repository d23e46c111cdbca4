"""What a task of the sink does: rows become batches of their partitions, in one staged file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from octavo.errors import InvalidInput
from octavo.log import StagedFile, StagedWriter
from octavo.log.names import check_clients_may_write, check_topic_name
from octavo.records import from_arrow
from octavo.records.arrow.divided import from_arrow_divided
from octavo.records.layout import MAX_SIZE, Buffer
from octavo.spark.sink.columns import SinkColumns
from octavo.spark.sink.options import SinkOptions
from octavo.spark.sink.partitioning import Partitioning
from octavo.spark.sink.topics import SinkTopics

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_LEAST_TOGETHER: Final = 8 << 20  # bytes of rows that are divided among partitions at a time
_MOST_TOGETHER: Final = 64 << 20
_NOT_IN_RECORDS: Final = ("topic", "partition")
_NULL_TOPIC: Final = (  # in the words of Spark's connector
    "The Kafka message data sent to the producer contains a null topic. "
    "Use the `topic` option for setting a default topic."
)
_MAX_UINT16: Final = 2**16 - 1


class TaskWriter:
    """Writes the rows of one task to one staged file."""

    def __init__(
        self,
        staged: StagedWriter,
        columns: SinkColumns,
        options: SinkOptions,
        topics: SinkTopics,
        *,
        first: int,
        now_ms: int,
    ) -> None:
        """`first`: a number that differs between tasks."""
        self._staged: Final = staged
        self._columns: Final = columns
        self._options: Final = options
        self._topics: Final = topics
        self._first: Final = first
        self._now_ms: Final = now_ms
        self._partitionings: Final[dict[str, Partitioning]] = {}
        self.with_transactions: Final[set[str]] = set()  # topics with records of transactions, if these are restored
        self.with_markers: Final[set[str]] = set()  # topics with records that say how transactions ended

    @property
    def topics(self) -> dict[str, int]:
        """The topics that rows were written to, each with the number of partitions that was assumed."""
        return {topic: partitioning.count for topic, partitioning in self._partitionings.items()}

    def write(self, batches: Iterable[pa.RecordBatch]) -> StagedFile | None:
        """Write all rows. Raises `InvalidInput` for rows that cannot be records, and `OSError`."""
        for rows in self._gathered(batches):
            for topic, own in self._by_topic(rows):
                self._write_topic(topic, own)
        return self._staged.finish()

    def _gathered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of several batches at once, so that each partition gets large batches."""
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            waiting.append(self._columns.select(batch))
            size += waiting[-1].nbytes
            if size >= self._together():
                *ready, last = _joined(waiting)
                whole = self._end_of_whole_batches(last)
                yield from (*ready, last.slice(0, whole))
                waiting = [last.slice(whole)] if whole < last.num_rows else []
                size = sum(rows.nbytes for rows in waiting)
        if waiting:
            yield from _joined(waiting)

    def _end_of_whole_batches(self, rows: pa.RecordBatch) -> int:
        """Return how many rows to write now: all, or those before the last batch, if batches are to be as they were."""
        if not self._options.restore or "position" not in rows.schema.names:
            return int(rows.num_rows)
        numbers = _numbers_of_batches(rows).to_numpy()
        return int(np.searchsorted(numbers, numbers[-1])) or int(rows.num_rows)

    def _together(self) -> int:
        """Return how many bytes to divide at a time: about one batch for each partition."""
        return min(_MOST_TOGETHER, max(_LEAST_TOGETHER, self._topics.most_partitions * self._options.batch_size))

    def _by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._options.topic is not None:
            yield self._options.topic, rows
            return
        names = rows.column("topic")
        if names.null_count:
            raise InvalidInput(_NULL_TOPIC)
        topics = names.dictionary_encode()
        if len(topics.dictionary) == 1:
            yield topics.dictionary[0].as_py(), rows
            return
        for number, name in enumerate(topics.dictionary.to_pylist()):
            yield name, rows.filter(pc.equal(topics.indices, number))

    def _partitioning(self, topic: str) -> Partitioning:
        found = self._partitionings.get(topic)
        if found is None:
            check_topic_name(topic)
            check_clients_may_write(topic)
            count = self._topics.of(topic).partitions
            found = self._partitionings[topic] = Partitioning(topic, count, self._first)
        return found

    def _write_topic(self, topic: str, rows: pa.RecordBatch) -> None:
        """Stage the records of one topic, those of a partition after those of the one before."""
        partitions, order = _by_partition(self._partitioning(topic).assign(rows))
        ends = np.append(np.nonzero(np.diff(partitions))[0] + 1, len(partitions))
        records = self._records(rows)
        if order is not None:
            records = records.take(pa.array(order))
        records = _with_numbers(records)
        options = self._options
        size = self._topics.of(topic).batch_size(options.batch_size)
        encoded: Iterable[Buffer | list[Buffer]]
        if options.restore:
            self._note_transactions(topic, rows)
            encoded = self._restored(records, ends, size)
        else:
            encoded = from_arrow_divided(records, ends, codec=options.codec, level=options.level, max_size=size)
        for partition, batches in zip(partitions[ends - 1].tolist(), encoded, strict=True):
            self._staged.add(topic, partition, batches)

    def _records(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the records. Where there is no timestamp it is now, as in Kafka's producer."""
        columns = {name: rows.column(name) for name in rows.schema.names if name not in _NOT_IN_RECORDS}
        times = columns.get("timestamp")
        if times is None or times.null_count:
            now = pa.scalar(self._now_ms * 1000, pa.timestamp("us", "UTC"))
            columns["timestamp"] = pa.repeat(now, rows.num_rows) if times is None else times.fill_null(now)
        return pa.RecordBatch.from_pydict(columns)

    def _note_transactions(self, topic: str, rows: pa.RecordBatch) -> None:
        for name, topics in (("isTransactional", self.with_transactions), ("isControl", self.with_markers)):
            if name in rows.schema.names and pc.any(rows.column(name)).as_py():
                topics.add(topic)

    def _restored(self, records: pa.RecordBatch, ends: Int64s, size: int) -> Iterator[Buffer]:
        """Yield the batches of each partition, with given offsets: as they were, or else of at most `size` bytes."""
        options = self._options
        size = MAX_SIZE if "position" in records.schema.names else size
        for first, end in pairwise([0, *ends.tolist()]):
            own = records.slice(first, end - first)
            yield from_arrow(own, codec=options.codec, level=options.level, max_size=size)


def _by_partition(partitions: Int32s) -> tuple[Int32s, Int64s | None]:
    """Sort rows by partition, and keep their order in each; returns their partitions, and the order if it changed."""
    if not (partitions[1:] < partitions[:-1]).any():
        return partitions, None
    # For 16 bits NumPy has a sort that is linear.
    order = (partitions.astype(np.uint16) if partitions.max() <= _MAX_UINT16 else partitions).argsort(kind="stable")
    return partitions[order], order


def _numbers_of_batches(rows: pa.RecordBatch) -> pa.Array:
    """Return a number for each row that changes from batch to batch; positions may not, from file to file."""
    begins = np.zeros(rows.num_rows, bool)
    for name in ("file", "position"):
        if name in rows.schema.names:
            numbers = rows.column(name).dictionary_encode().indices.to_numpy()
            begins[1:] |= numbers[1:] != numbers[:-1]
    return pa.array(begins.cumsum())


def _with_numbers(records: pa.RecordBatch) -> pa.RecordBatch:
    """Replace file and position, if they are there, by the number of the batch."""
    if "position" in records.schema.names:
        place = records.schema.get_field_index("position")
        records = records.set_column(place, "position", _numbers_of_batches(records))
    return records.drop_columns(["file"]) if "file" in records.schema.names else records


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Join batches: to one, unless a column has more bytes than an Arrow array can hold."""
    if len(batches) == 1:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined

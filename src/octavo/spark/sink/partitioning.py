"""Choose the partition of each row: the given one, that of its key as Kafka's producer chooses it, or the next in turn.

Rows without key and partition are spread evenly. A task divides the rows that it holds at a time among all partitions
of the topic, in runs of the same length, so that batches are as large as can be. The next rows begin with the partition
that is next in turn. The first one differs between tasks and between micro-batches.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.records.kernels import kernels

Int32s = npt.NDArray[np.int32]

_NONE: Final = -1


class Partitioning:
    """The partitions of the rows of one topic."""

    def __init__(self, topic: str, count: int, first: int) -> None:
        """`count`: how many partitions the topic has; `first`: the one with which rows without a key begin."""
        self._topic: Final = topic
        self.count: Final = count
        self._next = first % count

    def assign(self, rows: pa.RecordBatch) -> Int32s:
        """Return the partition of each row. Raises `InvalidInput` for a given one that does not exist."""
        partitions = self._given(rows)
        if self.count == 1:
            partitions[:] = 0
            return partitions
        if "key" in rows.schema.names:
            self._assign_by_key(rows.column("key"), partitions)
        [free] = np.nonzero(partitions == _NONE)
        if len(free):
            self._spread(partitions, free)
        return partitions

    def _assign_by_key(self, keys: pa.Array, partitions: Int32s) -> None:
        _, limits, data = keys.cast(pa.binary()).buffers()
        ends = np.frombuffer(limits, np.int32)[keys.offset : keys.offset + len(keys) + 1]
        lengths = np.diff(ends)
        if keys.null_count:
            lengths[keys.is_null().to_numpy(zero_copy_only=False)] = _NONE
        content = np.frombuffer(b"" if data is None else data, np.uint8)
        kernels(len(content)).partition(content, ends[:-1], lengths, self.count, partitions)

    def _given(self, rows: pa.RecordBatch) -> Int32s:
        if "partition" not in rows.schema.names:
            return np.full(rows.num_rows, _NONE, np.int32)
        column = rows.column("partition")
        given: Int32s = column.fill_null(_NONE).to_numpy(zero_copy_only=False).astype(np.int32)
        if column.null_count:
            wrong = ((given < 0) & column.is_valid().to_numpy(zero_copy_only=False)) | (given >= self.count)
        else:
            wrong = (given < 0) | (given >= self.count)
        if wrong.any():
            raise self._refused(int(given[wrong.argmax()]))
        return given.copy()

    def _refused(self, partition: int) -> InvalidInput:
        if partition < 0:
            return InvalidInput(
                f"Invalid partition: {partition}. Partition number should always be non-negative or null."
            )
        last = f"its last partition is {self.count - 1}"
        return InvalidInput(f"there is no partition {partition} of topic {self._topic!r}: {last}")

    def _spread(self, partitions: Int32s, free: npt.NDArray[np.intp]) -> None:
        """Divide the rows `free` into runs of the same length, one for each partition; the first ones get one more."""
        share, more = divmod(len(free), self.count)
        order = (self._next + np.arange(self.count)) % self.count
        lengths = np.full(self.count, share)
        lengths[:more] += 1
        partitions[free] = order.repeat(lengths)
        self._next = (self._next + more) % self.count

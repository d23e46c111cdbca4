"""Choose partitions for records without a key: Kafka's sticky partitioner (KIP-480, KIP-794).

One partition gets `batch.size` bytes, so that its batch fills early. Then another, drawn at random, gets as many. In
the end all partitions get the same share, whatever the record sizes are. Apache Kafka also prefers partitions whose
brokers are quick; here no partition is quicker than another.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from octavo.errors import InvalidInput
from octavo.records.layout import Buffer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Partitioner = Callable[[str, Buffer | None, Buffer | None, int], int]  # topic, key, value, number of partitions


class Sticky:
    """The partition of one topic whose turn it is."""

    __slots__ = ("_choose", "_used", "count", "partition")

    def __init__(self, count: int, choose: Callable[[int], int] = random.randrange) -> None:
        """`choose` draws one of that many partitions."""
        self.count = count
        self._choose = choose
        self._used = 0  # bytes that the current partition has got
        self.partition = choose(count)

    def assign(self, sizes: npt.NDArray[np.int64], limit: int) -> list[tuple[int, int]]:
        """Return a run of records for each turn: its partition, and the index after its last record.

        A turn ends when the next record would take it beyond `limit` bytes. It has at least one record.
        """
        runs = []
        ends = sizes.cumsum()
        first = 0
        before = 0  # bytes of the records in earlier turns
        while first < len(sizes):
            end = int(ends.searchsorted(before + limit - self._used, side="right"))
            if end == first and self._used == 0:
                end += 1  # one record larger than a turn
            if end > first:
                runs.append((self.partition, end))
                self._used += int(ends[end - 1]) - before
                before = int(ends[end - 1])
                first = end
            if first < len(sizes) or self._used >= limit:
                self._used = 0
                self.partition = self._choose(self.count)
        return runs


def chosen_partition(partitioner: Partitioner, topic: str, key: Buffer | None, value: Buffer | None, count: int) -> int:
    """Call the caller's own partitioner. Raises `InvalidInput` if its result is no partition."""
    partition = partitioner(topic, key, value, count)
    if type(partition) is not int or not 0 <= partition < count:
        raise InvalidInput(f"the partitioner gives {partition!r} for topic {topic!r}, which has {count} partitions")
    return partition

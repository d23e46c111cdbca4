"""Where a record without a key goes: Kafka's sticky partitioner (KIP-480, KIP-794).

One partition gets `batch.size` bytes, so that its batch is full early, and then another, drawn at random, gets as many.
All partitions get the same share in the end, whatever the sizes of records are. Apache Kafka also prefers partitions
whose brokers are quick; here no partition is quicker than another.
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

# Topic, key, value and the count of partitions; the number of a partition.
Partitioner = Callable[[str, Buffer | None, Buffer | None, int], int]


class Sticky:
    """The partition of one topic whose turn it is."""

    __slots__ = ("_choose", "_used", "count", "partition")

    def __init__(self, count: int, choose: Callable[[int], int] = random.randrange) -> None:
        """`choose` gives one of so many partitions."""
        self.count = count
        self._choose = choose
        self._used = 0  # bytes that the partition has got
        self.partition = choose(count)

    def assign(self, sizes: npt.NDArray[np.int64], limit: int) -> list[tuple[int, int]]:
        """A run of records for each turn: its partition, and the index behind its last record.

        A turn is over when the next record would make it more than `limit` bytes. It has one record at least.
        """
        runs = []
        ends = sizes.cumsum()
        first = 0
        before = 0  # bytes of the records of earlier turns
        while first < len(sizes):
            end = int(ends.searchsorted(before + limit - self._used, side="right"))
            if end == first and self._used == 0:
                end += 1  # larger than a turn
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
    """What a caller's own partitioner says; raises `InvalidInput` where that is no partition."""
    partition = partitioner(topic, key, value, count)
    if type(partition) is not int or not 0 <= partition < count:
        raise InvalidInput(f"the partitioner gives {partition!r} for topic {topic!r}, which has {count} partitions")
    return partition

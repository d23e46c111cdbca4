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
    """The current partition for records of one topic that have no key."""

    __slots__ = ("_choose", "_used", "count", "partition")

    def __init__(self, count: int, choose: Callable[[int], int] = random.randrange) -> None:
        """`count` is the number of partitions; `choose(count)` draws one of them."""
        self.count = count
        self._choose = choose
        self._used = 0  # bytes assigned to the current partition in this turn
        self.partition = choose(count)

    def assign(self, sizes: npt.NDArray[np.int64], limit: int) -> list[tuple[int, int]]:
        """Divide records of these sizes into runs. Return each run's partition, and the index after its last record.

        A partition's turn ends when the next record would take it beyond `limit` bytes. A turn has at least one record.
        """
        runs = []
        ends = sizes.cumsum()
        first = 0
        before = 0  # bytes of the records in earlier turns
        while first < len(sizes):
            end = int(ends.searchsorted(before + limit - self._used, side="right"))
            if end == first and self._used == 0:
                end += 1  # one record larger than `limit`
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
    """Call the partitioner that the user gave. Raises `InvalidInput` if its result is not a partition of the topic."""
    partition = partitioner(topic, key, value, count)
    if type(partition) is not int or not 0 <= partition < count:
        raise InvalidInput(f"the partitioner gives {partition!r} for topic {topic!r}, which has {count} partitions")
    return partition

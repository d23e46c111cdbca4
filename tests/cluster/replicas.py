"""What the replicas of a partition have on their disks, batch by batch: `expect_equal_replicas`."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.cluster.nodes import PATIENCE_S, Cluster

_HEAD: Final = struct.Struct(">qi")  # base offset, and size of what follows
_LAST_OFFSET_DELTA: Final = struct.Struct(">23xi")  # both formats of today's logs have magic 2
_ASK_AGAIN_S: Final = 0.05


class Replica(NamedTuple):
    """The batches in a directory, by their base offsets."""

    batches: dict[int, bytes]

    @property
    def start(self) -> int:
        """The first offset."""
        return next(iter(self.batches), 0)

    @property
    def end(self) -> int:
        """The offset after the last."""
        if not self.batches:
            return 0
        base, batch = next(reversed(self.batches.items()))
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(batch)
        return int(base + delta + 1)

    def between(self, start: int, end: int) -> dict[int, bytes]:
        """The batches that begin in this range."""
        return {base: batch for base, batch in self.batches.items() if start <= base < end}


def read_replica(folder: Path) -> Replica:
    """Read all batches of a partition's directory, which a broker may be writing to."""
    return Replica({base: batch for path in sorted(folder.glob("*.log")) for base, batch in _batches(path)})


def _batches(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:  # deleted meanwhile
        return
    at = 0
    while at + _HEAD.size <= len(data):
        base, size = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + size
        if size <= 0 or end > len(data):  # preallocated, or being written
            return
        yield base, data[at:end]
        at = end


def expect_equal_replicas(cluster: Cluster, topics: Iterable[str]) -> int:
    """Check that all replicas are equal, byte for byte, above the highest start, now that nobody writes.

    They are given the time to fetch what the leader has. Returns how many batches were compared.
    """
    compared = 0
    for topic in topics:
        for number in cluster.partitions(topic):
            folder = f"{topic}-{number}"
            replicas = _settled(cluster, folder)
            start, end = max(each.start for each in replicas.values()), next(iter(replicas.values())).end
            (first, expected), *others = [(node, each.between(start, end)) for node, each in replicas.items()]
            for node, found in others:
                differing = [base for base in expected.keys() | found.keys() if expected.get(base) != found.get(base)]
                assert not differing, f"{folder}: brokers {first} and {node} differ at {sorted(differing)[:5]}"
            compared += len(expected)
    return compared


def _settled(cluster: Cluster, folder: str) -> dict[int, Replica]:
    """The replicas as soon as all have the same end."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        replicas = {number: read_replica(broker.data / folder) for number, broker in cluster.brokers.items()}
        ends = {number: replica.end for number, replica in replicas.items()}
        if len(set(ends.values())) == 1:
            return replicas
        assert time.monotonic() < deadline, f"the replicas of {folder} do not become equal: {ends}"
        time.sleep(_ASK_AGAIN_S)

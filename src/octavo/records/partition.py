"""Kafka's default partitioner for records that have a key, one by one; many at once are for `kernels.partition`."""

from __future__ import annotations

from octavo.errors import InvalidInput
from octavo.records.kernels import partition
from octavo.records.layout import Buffer


def murmur2(data: Buffer) -> int:
    """Kafka's 32-bit Murmur2 of `data`, signed as in Java."""
    hashed = partition.murmur2(data, 0, len(data))
    return hashed - 0x100000000 if hashed & 0x80000000 else hashed


def partition_for_key(key: Buffer, partitions: int) -> int:
    """The partition that Kafka's producer chooses for `key`, of `partitions`; `InvalidInput` where there are none."""
    if partitions < 1:
        raise InvalidInput(f"a topic has at least one partition, not {partitions}")
    return (murmur2(key) & 0x7FFFFFFF) % partitions

"""Kafka's default partitioner for a single record with a key; `kernels.partition` handles many at once."""

from __future__ import annotations

from octavo.errors import InvalidInput
from octavo.records.kernels import partition
from octavo.records.layout import Buffer


def murmur2(data: Buffer) -> int:
    """Return Kafka's 32-bit Murmur2 hash of `data`, signed as in Java."""
    hashed = partition.murmur2(data, 0, len(data))
    return hashed - 0x100000000 if hashed & 0x80000000 else hashed


def partition_for_key(key: Buffer, partitions: int) -> int:
    """Return the partition that Kafka's producer chooses for `key`.

    Raises `InvalidInput` if the number of `partitions` is below 1.
    """
    if partitions < 1:
        raise InvalidInput(f"a topic has at least one partition, not {partitions}")
    return (murmur2(key) & 0x7FFFFFFF) % partitions

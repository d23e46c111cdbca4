"""Kafka's default partitioner for records that have a key."""

from __future__ import annotations

from typing import Final

from octavo.errors import InvalidInput
from octavo.records.layout import Buffer

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: Buffer) -> int:
    """Kafka's 32-bit Murmur2 of `data`, signed as in Java."""
    size = len(data)
    hashed = _SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        k = (int.from_bytes(data[at : at + 4], "little") * _M) & _MASK
        k = ((k ^ (k >> 24)) * _M) & _MASK
        hashed = ((hashed * _M) & _MASK) ^ k
    if whole < size:
        hashed = ((hashed ^ int.from_bytes(data[whole:], "little")) * _M) & _MASK
    hashed = ((hashed ^ (hashed >> 13)) * _M) & _MASK
    hashed ^= hashed >> 15
    return hashed - 0x100000000 if hashed & 0x80000000 else hashed


def partition_for_key(key: Buffer, partitions: int) -> int:
    """The partition that Kafka's producer chooses for `key`, of `partitions`; `InvalidInput` where there are none."""
    if partitions < 1:
        raise InvalidInput(f"a topic has at least one partition, not {partitions}")
    return (murmur2(key) & 0x7FFFFFFF) % partitions

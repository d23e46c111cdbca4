"""Compute the partitions of many keys in one call (Kafka's `BuiltInPartitioner.partitionForKey`).

The hash is murmur2 as in Kafka's `Utils`, with its seed, on 32 bits that wrap around. Every product here fits into 64
signed bits, so compiled code needs no wider integers.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def murmur2(data: Array, start: int, length: int) -> int:
    """Return the hash of `data[start : start + length]` as an unsigned 32-bit number; the caller checks the bounds."""
    value = _SEED ^ length
    at = start
    whole = start + (length & ~3)
    while at < whole:
        word = (
            (data[at] & 0xFF)
            | ((data[at + 1] & 0xFF) << 8)
            | ((data[at + 2] & 0xFF) << 16)
            | ((data[at + 3] & 0xFF) << 24)
        )
        word = (word * _FACTOR) & _MASK
        word ^= word >> 24
        word = (word * _FACTOR) & _MASK
        value = ((value * _FACTOR) & _MASK) ^ word
        at += 4
    left = length & 3
    if left:
        if left == 3:
            value ^= (data[at + 2] & 0xFF) << 16
        if left >= 2:
            value ^= (data[at + 1] & 0xFF) << 8
        value ^= data[at] & 0xFF
        value = (value * _FACTOR) & _MASK
    value ^= value >> 13
    value = (value * _FACTOR) & _MASK
    return value ^ (value >> 15)


def partition(keys: Array, starts: Array, lengths: Array, count: int, partitions: Array) -> None:
    """Assign one of `count` partitions to every row that has a key.

    Rows without a key (length -1) and rows that already have a partition are left alone. A negative partition means
    that a row has none yet.
    """
    for row in range(len(lengths)):
        if lengths[row] >= 0 and partitions[row] < 0:
            partitions[row] = (murmur2(keys, starts[row], lengths[row]) & _POSITIVE) % count

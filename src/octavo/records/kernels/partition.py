"""Which partition a key belongs to: Kafka's `BuiltInPartitioner.partitionForKey`, for many keys in one call.

The hash is murmur2 as Kafka's `Utils` has it, with its seed, on 32 bits that wrap around. 64 signed bits hold every
product here, so that compiled code needs no wider ones.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def murmur2(data: Array, start: int, length: int) -> int:
    """The hash of `data[start : start + length]`, which lies inside, as an unsigned 32-bit number."""
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
    """Give every row with a key one of `count` partitions; rows without (length -1), or with one, keep theirs.

    A row that has none yet has a negative number there.
    """
    for row in range(len(lengths)):
        if lengths[row] >= 0 and partitions[row] < 0:
            partitions[row] = (murmur2(keys, starts[row], lengths[row]) & _POSITIVE) % count

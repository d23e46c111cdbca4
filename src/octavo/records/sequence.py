"""Compute sequence numbers of idempotent producers. They go from 0 to 2147483647, and then start at 0 again.

The arithmetic is Java's: 32 bits that wrap around. So a batch with impossible deltas reads as Kafka reads it.
"""

from __future__ import annotations

from octavo.records.layout import MAX_SEQUENCE, NO_SEQUENCE


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number that comes `increment` after `sequence`."""
    if sequence > _wrap32(MAX_SEQUENCE - increment):
        return _wrap32(increment - (MAX_SEQUENCE - sequence) - 1)
    return _wrap32(sequence + increment)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence number that comes `decrement` before `sequence`."""
    if sequence < decrement:
        return _wrap32(MAX_SEQUENCE - (decrement - sequence) + 1)
    return _wrap32(sequence - decrement)


def record_sequence(base_sequence: int, offset_delta: int) -> int:
    """Return the sequence number of a record. It follows from the record's offset, not from its index in the batch."""
    return increment_sequence(base_sequence, offset_delta) if base_sequence >= 0 else NO_SEQUENCE


def _wrap32(number: int) -> int:
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000

"""The offset map: the last offset of every key, by the key's hash (Kafka's `SkimpyOffsetMap`).

A slot has 24 bytes, as in Kafka: two halves of a hash, and the offset plus one, so that an empty slot is all zeros. The
hash determines a key's slot. If that is taken, the next one is tried, which the processor fetches along with it.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, prefetch

WORDS = 3  # 64-bit words of a slot

_FIRST = 0  # first half of the hash
_SECOND = 1
_OFFSET = 2  # the offset plus one


def slot_of(slots: Array, first: int) -> int:
    """Return the index in `slots` of the first word of the slot at which the search for a hash begins."""
    count = len(slots) // WORDS
    return WORDS * ((first >> 33 & 0x7FFFFFFF) * count >> 31)


def fetch_slot(slots: Array, first: int) -> None:
    """Prefetch the slot of a hash into the processor's cache."""
    at = slot_of(slots, first)
    prefetch(slots, at)
    prefetch(slots, at + _OFFSET)


def find_offset(slots: Array, first: int, second: int) -> int:
    """Return the offset of a hash, or -1 if the map does not have it. The map must have a free slot."""
    at = slot_of(slots, first)
    while True:
        if slots[at + _FIRST] == first and slots[at + _SECOND] == second:
            break
        if slots[at + _OFFSET] == 0:
            return -1
        at += WORDS
        if at == len(slots):
            at = 0
    offset: int = slots[at + _OFFSET] - 1
    return offset


def put_offset(slots: Array, first: int, second: int, offset: int) -> int:
    """Store the offset of a hash, replacing an earlier one; returns 1 if the hash is new, else 0.

    The map must have a free slot.
    """
    at = slot_of(slots, first)
    while slots[at + _OFFSET] != 0:
        if slots[at + _FIRST] == first and slots[at + _SECOND] == second:
            slots[at + _OFFSET] = offset + 1
            return 0
        at += WORDS
        if at == len(slots):
            at = 0
    slots[at + _FIRST] = first
    slots[at + _SECOND] = second
    slots[at + _OFFSET] = offset + 1
    return 1

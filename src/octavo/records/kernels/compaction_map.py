"""The offset map: for every key, by its hash, the last offset that has it (Kafka's `SkimpyOffsetMap`).

A slot has 24 bytes, as Kafka's: two halves of a hash, and the offset plus one, so that an empty slot is one of zeros.
A key's slot is told by its hash, and when that is taken it is the next one: what the processor fetches with it.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, prefetch

WORDS = 3  # of a slot

_FIRST = 0  # half of the hash
_SECOND = 1
_OFFSET = 2  # plus one


def slot_of(slots: Array, first: int) -> int:
    """Where the search for a hash begins."""
    count = len(slots) // WORDS
    return WORDS * ((first >> 33 & 0x7FFFFFFF) * count >> 31)


def fetch_slot(slots: Array, first: int) -> None:
    """Have the slot in the processor's cache, soon."""
    at = slot_of(slots, first)
    prefetch(slots, at)
    prefetch(slots, at + _OFFSET)


def find_offset(slots: Array, first: int, second: int) -> int:
    """The offset of a hash, -1 where there is none. Not all slots are taken."""
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
    """Note the offset of a hash in place of an earlier one; 1 where there was none, else 0. Not all slots are taken."""
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

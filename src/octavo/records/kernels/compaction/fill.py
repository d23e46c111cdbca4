"""Fill the offset map from the dirty part of a log: the first half of compaction (Kafka's `buildOffsetMap`)."""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.compaction.map import put_offset
from octavo.records.kernels.compaction.read import (
    FIRST_HASH,
    KEY_LENGTH,
    OFFSET,
    SECOND_HASH,
    count_records,
    read_some,
)
from octavo.records.kernels.machine import Array
from octavo.records.kernels.scan import INFLATED, LAST_OFFSET, START

# The state that the caller keeps from one call of `fill` to the next.
ENTRIES = 0  # number of entries in the map
MAX_ENTRIES = 1
LATEST = 2  # the map covers all offsets up to this one
START_OFFSET = 3  # first offset of the dirty part
RECORDS = 4  # number of records read
FILL_STATE = 5

FULL = -1  # not a rule: the map is full


def fill_batch(
    data: Array, table: Array, batch: int, seed: Array, slots: Array, state: Array, read: Array
) -> tuple[int, int]:
    """Put the offsets of a batch's keys into the map; returns the broken rule, `OK` or `FULL`, and the position."""
    left = count_records(data, table, batch)
    at = table[batch, START]
    if left < 0:
        return -left, at
    while left:
        count, at, rule = read_some(data, table, batch, at, left, seed, slots, read)
        if rule != rules.OK:
            return rule, at
        for row in range(count):
            offset = read[row, OFFSET]
            if read[row, KEY_LENGTH] >= 0 and offset >= state[START_OFFSET]:
                if state[ENTRIES] >= state[MAX_ENTRIES]:
                    return FULL, at
                state[ENTRIES] += put_offset(slots, read[row, FIRST_HASH], read[row, SECOND_HASH], offset)
                state[LATEST] = offset
            state[RECORDS] += 1
        left -= count
    return rules.OK, at


def fill(
    plain: Array,
    inflated: Array,
    table: Array,
    skip: Array,
    first: int,
    last: int,
    seed: Array,
    slots: Array,
    state: Array,
    read: Array,
) -> tuple[int, int, int]:
    """Put the keys of batches into the map: the rows of `table` from `first` up to, but not including, `last`.

    The keys of batches that are marked in `skip` are left out, but the map covers their offsets. Returns the row
    reached, the broken rule, `OK` or `FULL`, and the position of the broken rule. A full map covers all offsets up to
    that of the last key that it took.
    """
    for batch in range(first, last):
        if skip[batch] == 0:
            data = inflated if table[batch, INFLATED] else plain
            rule, at = fill_batch(data, table, batch, seed, slots, state, read)
            if rule != rules.OK:
                return batch, rule, at
        if table[batch, LAST_OFFSET] >= state[START_OFFSET]:
            state[LATEST] = table[batch, LAST_OFFSET]
    return last, rules.OK, 0

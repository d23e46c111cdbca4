"""Fill the offset map from the dirty part of a log: the first half of compaction (Kafka's `buildOffsetMap`)."""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.compaction_map import put_offset
from octavo.records.kernels.compaction_read import (
    FIRST_HASH,
    KEY_LENGTH,
    OFFSET,
    SECOND_HASH,
    count_records,
    read_some,
)
from octavo.records.kernels.machine import Array
from octavo.records.kernels.scan import INFLATED, LAST_OFFSET, START

# What filling remembers from one call to the next.
ENTRIES = 0  # in the map
MAX_ENTRIES = 1
LATEST = 2  # the map speaks for all offsets up to this
START_OFFSET = 3  # where the dirty part begins
RECORDS = 4  # that were looked at
FILL_STATE = 5

FULL = -1  # no rule: the map takes no more keys


def fill_batch(
    data: Array, table: Array, batch: int, seed: Array, slots: Array, state: Array, read: Array
) -> tuple[int, int]:
    """Note the offsets of a batch's keys; the broken rule, `OK` or `FULL`, and where."""
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
    """Take the batches `first` to before `last` of a table, but for those to `skip`, of which only the offsets count.

    Returns the row reached, the broken rule, `OK` or `FULL`, and where it is broken. A map that is full speaks for all
    up to the last offset that it took.
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

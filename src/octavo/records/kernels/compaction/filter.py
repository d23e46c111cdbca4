"""Keep the records of each batch that the offset map retains: the second half of compaction (`MemoryRecords.filterTo`).

A batch that loses nothing is copied unchanged. For any other batch, the retained records are written to a new one. One
call handles many batches. If records have to be compressed again, the caller does that. Batches of magic 0 and 1 become
batches of magic 2, as in Kafka since release 4.0.
"""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.checksum import Tables
from octavo.records.kernels.compaction.map import find_offset
from octavo.records.kernels.compaction.read import (
    FIRST_HASH,
    KEY_LENGTH,
    OFFSET,
    SECOND_HASH,
    TIMESTAMP,
    VALUE_LENGTH,
    count_records,
    read_some,
)
from octavo.records.kernels.compaction.write import (
    NO_ROOM,
    convert_message,
    copy_batch,
    copy_record,
    write_empty,
    write_kept,
)
from octavo.records.kernels.machine import Array, wrap64
from octavo.records.kernels.scan import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COUNT,
    INFLATED,
    LAST_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    START,
)
from octavo.records.layout import HEADER_SIZE, NO_TIMESTAMP, Attributes

# Flags: what to do with a batch, whatever its records are.
KEEP_EMPTY = 1  # its header stays even if no record does
DISCARD = 2  # its records are dropped
MARKS_NOTHING = 4  # marker of a transaction that has no records left: the batch gets a delete horizon

# The state of filtering: its parameters, and what it counts.
LATEST = 0  # the map covers all offsets up to this one
NOW = 1
NEW_HORIZON = 2  # for batches with tombstones that have no horizon yet
OLD_TOMBSTONES_STAY = 3  # whether tombstones of magic 0 and 1 stay
OUT_AT = 4  # end of the output so far
RECORDS_READ = 5
RECORDS_KEPT = 6
RECORDS_WITHOUT_KEY = 7  # records dropped because they had no key
FILTER_STATE = 8

# Columns of the table `fates`: the result for each batch.
OUT_START = 0
OUT_END = 1
TO_COMPRESS = 2  # 1: the records in the output have to be compressed
FATE_COLUMNS = 3

# Results of `filter_batch` in addition to broken rules.
FULL = -1  # the output has no room for the batch
HORIZON = -2  # a tombstone stays, and the batch has no delete horizon

# The result of `keep_records`: the broken rule, `OK`, `FULL` or `HORIZON`; the position after the records, or of the
# broken rule; the number of retained records; the first and the last offset; the base and the largest timestamp; the
# broken rule about their order.
Kept = tuple[int, int, int, int, int, int, int, int]

_CONTROL = int(Attributes.CONTROL)
_LOG_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)
_DELETE_HORIZON = int(Attributes.DELETE_HORIZON)


def tombstones_stay(table: Array, batch: int, state: Array) -> bool:
    """Return whether it is too early to drop tombstones of this batch."""
    if table[batch, MAGIC] < 2:
        return bool(state[OLD_TOMBSTONES_STAY] != 0)
    if table[batch, ATTRIBUTES] & _DELETE_HORIZON == 0:
        return True
    return bool(state[NOW] < table[batch, BASE_TIMESTAMP])


def stays(read: Array, row: int, slots: Array, state: Array, with_tombstones: bool) -> bool:
    """Return whether a record is retained: the map does not cover its offset, or it is the last record of its key.

    A tombstone that the map covers is retained only if `with_tombstones`. Counts dropped records that have no key.
    """
    offset = read[row, OFFSET]
    if offset > state[LATEST]:
        return True
    if read[row, KEY_LENGTH] < 0:
        state[RECORDS_WITHOUT_KEY] += 1
        return False
    if read[row, VALUE_LENGTH] < 0 and not with_tombstones:
        return False
    return bool(offset >= find_offset(slots, read[row, FIRST_HASH], read[row, SECOND_HASH]))


def keep_records(
    data: Array,
    table: Array,
    batch: int,
    total: int,
    horizon: int,
    needs_horizon: bool,
    seed: Array,
    slots: Array,
    state: Array,
    out: Array,
    read: Array,
) -> Kept:
    """Write the retained records of a batch to the output, leaving room for its header.

    Their timestamp deltas count from `horizon`, or from the first timestamp if `horizon` is negative. `needs_horizon`:
    the batch has no delete horizon yet, and needs one if it retains tombstones.
    """
    is_new = table[batch, MAGIC] == 2
    is_control = is_new and table[batch, ATTRIBUTES] & _CONTROL != 0
    with_tombstones = tombstones_stay(table, batch, state)
    base_offset = table[batch, BASE_OFFSET]
    base_timestamp = horizon
    max_timestamp = NO_TIMESTAMP
    last_offset = -1
    kept = 0
    disorder = rules.OK
    at = state[OUT_AT] + HEADER_SIZE
    read_at = table[batch, START]
    left = total
    while left:
        count, read_at, rule = read_some(data, table, batch, read_at, left, seed, slots, read)
        if rule != rules.OK:
            return rule, read_at, 0, 0, 0, 0, 0, 0
        left -= count
        for row in range(count):
            if not is_control and not stays(read, row, slots, state, with_tombstones):
                continue
            if needs_horizon and read[row, VALUE_LENGTH] < 0:
                return HORIZON, at, 0, 0, 0, 0, 0, 0
            timestamp = read[row, TIMESTAMP]
            offset = read[row, OFFSET]
            if kept == 0:
                base_timestamp = timestamp if horizon < 0 else horizon
                base_offset = base_offset if is_new else offset
            elif offset <= last_offset:
                disorder = rules.OFFSET_ORDER
            if timestamp < NO_TIMESTAMP:
                disorder = rules.NEGATIVE_TIME
            delta = wrap64(timestamp - base_timestamp)
            if is_new:
                at = copy_record(data, read, row, delta, out, at)
            else:
                at = convert_message(data, read, row, delta, base_offset, out, at)
            if at == NO_ROOM:
                return FULL, 0, 0, 0, 0, 0, 0, 0
            max_timestamp = max(max_timestamp, timestamp)
            last_offset = offset
            kept += 1
    return rules.OK, at, kept, base_offset, last_offset, base_timestamp, max_timestamp, disorder


def filter_batch(
    tables: Tables,
    plain: Array,
    inflated: Array,
    table: Array,
    batch: int,
    action: int,
    sets_horizon: bool,
    seed: Array,
    slots: Array,
    state: Array,
    out: Array,
    read: Array,
) -> tuple[int, int, int]:
    """Write what is retained of one batch to the end of the output, and count it.

    Returns three numbers. The first is the broken rule, `OK`, `FULL` or `HORIZON`. The second is the position of the
    broken rule, or else the new end of the output, which is unchanged if nothing is retained. The third is 1 if the
    records have to be compressed.
    """
    is_new = table[batch, MAGIC] == 2
    had_horizon = is_new and table[batch, ATTRIBUTES] & _DELETE_HORIZON != 0
    horizon = table[batch, BASE_TIMESTAMP] if had_horizon else NO_TIMESTAMP
    if sets_horizon:
        horizon = state[NEW_HORIZON]
    start = state[OUT_AT]
    data = inflated if table[batch, INFLATED] else plain
    kept = 0
    if action & DISCARD:
        total = max(0, table[batch, COUNT])
    else:
        total = count_records(data, table, batch)
        if total < 0:
            return -total, table[batch, START], 0
        needs_horizon = not had_horizon and not sets_horizon
        without_key = state[RECORDS_WITHOUT_KEY]
        outcome, at, kept, base_offset, last_offset, base_timestamp, max_timestamp, disorder = keep_records(
            data, table, batch, total, horizon, needs_horizon, seed, slots, state, out, read
        )
        if outcome != rules.OK:
            state[RECORDS_WITHOUT_KEY] = without_key  # the batch will be read once more
            return outcome, at, 0
    compress = 0
    if kept and kept == total and is_new and not sets_horizon:
        at = copy_batch(plain, table, batch, out, start)
    elif kept:
        if disorder != rules.OK:
            return disorder, table[batch, START], 0
        if is_new:
            last_offset = table[batch, LAST_OFFSET]
        if table[batch, MAGIC] > 0 and table[batch, ATTRIBUTES] & _LOG_APPEND_TIME:
            max_timestamp = table[batch, MAX_TIMESTAMP]
        compress = table[batch, INFLATED]
        at = write_kept(
            tables, table, batch, base_offset, last_offset, base_timestamp, max_timestamp, horizon, kept, out, start, at
        )
    elif action & KEEP_EMPTY:
        at = write_empty(tables, table, batch, out, start)
    else:
        at = start
    if at == NO_ROOM:
        return FULL, 0, 0
    state[RECORDS_READ] += total
    state[RECORDS_KEPT] += kept
    return rules.OK, at, compress


def filter_batches(
    tables: Tables,
    plain: Array,
    inflated: Array,
    table: Array,
    actions: Array,
    first: int,
    last: int,
    seed: Array,
    slots: Array,
    state: Array,
    out: Array,
    fates: Array,
    read: Array,
) -> tuple[int, int, int]:
    """Write what is retained of batches, and a row of `fates` for each.

    The batches are the rows of `table` from `first` up to, but not including, `last`. Returns the row reached, the
    broken rule, `OK` or `FULL`, and the position of the broken rule.
    """
    for batch in range(first, last):
        action = actions[batch]
        start = state[OUT_AT]
        end = start
        compress = 0
        if action & DISCARD == 0 or action & KEEP_EMPTY:
            sets_horizon = action & MARKS_NOTHING != 0 and table[batch, ATTRIBUTES] & _DELETE_HORIZON == 0
            rule, end, compress = filter_batch(
                tables, plain, inflated, table, batch, action, sets_horizon, seed, slots, state, out, read
            )
            if rule == HORIZON:
                rule, end, compress = filter_batch(
                    tables, plain, inflated, table, batch, action, True, seed, slots, state, out, read
                )
            if rule != rules.OK:
                return batch, rule, end
        fates[batch, OUT_START] = start
        fates[batch, OUT_END] = end
        fates[batch, TO_COMPRESS] = compress
        state[OUT_AT] = end
    return last, rules.OK, 0

"""Read records for compaction: their positions, and the hashes of their keys.

Records are read several at a time, into rows of a small table. That way, the slots of all their keys are on their way
into the processor's cache before the first one is looked up. A map is larger than any cache, and waiting for memory
would be most of the work.
"""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.compaction.hash import sip_hash
from octavo.records.kernels.compaction.map import fetch_slot
from octavo.records.kernels.machine import Array, wrap64
from octavo.records.kernels.message import measure_wrapper, walk_message
from octavo.records.kernels.record import MIN_RECORD_SIZE, walk_headers, walk_record
from octavo.records.kernels.scan import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COUNT,
    END,
    INFLATED,
    LAST_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    START,
)
from octavo.records.kernels.skim import Quick, quick_record
from octavo.records.kernels.varint import read_varint, read_varlong
from octavo.records.layout import MAGIC_AT, MIN_INT64, Attributes

# Columns of the table, one row per record.
RECORD_START = 0
RECORD_END = 1
REST = 2  # start of the fields after the timestamp; in an old message, of its value
DELTA = 3  # timestamp delta as stored, or `NO_DELTA`, which no record has
TIMESTAMP = 4
OFFSET = 5
KEY_AT = 6
KEY_LENGTH = 7
VALUE_LENGTH = 8
FIRST_HASH = 9
SECOND_HASH = 10
READ_COLUMNS = 11

NO_DELTA = MIN_INT64

_LOG_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)


def any_keyed(data: Array, start: int, end: int) -> Quick:
    """Find the fields that compaction needs of the record at `start` of `data[:end]`; the whole record is checked."""
    record_end, delta, offset_delta, key_at, key_length, _, value_length, headers_at, header_count = walk_record(
        data, start, end
    )
    if record_end < 0:
        return (record_end, 0, 0, 0, 0, 0, 0)
    if header_count:
        rule = walk_headers(data, headers_at, record_end, header_count)
        if rule != rules.OK:
            return (-rule, 0, 0, 0, 0, 0, 0)
    _, at = read_varint(data, start, end)
    _, rest = read_varlong(data, at + 1, end)
    return (record_end, delta, offset_delta, rest, key_at, key_length, value_length)


def put_key(seed: Array, slots: Array, data: Array, read: Array, row: int, key_at: int, key_length: int) -> None:
    """Fill in the key columns of a row, and prefetch the slot of the key."""
    read[row, KEY_AT] = key_at
    read[row, KEY_LENGTH] = key_length
    if key_length >= 0:
        first, second = sip_hash(seed, data, key_at, key_length)
        read[row, FIRST_HASH] = first
        read[row, SECOND_HASH] = second
        fetch_slot(slots, first)


def read_records(
    data: Array, table: Array, batch: int, at: int, left: int, seed: Array, slots: Array, read: Array
) -> tuple[int, int, int]:
    """Fill `read` with records of a batch of magic 2, from `at` on.

    `left` is the number of records of the batch that are not read yet. Returns the number of rows, the start of the
    next record and the broken rule. The slot of every key is prefetched.
    """
    end = table[batch, END]
    base_offset = table[batch, BASE_OFFSET]
    base_timestamp = table[batch, BASE_TIMESTAMP]
    one_time = table[batch, ATTRIBUTES] & _LOG_APPEND_TIME
    timestamp = table[batch, MAX_TIMESTAMP]
    count = min(left, len(read))
    for row in range(count):
        record_end, delta, offset_delta, rest, key_at, key_length, value_length = quick_record(data, at, end)
        read[row, DELTA] = delta
        if record_end == 0:
            record_end, delta, offset_delta, rest, key_at, key_length, value_length = any_keyed(data, at, end)
            if record_end < 0:
                return row, at, -record_end
            read[row, DELTA] = NO_DELTA
        read[row, RECORD_START] = at
        read[row, RECORD_END] = record_end
        read[row, REST] = rest
        read[row, TIMESTAMP] = timestamp if one_time else wrap64(base_timestamp + delta)
        read[row, OFFSET] = wrap64(base_offset + offset_delta)
        read[row, VALUE_LENGTH] = value_length
        put_key(seed, slots, data, read, row, key_at, key_length)
        at = record_end
    if count == left and at != end:
        return count, at, rules.BYTES_LEFT
    return count, at, rules.OK


def read_messages(
    data: Array, table: Array, batch: int, at: int, left: int, seed: Array, slots: Array, read: Array
) -> tuple[int, int, int]:
    """Fill `read` with a message of magic 0 or 1, or with those of a wrapper; otherwise like `read_records`."""
    end = table[batch, END]
    base_offset = table[batch, BASE_OFFSET] if table[batch, INFLATED] else 0
    one_time = table[batch, ATTRIBUTES] & _LOG_APPEND_TIME != 0 and table[batch, MAGIC] == 1
    count = min(left, len(read))
    for row in range(count):
        next_at, offset, timestamp, key_at, key_length, value_at, value_length = walk_message(data, at, end)
        if next_at < 0:
            return row, at, -next_at
        if one_time and data[at + MAGIC_AT] == 1:
            timestamp = table[batch, MAX_TIMESTAMP]
        read[row, RECORD_START] = at
        read[row, RECORD_END] = next_at
        read[row, REST] = value_at
        read[row, DELTA] = NO_DELTA
        read[row, TIMESTAMP] = timestamp
        read[row, OFFSET] = wrap64(base_offset + offset)
        read[row, VALUE_LENGTH] = value_length
        put_key(seed, slots, data, read, row, key_at, key_length)
        at = next_at
    return count, at, rules.OK


def count_records(data: Array, table: Array, batch: int) -> int:
    """Return the number of records of a batch, or minus the broken rule; completes the row of a wrapper."""
    if table[batch, MAGIC] < 2 and table[batch, INFLATED]:
        count, base_offset, rule = measure_wrapper(
            data, table[batch, START], table[batch, END], table[batch, MAGIC], table[batch, LAST_OFFSET]
        )
        table[batch, COUNT] = count
        table[batch, BASE_OFFSET] = base_offset
        return count if rule == rules.OK else -rule
    room = (table[batch, END] - table[batch, START]) // MIN_RECORD_SIZE
    if table[batch, COUNT] < 0 or table[batch, COUNT] > room:
        return -rules.RECORD_COUNT
    return int(table[batch, COUNT])


def read_some(
    data: Array, table: Array, batch: int, at: int, left: int, seed: Array, slots: Array, read: Array
) -> tuple[int, int, int]:
    """Call `read_records` or `read_messages`, depending on the batch's magic."""
    if table[batch, MAGIC] == 2:
        return read_records(data, table, batch, at, left, seed, slots, read)
    return read_messages(data, table, batch, at, left, seed, slots, read)

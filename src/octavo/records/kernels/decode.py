"""Decode many records in one call, from the rows of a batch table into Arrow's buffers.

A call continues where the last one stopped. It stops when all batches are done, when an output buffer is full, or at
damage. It reads each record once, and copies its key, value and headers straight into the buffers that Arrow keeps.
Every length is checked against its record, its batch and the room in the buffer before anything is copied.
"""

from __future__ import annotations

from typing import NamedTuple

from octavo.records.kernels import rules
from octavo.records.kernels.checksum import Tables, batch_checksum
from octavo.records.kernels.machine import Array, copy, wrap64
from octavo.records.kernels.message import measure_wrapper, walk_message
from octavo.records.kernels.record import MIN_RECORD_SIZE, walk_header, walk_headers, walk_record
from octavo.records.kernels.scan import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COUNT,
    CRC,
    END,
    INFLATED,
    LAST_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    POSITION,
    SIZE,
    START,
)
from octavo.records.kernels.scan import POSITION as BATCH_POSITION
from octavo.records.layout import MAGIC_AT, Attributes


class Wanted(NamedTuple):
    """The columns to fill, and the ranges of records to decode (both ends included)."""

    offset: int  # flags: 0 or 1
    timestamp: int
    key: int
    value: int
    headers: int
    verify: int
    first_offset: int
    last_offset: int
    first_timestamp: int
    last_timestamp: int


class Sink(NamedTuple):
    """Arrow's buffers, to be filled. The caller passes bitmaps with all bits set, and lists of ends that begin with 0.

    Unwanted columns have no room.
    """

    batch_rows: Array  # int64 for each row of the batch table: number of records that this call took from it
    offsets: Array
    timestamps: Array  # int64, milliseconds
    micros: Array  # the same in microseconds
    key_ends: Array  # int32, as are all ends
    keys: Array
    key_bits: Array
    value_ends: Array
    values: Array
    value_bits: Array
    header_ends: Array
    header_key_ends: Array
    header_keys: Array
    header_value_ends: Array
    header_values: Array
    header_value_bits: Array


# The cursor: where a call continues, and how much output there is.
BATCH = 0  # row of the table
RECORD = 1  # number of records of that batch that are decoded
AT = 2  # start of the next record; undefined if RECORD is 0
ROWS = 3
KEY_BYTES = 4
VALUE_BYTES = 5
HEADERS = 6
HEADER_KEY_BYTES = 7
HEADER_VALUE_BYTES = 8
UNFIT = 9  # number of timestamps that do not fit into microseconds
NULL_KEYS = 10
NULL_VALUES = 11
NULL_HEADER_VALUES = 12
TAKEN = 13  # bytes of the records that are decoded
RULE = 14  # broken rule in that batch
WHERE = 15  # position of the broken rule
CURSOR_SIZE = 16

FULL = -1  # not a rule: the output has no room for the next record

MAX_MS = (2**63 - 1) // 1000  # largest timestamp that fits into microseconds

_LOG_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)


def outside(wanted: Wanted, offset: int, timestamp: int) -> bool:
    """Return whether a record is outside the wanted ranges."""
    return (
        offset < wanted.first_offset
        or offset > wanted.last_offset
        or timestamp < wanted.first_timestamp
        or timestamp > wanted.last_timestamp
    )


def has_room(wanted: Wanted, sink: Sink, cursor: Array, row: int, key_length: int, value_length: int) -> bool:
    """Return whether the output has room for one more record, not counting its headers."""
    return (
        row < len(sink.offsets)
        and (wanted.key == 0 or cursor[KEY_BYTES] + key_length <= len(sink.keys))
        and (wanted.value == 0 or cursor[VALUE_BYTES] + value_length <= len(sink.values))
    )


def put_bytes(
    data: Array, start: int, length: int, target: Array, used: int, ends: Array, bits: Array, row: int
) -> int:
    """Append one nullable value to an Arrow column of bytes; returns the number of bytes then used."""
    if length < 0:
        bits[row >> 3] &= 0xFF ^ (1 << (row & 7))
    elif length > 0:
        copy(target, used, data, start, length)
        used += length
    ends[row + 1] = used
    return used


def put_row(
    wanted: Wanted,
    sink: Sink,
    cursor: Array,
    row: int,
    offset: int,
    timestamp: int,
    data: Array,
    key_at: int,
    key_length: int,
    value_at: int,
    value_length: int,
) -> None:
    """Write one record's columns, except its headers; there is room for it."""
    sink.offsets[row] = offset
    sink.timestamps[row] = timestamp
    if wanted.timestamp:
        if timestamp > MAX_MS or timestamp < -MAX_MS:
            cursor[UNFIT] += 1
        else:
            sink.micros[row] = timestamp * 1000
    if wanted.key:
        if key_length < 0:
            cursor[NULL_KEYS] += 1
        cursor[KEY_BYTES] = put_bytes(
            data, key_at, key_length, sink.keys, cursor[KEY_BYTES], sink.key_ends, sink.key_bits, row
        )
    if wanted.value:
        if value_length < 0:
            cursor[NULL_VALUES] += 1
        cursor[VALUE_BYTES] = put_bytes(
            data, value_at, value_length, sink.values, cursor[VALUE_BYTES], sink.value_ends, sink.value_bits, row
        )


def put_headers(sink: Sink, cursor: Array, data: Array, start: int, end: int, count: int) -> int:
    """Copy the headers that fill `data[start:end]`; returns the broken rule, `OK` or `FULL`.

    The cursor moves only when all of them are copied.
    """
    header = cursor[HEADERS]
    key_bytes = cursor[HEADER_KEY_BYTES]
    value_bytes = cursor[HEADER_VALUE_BYTES]
    nulls = cursor[NULL_HEADER_VALUES]
    if count >= len(sink.header_key_ends) - header:
        if count > (end - start) // 2:  # a header takes two bytes, so some are missing, whatever the room
            return walk_headers(data, start, end, count)
        return FULL
    at = start
    for _ in range(count):
        at, key_at, key_length, value_at, value_length = walk_header(data, at, end)
        if at < 0:
            return -at
        if key_bytes + key_length > len(sink.header_keys) or value_bytes + value_length > len(sink.header_values):
            return FULL
        copy(sink.header_keys, key_bytes, data, key_at, key_length)
        key_bytes += key_length
        sink.header_key_ends[header + 1] = key_bytes
        if value_length < 0:
            nulls += 1
        value_bytes = put_bytes(
            data,
            value_at,
            value_length,
            sink.header_values,
            value_bytes,
            sink.header_value_ends,
            sink.header_value_bits,
            header,
        )
        header += 1
    if at != end:
        return rules.RECORD_NOT_FILLED
    cursor[HEADERS] = header
    cursor[HEADER_KEY_BYTES] = key_bytes
    cursor[HEADER_VALUE_BYTES] = value_bytes
    cursor[NULL_HEADER_VALUES] = nulls
    return rules.OK


def decode_batch(data: Array, table: Array, batch: int, cursor: Array, wanted: Wanted, sink: Sink) -> int:
    """Decode the rest of one batch of magic 2; returns the broken rule, `OK` when done, or `FULL`."""
    end = table[batch, END]
    count = table[batch, COUNT]
    base_offset = table[batch, BASE_OFFSET]
    base_timestamp = table[batch, BASE_TIMESTAMP]
    append_time = table[batch, ATTRIBUTES] & _LOG_APPEND_TIME
    timestamp = table[batch, MAX_TIMESTAMP]
    done = cursor[RECORD]
    at = cursor[AT] if done else table[batch, START]
    if count < 0 or (done == 0 and count > (end - at) // MIN_RECORD_SIZE):
        cursor[AT] = table[batch, BATCH_POSITION]
        return rules.RECORD_COUNT
    begin = at
    row = cursor[ROWS]
    outcome = rules.OK
    while done < count:
        (next_at, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length, headers_at, headers) = (
            walk_record(data, at, end)
        )
        if next_at < 0:
            outcome = -next_at
            break
        offset = wrap64(base_offset + offset_delta)
        if not append_time:
            timestamp = wrap64(base_timestamp + timestamp_delta)
        skip = outside(wanted, offset, timestamp)
        if not skip and not has_room(wanted, sink, cursor, row, key_length, value_length):
            outcome = FULL
            break
        if headers:
            if skip or not wanted.headers:
                outcome = walk_headers(data, headers_at, next_at, headers)
            else:
                outcome = put_headers(sink, cursor, data, headers_at, next_at, headers)
            if outcome != rules.OK:
                if outcome != FULL:
                    at = headers_at
                break
        if not skip:
            put_row(wanted, sink, cursor, row, offset, timestamp, data, key_at, key_length, value_at, value_length)
            row += 1
            if wanted.headers:
                sink.header_ends[row] = cursor[HEADERS]
        at = next_at
        done += 1
    if done == count and count > 0 and at != end:
        outcome = rules.BYTES_LEFT
    cursor[RECORD] = done
    cursor[AT] = at
    cursor[ROWS] = row
    cursor[TAKEN] += at - begin
    return outcome


def decode_messages(data: Array, table: Array, batch: int, cursor: Array, wanted: Wanted, sink: Sink) -> int:
    """Decode one message of magic 0 or 1, or the rest of a wrapper; returns the same as `decode_batch`."""
    start = table[batch, START]
    end = table[batch, END]
    wrapper = table[batch, INFLATED]
    if cursor[RECORD] == 0 and wrapper:
        count, base_offset, rule = measure_wrapper(data, start, end, table[batch, MAGIC], table[batch, LAST_OFFSET])
        table[batch, COUNT] = count
        table[batch, BASE_OFFSET] = base_offset
        if rule != rules.OK:
            return rule
    base_offset = table[batch, BASE_OFFSET] if wrapper else 0
    append_time = table[batch, ATTRIBUTES] & _LOG_APPEND_TIME != 0 and table[batch, MAGIC] == 1
    at = cursor[AT] if cursor[RECORD] else start
    begin = at
    row = cursor[ROWS]
    outcome = rules.OK
    while cursor[RECORD] < table[batch, COUNT]:
        next_at, offset, timestamp, key_at, key_length, value_at, value_length = walk_message(data, at, end)
        if next_at < 0:
            outcome = -next_at
            break
        offset = wrap64(base_offset + offset)
        if append_time and data[at + MAGIC_AT] == 1:
            timestamp = table[batch, MAX_TIMESTAMP]
        if not outside(wanted, offset, timestamp):
            if not has_room(wanted, sink, cursor, row, key_length, value_length):
                outcome = FULL
                break
            put_row(wanted, sink, cursor, row, offset, timestamp, data, key_at, key_length, value_at, value_length)
            row += 1
            if wanted.headers:
                sink.header_ends[row] = cursor[HEADERS]
        at = next_at
        cursor[RECORD] += 1
    cursor[AT] = at
    cursor[ROWS] = row
    cursor[TAKEN] += at - begin
    return outcome


def is_wrong(tables: Tables, data: Array, table: Array, batch: int) -> bool:
    """Return whether a batch's checksum is wrong. Afterwards its bytes are in the processor's cache for decoding."""
    computed = batch_checksum(tables, data, table[batch, POSITION], table[batch, SIZE], table[batch, MAGIC])
    return bool(computed != table[batch, CRC])


def decode(
    tables: Tables,
    plain: Array,
    inflated: Array,
    table: Array,
    last_batch: int,
    cursor: Array,
    wanted: Wanted,
    sink: Sink,
) -> bool:
    """Decode from `cursor` up to row `last_batch` of the table; returns False if a rule is broken.

    If `wanted.verify` is set, each uncompressed batch is verified first. The caller has to verify compressed batches
    before it decompresses them.
    """
    outcome = rules.OK
    while cursor[BATCH] < last_batch and outcome == rules.OK:
        batch = cursor[BATCH]
        data = inflated if table[batch, INFLATED] else plain
        rows_before = cursor[ROWS]
        check = wanted.verify and cursor[RECORD] == 0 and not table[batch, INFLATED]
        if check and is_wrong(tables, plain, table, batch):
            cursor[AT] = table[batch, POSITION]
            outcome = rules.CHECKSUM
        elif table[batch, MAGIC] == 2:
            outcome = decode_batch(data, table, batch, cursor, wanted, sink)
        else:
            outcome = decode_messages(data, table, batch, cursor, wanted, sink)
        sink.batch_rows[batch] = cursor[ROWS] - rows_before
        if outcome == rules.OK:
            cursor[BATCH] += 1
            cursor[RECORD] = 0
    if outcome > rules.OK:
        cursor[RULE] = outcome
        cursor[WHERE] = cursor[AT]
        return False
    return True

"""Encode many records in one call, from Arrow's buffers into uncompressed batches or messages.

Rows come in groups that share everything a batch's header stores once (producer, epochs, flags). A group becomes one
batch, or several if it would exceed a limit. The output is complete; a caller that compresses it must replace the
checksums.
"""

from __future__ import annotations

from octavo.records.kernels.checksum import Tables, crc32c
from octavo.records.kernels.encode_input import (
    GROUP_APPEND_TIME,
    GROUP_ATTRIBUTES,
    GROUP_BASE_SEQUENCE,
    GROUP_DELETE_HORIZON,
    GROUP_FIRST_ROW,
    GROUP_LAST_ROW,
    GROUP_LEADER_EPOCH,
    GROUP_PRODUCER_EPOCH,
    GROUP_PRODUCER_ID,
    NO_ROOM,
    ByteColumn,
    Rows,
    length_at,
    natural,
    place_of,
    timestamp_ms,
)
from octavo.records.kernels.encode_messages import encode_messages
from octavo.records.kernels.machine import SLACK, Array, copy_loosely, wrap64, write_le32
from octavo.records.kernels.record import (
    MIN_RECORD_SIZE,
    nullable_size,
    record_body_size,
    write_nullable,
    write_record_start,
)
from octavo.records.kernels.varint import varint_size, write_i16, write_i64, write_u32, write_varint, zigzag
from octavo.records.layout import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_INT32,
    MAX_SEQUENCE,
    MAX_SIZE,
    MAX_TIMESTAMP_AT,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    Attributes,
)

# Columns of the table of batches, the output.
BATCH_START = 0
BATCH_END = 1
BATCH_GROUP = 2
BATCH_LAST_OFFSET = 3
BATCH_MAX_TIMESTAMP = 4
BATCH_COLUMNS = 5

_LOG_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)
_DELETE_HORIZON = int(Attributes.DELETE_HORIZON)

_NOT_12_BITS = ~0xFFF
_NOT_14_BITS = ~0x3FFF


def put_short(out: Array, at: int, raw: int) -> int:
    """Write a zig-zag number below 2**14 as a varint, with a zero after it; one more byte may change."""
    longer = 1 if raw >= 0x80 else 0
    write_le32(out, at, raw + (raw & 0x3F80) + (longer << 7))
    return at + 1 + longer


def put_plain_records(
    rows: Rows,
    micros: int,
    row: int,
    stop: int,
    base_offset: int,
    base_timestamp: int,
    last_offset: int,
    max_timestamp: int,
    out: Array,
    at: int,
    limit: int,
) -> tuple[int, int, int, int]:
    """Write the records before the row `stop` as long as they are plain, and end at `limit` at the latest.

    A plain record has no headers, short fields, small deltas, and an offset and a timestamp that are allowed. Returns
    the next row, the position after the last record, its offset, and the largest timestamp.
    """
    while row < stop:
        row = natural(row)
        offset = rows.offsets[row]
        timestamp = timestamp_ms(rows, row, micros)
        key_start, key_length = place_of(rows.keys, row)
        value_start, value_length = place_of(rows.values, row)
        raw_offset = (offset - base_offset) << 1
        raw_delta = zigzag(wrap64(timestamp - base_timestamp))
        raw_key = zigzag(key_length)
        raw_value = zigzag(value_length)
        if (raw_delta | raw_offset) & _NOT_14_BITS or (raw_key | raw_value) & _NOT_12_BITS:
            break
        if offset <= last_offset or timestamp < NO_TIMESTAMP:
            break
        if len(rows.header_ends) and rows.header_ends[row] != rows.header_ends[row + 1]:
            break
        key_length = max(key_length, 0)
        value_length = max(value_length, 0)
        body = MIN_RECORD_SIZE - 1 + key_length + value_length
        body += (raw_delta >= 0x80) + (raw_offset >= 0x80) + (raw_key >= 0x80) + (raw_value >= 0x80)
        if at + 2 + body > limit:
            break
        at = put_short(out, at, body << 1) + 1  # the attributes are 0
        at = put_short(out, at, raw_delta)
        at = put_short(out, at, raw_offset)
        at = put_short(out, at, raw_key)
        if key_length:
            copy_loosely(out, at, rows.keys.data, key_start, key_length)
            at += key_length
        at = put_short(out, at, raw_value)
        if value_length:
            copy_loosely(out, at, rows.values.data, value_start, value_length)
            at += value_length
        at = put_short(out, at, 0)  # the number of headers
        max_timestamp = max(max_timestamp, timestamp)
        last_offset = offset
        row += 1
    return row, at, last_offset, max_timestamp


def put_value(column: ByteColumn, row: int, out: Array, at: int) -> int:
    """Write the value of a row with its length; returns the position after it."""
    start, length = place_of(column, row)
    return write_nullable(out, at, column.data, start, length)


def headers_size(rows: Rows, row: int) -> int:
    """Return the number of bytes that the headers of a row take, without their count."""
    size = 0
    for header in range(rows.header_ends[row], rows.header_ends[row + 1]):
        size += nullable_size(length_at(rows.header_keys, header))
        size += nullable_size(length_at(rows.header_values, header))
    return size


def put_headers(rows: Rows, row: int, out: Array, at: int) -> int:
    """Write the headers of a row with their count; returns the position after them."""
    first = rows.header_ends[row]
    last = rows.header_ends[row + 1]
    at = write_varint(out, at, last - first)
    for header in range(first, last):
        at = put_value(rows.header_keys, header, out, at)
        at = put_value(rows.header_values, header, out, at)
    return at


def write_batch_header(
    out: Array,
    at: int,
    end: int,
    groups: Array,
    group: int,
    base_offset: int,
    last_offset: int,
    base_timestamp: int,
    max_timestamp: int,
    sequence: int,
    count: int,
) -> None:
    """Write the header of the batch in `out[at:end]`, except its checksum."""
    write_i64(out, at, base_offset)
    write_u32(out, at + LENGTH_AT, end - at - LOG_OVERHEAD)
    write_u32(out, at + LEADER_EPOCH_AT, groups[group, GROUP_LEADER_EPOCH])
    out[at + MAGIC_AT] = 2
    write_i16(out, at + ATTRIBUTES_AT, groups[group, GROUP_ATTRIBUTES])
    write_u32(out, at + LAST_OFFSET_DELTA_AT, last_offset - base_offset)
    write_i64(out, at + BASE_TIMESTAMP_AT, base_timestamp)
    write_i64(out, at + MAX_TIMESTAMP_AT, max_timestamp)
    write_i64(out, at + PRODUCER_ID_AT, groups[group, GROUP_PRODUCER_ID])
    write_i16(out, at + PRODUCER_EPOCH_AT, groups[group, GROUP_PRODUCER_EPOCH])
    write_u32(out, at + BASE_SEQUENCE_AT, sequence)
    write_u32(out, at + COUNT_AT, count)


def sequence_at(base_sequence: int, steps: int) -> int:
    """Return the sequence number `steps` after `base_sequence`; 0 follows the largest number, and -1 stays -1."""
    if base_sequence < 0:
        return base_sequence
    return (base_sequence + steps) & MAX_SEQUENCE


def encode_batch(
    rows: Rows, micros: int, groups: Array, group: int, row: int, max_size: int, max_count: int, out: Array, at: int
) -> tuple[int, int, int, int]:
    """Write one batch of magic 2 that begins with `row`.

    Returns the position after it, the next row, the last offset and the largest timestamp. A negative next row is
    `NO_ROOM`, or -1 minus the row that was refused.
    """
    start = at
    first = row
    stop = min(groups[group, GROUP_LAST_ROW], row + max_count)
    attributes = groups[group, GROUP_ATTRIBUTES]
    base_offset = rows.offsets[row]
    last_offset = base_offset - 1
    max_timestamp = timestamp_ms(rows, row, micros)
    base_timestamp = groups[group, GROUP_DELETE_HORIZON] if attributes & _DELETE_HORIZON else max_timestamp
    limit = min(start + min(max_size, MAX_SIZE), len(out) - SLACK)
    at += HEADER_SIZE
    while row < stop:
        row, at, last_offset, max_timestamp = put_plain_records(
            rows, micros, row, stop, base_offset, base_timestamp, last_offset, max_timestamp, out, at, limit
        )
        if row == stop:
            break
        offset = rows.offsets[row]
        timestamp = timestamp_ms(rows, row, micros)
        if offset <= last_offset or timestamp < NO_TIMESTAMP:
            return at, -1 - row, 0, 0
        if offset - base_offset > MAX_INT32:
            break
        delta = wrap64(timestamp - base_timestamp)
        headers = rows.header_ends[row + 1] - rows.header_ends[row] if len(rows.header_ends) else 0
        body = record_body_size(
            delta,
            offset - base_offset,
            length_at(rows.keys, row),
            length_at(rows.values, row),
            headers,
            headers_size(rows, row) if headers else 0,
        )
        size = varint_size(body) + body
        if row > first and at - start + size > max_size:
            break
        if at - start + size > MAX_SIZE:
            return at, -1 - row, 0, 0
        if at + size > len(out) - SLACK:
            return at, NO_ROOM, 0, 0
        at = write_record_start(out, at, body, delta, offset - base_offset)
        at = put_value(rows.keys, row, out, at)
        at = put_value(rows.values, row, out, at)
        at = put_headers(rows, row, out, at) if headers else write_varint(out, at, 0)
        max_timestamp = max(max_timestamp, timestamp)
        last_offset = offset
        row += 1
    if attributes & _LOG_APPEND_TIME:
        max_timestamp = groups[group, GROUP_APPEND_TIME]
    sequence = sequence_at(
        groups[group, GROUP_BASE_SEQUENCE], base_offset - rows.offsets[groups[group, GROUP_FIRST_ROW]]
    )
    write_batch_header(
        out, start, at, groups, group, base_offset, last_offset, base_timestamp, max_timestamp, sequence, row - first
    )
    return at, row, last_offset, max_timestamp


def encode(
    tables: Tables,
    rows: Rows,
    micros: int,
    groups: Array,
    magic: int,
    checksums: int,
    max_size: int,
    max_count: int,
    out: Array,
    batches: Array,
) -> int:
    """Write all groups into `out`, which is large enough; fills the table of batches and returns their number.

    `micros` is 1 if timestamps are microseconds; `checksums` is 1 to store the checksums of magic 2 as well. A negative
    result is -1 minus the first row that was refused: its offset is negative or does not increase within its group, its
    timestamp is negative, or it is too large for any batch. `NO_ROOM` is a mistake of the caller.
    """
    at = 0
    count = 0
    for group in range(len(groups)):
        row: int = groups[group, GROUP_FIRST_ROW]
        while row < groups[group, GROUP_LAST_ROW]:
            start = at
            if rows.offsets[row] < 0:
                return -1 - row
            if row > groups[group, GROUP_FIRST_ROW] and rows.offsets[row] <= rows.offsets[row - 1]:
                return -1 - row
            if count == len(batches) or at + HEADER_SIZE > len(out) - SLACK:
                return NO_ROOM
            if magic == 2:
                at, row, last_offset, max_timestamp = encode_batch(
                    rows, micros, groups, group, row, max_size, max_count, out, at
                )
                if checksums and row >= 0:
                    write_u32(out, start + CRC_AT, crc32c(tables, out, start + ATTRIBUTES_AT, at))
            else:
                at, row, last_offset, max_timestamp = encode_messages(
                    rows, micros, groups, group, row, magic, max_size, max_count, tables, out, at
                )
            if row < 0:
                return row
            batches[count, BATCH_START] = start
            batches[count, BATCH_END] = at
            batches[count, BATCH_GROUP] = group
            batches[count, BATCH_LAST_OFFSET] = last_offset
            batches[count, BATCH_MAX_TIMESTAMP] = max_timestamp
            count += 1
    return count

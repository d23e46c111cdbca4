"""Encode messages of magic 0 and 1, for `encode`."""

from __future__ import annotations

from octavo.records.kernels.checksum import Tables
from octavo.records.kernels.encode_input import (
    GROUP_APPEND_TIME,
    GROUP_ATTRIBUTES,
    GROUP_LAST_ROW,
    NO_ROOM,
    Rows,
    length_at,
    timestamp_ms,
)
from octavo.records.kernels.machine import SLACK, Array, copy, crc32
from octavo.records.kernels.varint import write_i64, write_u32
from octavo.records.layout import (
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_SIZE,
    MESSAGE_V0,
    MESSAGE_V1,
    NO_TIMESTAMP,
    Attributes,
)

_CODEC = int(Attributes.CODEC)
_LOG_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)

_MESSAGE_CRC_AT = MESSAGE_V0.at("crc")
_MESSAGE_ATTRIBUTES_AT = MESSAGE_V0.at("attributes")
_TIMESTAMP_AT = MESSAGE_V1.at("timestamp_ms")
_SIZE_V0 = MESSAGE_V0.size
_SIZE_V1 = MESSAGE_V1.size


def write_message(
    rows: Rows, row: int, magic: int, attributes: int, offset: int, timestamp: int, tables: Tables, out: Array, at: int
) -> int:
    """Write one message of magic 0 or 1 with its checksum; returns the position after it."""
    key_length = length_at(rows.keys, row)
    value_length = length_at(rows.values, row)
    start = at
    write_i64(out, at, offset)
    out[at + MAGIC_AT] = magic
    out[at + _MESSAGE_ATTRIBUTES_AT] = attributes
    if magic == 1:
        write_i64(out, at + _TIMESTAMP_AT, timestamp)
        at += _SIZE_V1
    else:
        at += _SIZE_V0
    write_u32(out, at, key_length)
    at += 4
    if key_length > 0:
        copy(out, at, rows.keys.data, rows.keys.limits[row], key_length)
        at += key_length
    write_u32(out, at, value_length)
    at += 4
    if value_length > 0:
        copy(out, at, rows.values.data, rows.values.limits[row], value_length)
        at += value_length
    write_u32(out, start + LENGTH_AT, at - start - LOG_OVERHEAD)
    write_u32(out, start + _MESSAGE_CRC_AT, crc32(tables.ieee, out, start + MAGIC_AT, at))
    return at


def message_size(rows: Rows, row: int, magic: int) -> int:
    """Return the number of bytes that `write_message` writes."""
    size: int = max(0, length_at(rows.keys, row)) + max(0, length_at(rows.values, row))
    return size + 8 + (_SIZE_V1 if magic == 1 else _SIZE_V0)


def encode_messages(
    rows: Rows,
    micros: int,
    groups: Array,
    group: int,
    row: int,
    magic: int,
    max_size: int,
    max_count: int,
    tables: Tables,
    out: Array,
    at: int,
) -> tuple[int, int, int, int]:
    """Write messages of magic 0 or 1, as single messages or for a wrapper; returns the same as `encode_batch`.

    Messages for a wrapper have no codec of their own, and in magic 1 their offsets are relative to the first.
    """
    start = at
    first = row
    last_row = groups[group, GROUP_LAST_ROW]
    attributes = groups[group, GROUP_ATTRIBUTES]
    wrapped = attributes & _CODEC
    base_offset = rows.offsets[row] if wrapped and magic == 1 else 0
    max_timestamp = timestamp_ms(rows, row, micros)
    while row < last_row and row - first < max_count:
        size = message_size(rows, row, magic)
        if row > first and at - start + size > max_size:
            break
        if size > MAX_SIZE:
            return at, -1 - row, 0, 0
        if at + size > len(out) - SLACK:
            return at, NO_ROOM, 0, 0
        timestamp = timestamp_ms(rows, row, micros)
        if (row > first and rows.offsets[row] <= rows.offsets[row - 1]) or timestamp < NO_TIMESTAMP:
            return at, -1 - row, 0, 0
        if attributes & _LOG_APPEND_TIME:
            timestamp = groups[group, GROUP_APPEND_TIME]
        at = write_message(
            rows,
            row,
            magic,
            attributes - wrapped,
            rows.offsets[row] - base_offset,
            timestamp,
            tables,
            out,
            at,
        )
        max_timestamp = max(max_timestamp, timestamp)
        row += 1
    if attributes & _LOG_APPEND_TIME:
        max_timestamp = groups[group, GROUP_APPEND_TIME]
    return at, row, rows.offsets[row - 1], max_timestamp

"""Find and write the fields of a record of a batch of magic 2 (Kafka's `DefaultRecord`).

    record => length attributes timestamp_delta offset_delta key_length key value_length value header_count header*
    header => key_length key value_length value

`length` counts the bytes after it. The attributes are one unused byte; all other numbers are zig-zag varints. Every
negative length of a key or value means null, as in Kafka; the key of a header cannot be null.
"""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.machine import Array, copy
from octavo.records.kernels.varint import CUT, read_varint, read_varlong, varint_size, write_varint

MIN_RECORD_SIZE = 7  # one byte for each of the fields that every record has

# The result of `walk_record`: start of the next record, timestamp delta, offset delta, position and length of the key,
# position and length of the value, position of the first header, number of headers. If a rule is broken, the first
# number is minus the rule, and the second is the position.
Walked = tuple[int, int, int, int, int, int, int, int, int]


def _broken(rule: int, position: int) -> Walked:
    return (-rule, position, 0, 0, 0, 0, 0, 0, 0)


def _bad_varint(outcome: int, position: int) -> Walked:
    return _broken(rules.VARINT_CUT if outcome == CUT else rules.VARINT_UNENDING, position)


def walk_record(data: Array, start: int, end: int) -> Walked:
    """Find the fields of the record at `start` of the records in `data[:end]`; the headers are not walked."""
    length, at = read_varint(data, start, end)
    if at < 0:
        return _bad_varint(at, start)
    record_end = at + length
    if length < MIN_RECORD_SIZE - 1 or record_end > end:
        return _broken(rules.RECORD_LENGTH, start)
    at += 1  # attributes: unused
    timestamp_delta, at = read_varlong(data, at, record_end)
    if at < 0:
        return _bad_varint(at, start)
    offset_delta, at = read_varint(data, at, record_end)
    if at < 0:
        return _bad_varint(at, start)
    key_length, at = read_varint(data, at, record_end)
    if at < 0:
        return _bad_varint(at, start)
    key_at = at
    if key_length > 0:
        at += key_length
        if at > record_end:
            return _broken(rules.KEY_LENGTH, start)
    value_length, at = read_varint(data, at, record_end)
    if at < 0:
        return _bad_varint(at, start)
    value_at = at
    if value_length > 0:
        at += value_length
        if at > record_end:
            return _broken(rules.VALUE_LENGTH, start)
    header_count, at = read_varint(data, at, record_end)
    if at < 0:
        return _bad_varint(at, start)
    if header_count == 0:
        if at != record_end:
            return _broken(rules.RECORD_NOT_FILLED, start)
    elif header_count < 0 or header_count > record_end - at:
        return _broken(rules.HEADER_COUNT, start)
    return (
        record_end,
        timestamp_delta,
        offset_delta,
        key_at,
        key_length,
        value_at,
        value_length,
        at,
        header_count,
    )


def walk_header(data: Array, start: int, end: int) -> tuple[int, int, int, int, int]:
    """Find the fields of the header at `start` of a record that ends at `end`.

    Returns the position after it, the key's position and length, and the value's position and length. If a rule is
    broken, the first number is minus the rule.
    """
    key_length, key_at = read_varint(data, start, end)
    if key_at < 0:
        return (-(rules.VARINT_CUT if key_at == CUT else rules.VARINT_UNENDING), 0, 0, 0, 0)
    at = key_at + key_length
    if key_length < 0 or at > end:
        return (-rules.HEADER_KEY_LENGTH, 0, 0, 0, 0)
    value_length, value_at = read_varint(data, at, end)
    if value_at < 0:
        return (-(rules.VARINT_CUT if value_at == CUT else rules.VARINT_UNENDING), 0, 0, 0, 0)
    at = value_at
    if value_length > 0:
        at += value_length
        if at > end:
            return (-rules.HEADER_VALUE_LENGTH, 0, 0, 0, 0)
    return (at, key_at, key_length, value_at, value_length)


def walk_headers(data: Array, start: int, end: int, count: int) -> int:
    """Check `count` headers that must fill `data[start:end]`; returns the broken rule or `OK`."""
    at = start
    for _ in range(count):
        at, _, _, _, _ = walk_header(data, at, end)
        if at < 0:
            return -at
    return rules.OK if at == end else rules.RECORD_NOT_FILLED


def nullable_size(length: int) -> int:
    """Return the number of bytes of a key or value of `length`, including its length field; negative means null."""
    return 1 if length < 0 else varint_size(length) + length


def write_nullable(out: Array, at: int, data: Array, start: int, length: int) -> int:
    """Write a key or value with its length; returns the position after it."""
    if length < 0:
        out[at] = 1  # the varint of -1
        return at + 1
    at = write_varint(out, at, length)
    copy(out, at, data, start, length)
    return at + length


def record_body_size(
    timestamp_delta: int, offset_delta: int, key_length: int, value_length: int, header_count: int, headers_size: int
) -> int:
    """Return the value of a record's `length` field; `headers_size` is the size of the headers without their count."""
    return (
        1
        + varint_size(timestamp_delta)
        + varint_size(offset_delta)
        + nullable_size(key_length)
        + nullable_size(value_length)
        + varint_size(header_count)
        + headers_size
    )


def write_record_start(out: Array, at: int, body_size: int, timestamp_delta: int, offset_delta: int) -> int:
    """Write the fields before a record's key; returns the position after them."""
    at = write_varint(out, at, body_size)
    out[at] = 0
    at = write_varint(out, at + 1, timestamp_delta)
    return write_varint(out, at, offset_delta)

"""Read only the fields of a record that `validate` needs: its timestamp, its offset and whether it has a key.

any_record     accepts every record that Kafka accepts
quick_record   accepts only the most common records, in a third of the time
skim_records   walks all the most common records at the beginning of a batch, in half of that time
"""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.machine import Array, read_i16, read_i64
from octavo.records.kernels.record import walk_header, walk_headers, walk_record
from octavo.records.kernels.varint import CUT, read_varint, read_varlong

# The result of `skip_record` and `any_record`: the start of the next record, the timestamp delta, the offset delta and
# the key's length. If a rule is broken, the first number is minus the rule.
Skimmed = tuple[int, int, int, int]

# The result of `quick_record`: the start of the next record, the timestamp delta, the offset delta and its position,
# the key's position and length, and the value's length.
Quick = tuple[int, int, int, int, int, int, int]

_NOT_QUICK = (0, 0, 0, 0, 0, 0, 0)

QUICK_DELTAS = 1 << 20  # `quick_record` accepts only deltas whose absolute value is at most this
NULL_LENGTH = 1  # -1, the length of null, in zigzag encoding


def skip_record(data: Array, start: int, end: int) -> Skimmed:
    """Skip the record at `start` as Kafka does in a compressed batch that it stores unchanged: ignore its length."""
    at = start
    key_length = 0
    timestamp_delta = 0
    offset_delta = 0
    length = 0
    for field in range(6):
        if field == 1:  # after the length: attributes, and a varint of up to 64 bits
            timestamp_delta, at = read_varlong(data, at + 1, end)
        else:
            length, at = read_varint(data, at, end)
        if at < 0:
            return (-(rules.VARINT_CUT if at == CUT else rules.VARINT_UNENDING), 0, 0, 0)
        if field == 2:
            offset_delta = length
        elif field == 3:
            key_length = length
        if 3 <= field <= 4 and length > 0:
            if length > end - at:
                return (-(rules.KEY_LENGTH if field == 3 else rules.VALUE_LENGTH), 0, 0, 0)
            at += length
    if length < 0:
        return (-rules.HEADER_COUNT, 0, 0, 0)
    for _ in range(length):
        at, _, _, _, _ = walk_header(data, at, end)
        if at < 0:
            return (at, 0, 0, 0)
    return (at, timestamp_delta, offset_delta, key_length)


def quick_record(data: Array, start: int, end: int) -> Quick:
    """Find the fields of a record of the most common form. For any other, the first number is 0."""
    record_end, stamp, delta, rest, key_at, key, value = quick_zigzags(data, start, end)
    if record_end == 0:
        return _NOT_QUICK
    return (
        record_end,
        (stamp >> 1) ^ -(stamp & 1),
        (delta >> 1) ^ -(delta & 1),
        rest,
        key_at,
        (key >> 1) ^ -(key & 1),
        (value >> 1) ^ -(value & 1),
    )


def quick_zigzags(data: Array, start: int, end: int) -> Quick:
    """Find the fields like `quick_record`, but leave deltas and lengths as the varints have them, in zigzag encoding.

    In the most common form, the lengths of record, key and value take up to two bytes and both deltas up to three, and
    there are no attributes and no headers. Eight bytes are read at once, so the last records of a batch may not
    qualify. Other records need `any_record`.
    """
    if end - start < 16:
        return _NOT_QUICK
    word = read_i64(data, start)
    length = word >> 56 & 0xFF
    record_end = start + 1
    shift = 48
    if length >= 0x80:
        length = length & 0x7F | (word >> 48 & 0xFF) << 7
        record_end = start + 2
        shift = 40
    record_end += length >> 1
    attributes = word >> shift & 0xFF
    shift -= 8
    stamp = word >> shift & 0xFF
    if stamp >= 0x80:
        shift -= 8
        stamp = stamp & 0x7F | (word >> shift & 0xFF) << 7
        if stamp >= 0x4000:
            shift -= 8
            stamp = stamp & 0x3FFF | (word >> shift & 0xFF) << 14
    if length & 0x4001 or attributes or stamp >= 0x200000 or record_end > end:
        return _NOT_QUICK
    rest = start + 8 - (shift >> 3)
    word = read_i64(data, rest)
    delta = word >> 56 & 0xFF
    shift = 48
    if delta >= 0x80:
        delta = delta & 0x7F | (word >> 48 & 0xFF) << 7
        shift = 40
        if delta >= 0x4000:
            delta = delta & 0x3FFF | (word >> 40 & 0xFF) << 14
            shift = 32
    key = word >> shift & 0xFF
    if key >= 0x80:
        shift -= 8
        key = key & 0x7F | (word >> shift & 0xFF) << 7
    key_at = rest + 8 - (shift >> 3)
    at = key_at + (key >> 1)
    if delta >= 0x200000 or key >= 0x4000 or at + 2 > record_end or (key & 1 and key != NULL_LENGTH):
        return _NOT_QUICK
    pair = read_i16(data, at)
    value = pair >> 8 & 0xFF
    at += 1
    if value >= 0x80:
        value = value & 0x7F | (pair & 0xFF) << 7
        at += 1
    at += value >> 1
    if value >= 0x4000 or at != record_end - 1 or data[at] != 0 or (value & 1 and value != NULL_LENGTH):
        return _NOT_QUICK
    return (record_end, stamp, delta, rest, key_at, key, value)


def skim_records(data: Array, start: int, end: int, count: int) -> tuple[int, int, int, int, int]:
    """Walk the records in `data[start:end]`, at most `count`, up to the first that `quick_record` does not accept.

    Also stops at a timestamp that is before the batch's base timestamp. Returns the number of records, where they end,
    the largest timestamp delta, a number that is 0 if the offset deltas count from 0, and one that is odd if a key is
    null.
    """
    at = start
    walked = 0
    latest = 0
    jumps = 0
    keys = 0
    while walked < count:
        record_end, stamp, delta, _, _, key, _ = quick_zigzags(data, at, end)
        if record_end == 0 or stamp & 1:
            break
        at = record_end
        latest = max(latest, stamp)
        jumps |= delta ^ (walked << 1)
        keys |= key
        walked += 1
    return (walked, at, latest >> 1, jumps, keys)


def any_record(data: Array, start: int, end: int, lengths_matter: bool) -> Skimmed:
    """Skip the record at `start` of `data[:end]`; if `lengths_matter`, its fields must fill its length exactly."""
    record_end, timestamp_delta, offset_delta, _, key_length, _, _, headers_at, header_count = walk_record(
        data, start, end
    )
    if record_end < 0:
        rule = -record_end
    else:
        rule = walk_headers(data, headers_at, record_end, header_count) if header_count else rules.OK
    if rule == rules.OK:
        return (record_end, timestamp_delta, offset_delta, key_length)
    if lengths_matter:
        return (-rule, 0, 0, 0)
    return skip_record(data, start, end)

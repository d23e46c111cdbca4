"""Print the records of one batch as lines of Kafka's `kafka-dump-log`, straight from the bytes of the batch.

What is the same for all records is given as fragments of text. All records are checked before the first is printed. A
call continues at a record, and stops when all are printed or the output may have no room for the next one.
"""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.machine import Array, copy, read_u8, wrap64
from octavo.records.kernels.printing.lines import put_fragment
from octavo.records.kernels.printing.scalars import put_number, sequence_size
from octavo.records.kernels.record import walk_header, walk_headers, walk_record

# The numbers that describe the batch, and how far it is printed.
BASE_OFFSET = 0
BASE_TIMESTAMP = 1
HAS_APPEND_TIME = 2
APPEND_TIME = 3
BASE_SEQUENCE = 4
COUNT = 5
WITH_METADATA = 6
WITH_CONTENTS = 7
LAST_OFFSET = 8  # of the record that was printed last
ROW = 9  # the record to continue at, and its position
POSITION = 10
BATCH_NUMBERS = 11

# The fragments.
BEFORE_OFFSET = 0
BEFORE_TIMESTAMP = 1
BEFORE_KEY_SIZE = 2
BEFORE_VALUE_SIZE = 3
BEFORE_SEQUENCE = 4
BEFORE_HEADERS = 5
BEFORE_KEY = 6
BEFORE_VALUE = 7
BEFORE_FIRST_VALUE = 8  # instead of the one before it, where nothing stands before the value
FRAGMENTS = 9

ROOM_A_RECORD = 320  # bytes that a line takes at most, except for its key, value and headers
ROOM_A_BYTE = 3  # bytes that a byte of these takes at most: the character for what is no text

DAMAGED = -1

_MAX_SEQUENCE = 0x7FFFFFFF


def put_utf8(out: Array, at: int, data: Array, start: int, length: int) -> int:
    """Copy text. What is no UTF-8 is replaced as in Java."""
    end = start + length
    bits = 0
    for position in range(start, end):
        bits |= read_u8(data, position)
    if bits < 0x80:
        copy(out, at, data, start, length)
        return at + length
    while start < end:
        byte = read_u8(data, start)
        if byte < 0x80:
            out[at] = byte
            at += 1
            start += 1
            continue
        size = sequence_size(data, start, end)
        if size == 0:
            out[at] = 0xEF
            out[at + 1] = 0xBF
            out[at + 2] = 0xBD
            at += 3
            start += malformed_size(data, start, end)
        else:
            for _ in range(size):
                out[at] = read_u8(data, start)
                at += 1
                start += 1
    return at


def malformed_size(data: Array, at: int, end: int) -> int:
    """Return how many of the bytes at `at`, which are no character, Java replaces by one."""
    first = read_u8(data, at)
    if first < 0xE0 or first > 0xF4 or at + 1 >= end:
        return 1
    second = read_u8(data, at + 1)
    if second & 0xC0 != 0x80:
        return 1
    if first < 0xF0:
        if first == 0xE0 and second < 0xA0:
            return 1
        # The bytes of a surrogate are replaced together. Of other characters, the third byte is missing here.
        is_surrogate = first == 0xED and second >= 0xA0
        return 3 if is_surrogate and at + 2 < end and read_u8(data, at + 2) & 0xC0 == 0x80 else 2
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
        return 1
    return 3 if at + 2 < end and read_u8(data, at + 2) & 0xC0 == 0x80 else 2


def put_header_keys(out: Array, at: int, data: Array, start: int, end: int, count: int) -> int:
    """Print the keys of headers, with commas between them and a bracket after them."""
    for number in range(count):
        start, key_at, key_length, _, _ = walk_header(data, start, end)
        if number:
            out[at] = 44
            at += 1
        at = put_utf8(out, at, data, key_at, key_length)
    out[at] = 93
    return at + 1


def sequence_of(base_sequence: int, offset_delta: int) -> int:
    """Return the sequence number of a record. The delta is not negative."""
    if base_sequence < 0:
        return -1
    sequence = base_sequence + offset_delta
    return sequence if sequence <= _MAX_SEQUENCE else sequence - _MAX_SEQUENCE - 1


def are_sound(data: Array, count: int) -> bool:
    """Return whether `data` consists of `count` records, all with offsets from the base offset on."""
    position = 0
    end = len(data)
    for _ in range(count):
        position, _, offset_delta, _, _, _, _, headers_at, headers = walk_record(data, position, end)
        if position < 0 or offset_delta < 0:
            return False
        if headers and walk_headers(data, headers_at, position, headers) != rules.OK:
            return False
    return position == end


def print_records(
    data: Array, batch: Array, limits: Array, fragments: Array, out: Array, gaps: Array
) -> tuple[int, int, int]:
    """Print records of a batch. Returns the bytes printed, or `DAMAGED`, the gaps, and what the next record may take.

    `gaps`: where an offset is not one more than that of the record before: that offset, and the record's
    """
    at = 0
    found = 0
    needed = 0
    position = batch[POSITION]
    row = batch[ROW]
    end = len(data)
    last_offset = batch[LAST_OFFSET]
    if row == 0 and not are_sound(data, batch[COUNT]):
        return DAMAGED, 0, 0
    while row < batch[COUNT] and found < len(gaps):
        start = position
        walked = walk_record(data, position, end)
        position, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length, headers_at, headers = (
            walked
        )
        needed = ROOM_A_RECORD + (position - start) * ROOM_A_BYTE
        if at + needed > len(out):
            position = start
            break
        offset = wrap64(batch[BASE_OFFSET] + offset_delta)
        if offset != wrap64(last_offset + 1):
            gaps[found, 0] = last_offset
            gaps[found, 1] = offset
            found += 1
        last_offset = offset
        if batch[WITH_METADATA]:
            timestamp = batch[APPEND_TIME]
            if not batch[HAS_APPEND_TIME]:
                timestamp = wrap64(batch[BASE_TIMESTAMP] + timestamp_delta)
            at = put_fragment(out, at, limits, fragments, BEFORE_OFFSET)
            at = put_number(out, at, offset)
            at = put_fragment(out, at, limits, fragments, BEFORE_TIMESTAMP)
            at = put_number(out, at, timestamp)
            at = put_fragment(out, at, limits, fragments, BEFORE_KEY_SIZE)
            at = put_number(out, at, key_length if key_length >= 0 else -1)
            at = put_fragment(out, at, limits, fragments, BEFORE_VALUE_SIZE)
            at = put_number(out, at, value_length if value_length >= 0 else -1)
            at = put_fragment(out, at, limits, fragments, BEFORE_SEQUENCE)
            at = put_number(out, at, sequence_of(batch[BASE_SEQUENCE], offset_delta))
            at = put_fragment(out, at, limits, fragments, BEFORE_HEADERS)
            at = put_header_keys(out, at, data, headers_at, position, headers)
        if batch[WITH_CONTENTS]:
            if key_length >= 0:
                at = put_fragment(out, at, limits, fragments, BEFORE_KEY)
                at = put_utf8(out, at, data, key_at, key_length)
            if value_length >= 0:
                before = BEFORE_VALUE if key_length >= 0 else BEFORE_FIRST_VALUE
                at = put_fragment(out, at, limits, fragments, before)
                at = put_utf8(out, at, data, value_at, value_length)
        out[at] = 10
        at += 1
        row += 1
    batch[POSITION] = position
    batch[ROW] = row
    batch[LAST_OFFSET] = last_offset
    return at, found, needed

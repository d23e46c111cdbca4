"""Check the records of one batch of magic 2.

record => length attributes timestamp_delta offset_delta key_length key value_length value header_count header*
header => key_length key value_length value
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, read_u8, wrap64
from octavo.records.kernels.verification import faults
from octavo.records.kernels.verification.numbers import take_int, take_long

_SMALLEST_BODY = 6  # a byte for each field after the length
_NO_TIME = -1


def check_headers(data: Array, at: int, stop: int, count: int) -> tuple[int, int]:
    """Check `count` headers of a record that ends at `stop`; return what is wrong, and the position after them."""
    for _ in range(count):
        length, at = take_int(data, at, stop)
        if at < 0:
            return faults.VARINT, at
        if length < 0 or length > stop - at:
            return faults.HEADER_KEY, at
        length, at = take_int(data, at + length, stop)
        if at < 0:
            return faults.VARINT, at
        if length < -1:
            return faults.NULL_LENGTH, at
        if length > stop - at:
            return faults.HEADER_VALUE, at
        if length > 0:
            at += length
    return faults.OK, at


def check_record(data: Array, at: int, stop: int) -> tuple[int, int, int]:
    """Check the body of a record, `data[at:stop]`; return what is wrong, the timestamp delta and the offset delta."""
    is_plain = read_u8(data, at) == 0
    timestamp_delta, at = take_long(data, at + 1, stop)
    if at < 0:
        return faults.VARINT, 0, 0
    offset_delta, at = take_int(data, at, stop)
    if at < 0:
        return faults.VARINT, 0, 0
    length, at = take_int(data, at, stop)
    if at < 0:
        return faults.VARINT, 0, 0
    if length < -1:
        return faults.NULL_LENGTH, 0, 0
    if length > stop - at:
        return faults.KEY_LENGTH, 0, 0
    if length > 0:
        at += length
    length, at = take_int(data, at, stop)
    if at < 0:
        return faults.VARINT, 0, 0
    if length < -1:
        return faults.NULL_LENGTH, 0, 0
    if length > stop - at:
        return faults.VALUE_LENGTH, 0, 0
    if length > 0:
        at += length
    count, at = take_int(data, at, stop)
    if at < 0:
        return faults.VARINT, 0, 0
    if count != 0:
        if count < 0 or count > (stop - at) // 2:
            return faults.HEADER_COUNT, 0, 0
        fault, at = check_headers(data, at, stop, count)
        if fault != faults.OK:
            return fault, 0, 0
    if at != stop:
        return faults.NOT_FILLED, 0, 0
    return faults.OK if is_plain else faults.RECORD_ATTRIBUTES, timestamp_delta, offset_delta


def check_records(
    data: Array, at: int, end: int, count: int, last_delta: int, base_timestamp: int
) -> tuple[int, int, int, int]:
    """Check the `count` records that must fill `data[at:end]`.

    Returns what is wrong, the position of the record where, its number, and the largest timestamp.
    """
    before = -1
    largest = _NO_TIME
    for number in range(count):
        start = at
        if at >= end:
            return faults.MISSING, start, number, largest
        length, at = take_int(data, at, end)
        if at < 0:
            return faults.VARINT, start, number, largest
        if length < _SMALLEST_BODY or length > end - at:
            return faults.RECORD_LENGTH, start, number, largest
        fault, timestamp_delta, offset_delta = check_record(data, at, at + length)
        if fault != faults.OK:
            return fault, start, number, largest
        if offset_delta <= before or offset_delta > last_delta:
            return faults.OFFSET_DELTA, start, number, largest
        before = offset_delta
        timestamp = wrap64(base_timestamp + timestamp_delta)
        if timestamp < _NO_TIME:
            return faults.RECORD_TIMESTAMP, start, number, largest
        if timestamp > largest:
            largest = timestamp
        at += length
    if at != end:
        return faults.LEFT_OVER, at, count, largest
    return faults.OK, at, count, largest

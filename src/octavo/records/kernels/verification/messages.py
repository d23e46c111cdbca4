"""Check messages of magic 0 and 1: single ones, wrappers, and the messages inside a decompressed wrapper.

message => offset:int64 length:int32 crc:uint32 magic:int8 attributes:int8 [timestamp:int64] key value
key, value => length:int32 bytes
"""

from __future__ import annotations

from octavo.records.kernels import scan
from octavo.records.kernels.machine import Array, crc32, read_i32, read_i64, read_u8, read_u32
from octavo.records.kernels.verification import faults
from octavo.records.layout import (
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_V0,
    MESSAGE_V1,
    MIN_LENGTH,
    Attributes,
    Codec,
)

_CRC_AT = MESSAGE_V0.at("crc")
_ATTRIBUTES_AT = MESSAGE_V0.at("attributes")
_TIMESTAMP_AT = MESSAGE_V1.at("timestamp_ms")
_SIZE_V0 = MESSAGE_V0.size
_SIZE_V1 = MESSAGE_V1.size
_CODEC = int(Attributes.CODEC)
_LAST_CODEC = int(Codec.LZ4)
_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)


def check_message(data: Array, at: int, end: int) -> tuple[int, int, int, int]:
    """Check the fields of the message that takes `data[at:end]`, except for its checksum.

    Returns what is wrong, a number that says more, and the range of its value (-1 for null).
    """
    magic = read_u8(data, at + MAGIC_AT)
    attributes = read_u8(data, at + _ATTRIBUTES_AT)
    codec = attributes & _CODEC
    if codec > _LAST_CODEC:
        return faults.CODEC, codec, 0, 0
    known = _CODEC if magic == 0 else _CODEC | _APPEND_TIME
    if attributes & ~known:
        return faults.MESSAGE_ATTRIBUTES, attributes, 0, 0
    if magic == 1 and read_i64(data, at + _TIMESTAMP_AT) < -1:
        return faults.MESSAGE_TIMESTAMP, read_i64(data, at + _TIMESTAMP_AT), 0, 0
    at += _SIZE_V0 if magic == 0 else _SIZE_V1
    if end - at < 8:
        return faults.MESSAGE_KEY, end - at, 0, 0
    length = read_i32(data, at)
    at += 4
    if length < -1 or length > end - at - 4:
        return faults.MESSAGE_KEY, length, 0, 0
    if length > 0:
        at += length
    length = read_i32(data, at)
    at += 4
    if length < -1 or length > end - at:
        return faults.MESSAGE_VALUE, length, 0, 0
    if at + max(length, 0) != end:
        return faults.MESSAGE_NOT_FILLED, end - at - max(length, 0), 0, 0
    if codec and length < 0:
        return faults.WRAPPER_NULL, 0, 0, 0
    return faults.OK, 0, at, at + length


def check_inner(ieee: Array, data: Array, at: int, end: int) -> tuple[int, int, int]:
    """Check the message at `at` inside a wrapper, whose messages end at `end`.

    Returns what is wrong, a number that says more, and the position after it.
    """
    if end - at < LOG_OVERHEAD + MIN_LENGTH:
        return faults.INNER_LENGTH, end - at, 0
    length = read_i32(data, at + LENGTH_AT)
    stop = at + LOG_OVERHEAD + length
    if length < MIN_LENGTH or stop > end:
        return faults.INNER_LENGTH, length, 0
    if read_u8(data, at + MAGIC_AT) > 1:
        return faults.INNER_MAGIC, read_u8(data, at + MAGIC_AT), 0
    if crc32(ieee, data, at + MAGIC_AT, stop) != read_u32(data, at + _CRC_AT):
        return faults.INNER_CRC, read_u32(data, at + _CRC_AT), 0
    if read_u8(data, at + _ATTRIBUTES_AT) & _CODEC:
        return faults.WRAPPER_NESTED, read_u8(data, at + _ATTRIBUTES_AT) & _CODEC, 0
    fault, detail, _, _ = check_message(data, at, stop)
    return fault, detail, stop


def check_wrapper(ieee: Array, data: Array, table: Array, row: int) -> tuple[int, int]:
    """Check the messages inside the wrapper of a row, decompressed in `data`; put first offset and count into the row.

    In magic 1, inner offsets are relative, and the wrapper has the offset of the last message. A wrapper at offset 0
    comes from a producer that did not set its offset; then inner offsets count from 0. Returns what is wrong, and a
    number that says more.
    """
    at, end = table[row, scan.START], table[row, scan.END]
    offset = table[row, scan.LAST_OFFSET]
    first = 0
    last = -1
    largest = -1
    count = 0
    while at < end:
        start = at
        fault, detail, at = check_inner(ieee, data, start, end)
        if fault != faults.OK:
            return fault, detail
        inner = read_i64(data, start)
        if inner <= last:
            return faults.INNER_ORDER, inner
        last = inner
        if count == 0:
            first = inner
        if read_u8(data, start + MAGIC_AT) == 1:
            largest = max(largest, read_i64(data, start + _TIMESTAMP_AT))
        count += 1
    if count == 0:
        return faults.WRAPPER_EMPTY, 0
    table[row, scan.COUNT] = count
    if table[row, scan.MAGIC] == 1 and offset != 0:
        if last > offset:
            return faults.WRAPPER_OFFSET, last
        table[row, scan.BASE_OFFSET] = offset - last + first
    elif table[row, scan.MAGIC] == 0:
        if last != offset:
            return faults.WRAPPER_OFFSET, last
        table[row, scan.BASE_OFFSET] = first
    is_create_time = table[row, scan.ATTRIBUTES] & _APPEND_TIME == 0
    if table[row, scan.MAGIC] == 1 and is_create_time and largest > table[row, scan.MAX_TIMESTAMP]:
        return faults.WRAPPER_TIMESTAMP, largest
    return faults.OK, 0

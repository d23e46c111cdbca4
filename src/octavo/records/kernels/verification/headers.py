"""Check the header of a batch of magic 2 whose checksum is right."""

from __future__ import annotations

from octavo.records.kernels import scan
from octavo.records.kernels.machine import Array, read_i16
from octavo.records.kernels.verification import faults
from octavo.records.layout import ATTRIBUTES_AT, HEADER_SIZE, MAX_INT64, Attributes, Codec

_KNOWN = int(
    Attributes.CODEC
    | Attributes.LOG_APPEND_TIME
    | Attributes.TRANSACTIONAL
    | Attributes.CONTROL
    | Attributes.DELETE_HORIZON
)
_CODEC = int(Attributes.CODEC)
_LAST_CODEC = int(Codec.ZSTD)
_TRANSACTIONAL = int(Attributes.TRANSACTIONAL)
_CONTROL = int(Attributes.CONTROL)
_HORIZON = int(Attributes.DELETE_HORIZON)


def check_flags(data: Array, table: Array, row: int) -> tuple[int, int]:
    """Check the attributes of the batch in a row; return what is wrong, and a number that says more."""
    attributes = read_i16(data, table[row, scan.POSITION] + ATTRIBUTES_AT)
    codec = attributes & _CODEC
    if attributes & ~_KNOWN:
        return faults.ATTRIBUTES, attributes
    if codec > _LAST_CODEC:
        return faults.CODEC, codec
    if attributes & _CONTROL and codec:
        return faults.CONTROL_CODEC, codec
    return faults.OK, 0


def check_counts(table: Array, row: int) -> tuple[int, int]:
    """Check offsets and counts of the batch in a row; return what is wrong, and a number that says more."""
    base_offset = table[row, scan.BASE_OFFSET]
    count = table[row, scan.COUNT]
    delta = table[row, scan.LAST_OFFSET] - base_offset
    if base_offset < 0 or base_offset > MAX_INT64 - 0x7FFFFFFF:
        return faults.OFFSET, base_offset
    if delta < 0:
        return faults.LAST_OFFSET_DELTA, delta
    if count < 0 or count > delta + 1:
        return faults.COUNT, count
    if count == 0 and table[row, scan.SIZE] != HEADER_SIZE:
        return faults.EMPTY, table[row, scan.SIZE] - HEADER_SIZE
    if table[row, scan.ATTRIBUTES] & _CONTROL and table[row, scan.ATTRIBUTES] & _TRANSACTIONAL and count > 1:
        return faults.CONTROL_COUNT, count
    return faults.OK, 0


def check_times(table: Array, row: int) -> tuple[int, int]:
    """Check the timestamps in a row, except against records; return what is wrong, and a number that says more."""
    if table[row, scan.MAX_TIMESTAMP] < -1:
        return faults.TIMESTAMP, table[row, scan.MAX_TIMESTAMP]
    if table[row, scan.ATTRIBUTES] & _HORIZON and (table[row, scan.BASE_TIMESTAMP] < 0 or table[row, scan.COUNT] == 0):
        return faults.HORIZON, table[row, scan.BASE_TIMESTAMP]
    return faults.OK, 0


def check_producer(table: Array, row: int) -> tuple[int, int]:
    """Check the fields of the producer in a row; return what is wrong, and a number that says more."""
    producer_id = table[row, scan.PRODUCER_ID]
    attributes = table[row, scan.ATTRIBUTES]
    if producer_id < 0:
        if producer_id != -1:
            return faults.PRODUCER, producer_id
        return faults.TRANSACTIONAL if attributes & _TRANSACTIONAL else faults.OK, producer_id
    if table[row, scan.PRODUCER_EPOCH] < 0:
        return faults.PRODUCER, producer_id
    is_without = table[row, scan.BASE_SEQUENCE] < 0
    if table[row, scan.COUNT] > 0 and is_without != (attributes & _CONTROL != 0):
        return faults.SEQUENCE, table[row, scan.BASE_SEQUENCE]
    return faults.OK, 0

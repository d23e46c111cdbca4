"""Scan the headers of many batches in one call, into a table of integers with one row per batch.

The kernel reads only headers: it checks no checksum, decompresses nothing and reads no record. It leaves out batches
that a range of offsets or timestamps excludes, so that they are not touched again.
"""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.machine import Array, read_i16, read_i32, read_i64, read_u32, wrap64
from octavo.records.layout import (
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    CRC_AT,
    FLAGS_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    MESSAGE_V0,
    MESSAGE_V1,
    MIN_LENGTH,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    Attributes,
)

# The table's columns.
POSITION = 0  # position of the batch in the buffer
SIZE = 1  # size of the whole batch
MAGIC = 2
ATTRIBUTES = 3  # the low byte, as Java reads it
BASE_OFFSET = 4  # in a compressed wrapper: unknown until it is decompressed, and then filled in
LAST_OFFSET = 5
LEADER_EPOCH = 6
CRC = 7
BASE_TIMESTAMP = 8
MAX_TIMESTAMP = 9
PRODUCER_ID = 10
PRODUCER_EPOCH = 11
BASE_SEQUENCE = 12
COUNT = 13  # in a compressed wrapper: unknown until it is decompressed, and then filled in
INFLATED = 14  # 0: the records are in the buffer, 1: among the decompressed bytes
START = 15  # start of the records in either
END = 16  # end of the records
COLUMNS = 17

# Reasons why a scan stopped.
MORE = 0  # the table or the window is full
DONE = 1  # the end of the buffer is reached
TORN = 2  # the buffer ends inside a batch
BROKEN = 3  # the next batch breaks a rule of the format

_CRC_V0 = MESSAGE_V0.at("crc")
_ATTRIBUTES_V0 = MESSAGE_V0.at("attributes")
_TIMESTAMP_V1 = MESSAGE_V1.at("timestamp_ms")
_CODEC_MASK = int(Attributes.CODEC)
_LOG_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)


def entry_extent(data: Array, position: int, end: int) -> tuple[int, int, int]:
    """Return how far the batch at `position` reaches: (outcome, size, broken rule).

    The outcome `MORE` means that the batch ends at or before `end`. The size is the one that the header declares,
    whatever the outcome; 0 if the length is impossible, or if the bytes end before the magic. Only the header up to its
    magic has to be in `data`; `end` may be beyond `data`, such as the end of the file.

    The order of the checks is Kafka's (`ByteBufferLogInputStream`). An impossible length is damage even if the buffer
    ends before it would matter. An incomplete batch is a torn tail.
    """
    left = end - position
    if left > MAGIC_AT:
        return header_extent(read_i32(data, position + LENGTH_AT), data[position + MAGIC_AT], left)
    if left == 0:
        return DONE, 0, rules.OK
    if left >= LOG_OVERHEAD and read_i32(data, position + LENGTH_AT) < MIN_LENGTH:
        return BROKEN, 0, rules.ENTRY_LENGTH
    return TORN, 0, rules.OK


def header_extent(length: int, magic: int, left: int) -> tuple[int, int, int]:
    """Return what `entry_extent` returns for these fields of a header, from whose start `left` bytes remain."""
    if length < MIN_LENGTH:
        return BROKEN, 0, rules.ENTRY_LENGTH
    size = length + LOG_OVERHEAD
    if magic == 2:
        if size < HEADER_SIZE:
            return BROKEN, size, rules.BATCH_LENGTH
    elif not 0 <= magic < 2:
        return BROKEN, size, rules.ENTRY_MAGIC
    if size > left:
        return TORN, size, rules.OK
    return MORE, size, rules.OK


def read_row(data: Array, position: int, size: int, table: Array, row: int) -> None:
    """Fill the table's row for the batch at `position`; its `size` has been checked."""
    magic = data[position + MAGIC_AT] & 0xFF
    table[row, POSITION] = position
    table[row, SIZE] = size
    table[row, MAGIC] = magic
    table[row, INFLATED] = 0
    table[row, END] = position + size
    if magic == 2:
        base_offset = read_i64(data, position)
        table[row, ATTRIBUTES] = data[position + FLAGS_AT]
        table[row, BASE_OFFSET] = base_offset
        table[row, LAST_OFFSET] = wrap64(base_offset + read_i32(data, position + LAST_OFFSET_DELTA_AT))
        table[row, LEADER_EPOCH] = read_i32(data, position + LEADER_EPOCH_AT)
        table[row, CRC] = read_u32(data, position + CRC_AT)
        table[row, BASE_TIMESTAMP] = read_i64(data, position + BASE_TIMESTAMP_AT)
        table[row, MAX_TIMESTAMP] = read_i64(data, position + MAX_TIMESTAMP_AT)
        table[row, PRODUCER_ID] = read_i64(data, position + PRODUCER_ID_AT)
        table[row, PRODUCER_EPOCH] = read_i16(data, position + PRODUCER_EPOCH_AT)
        table[row, BASE_SEQUENCE] = read_i32(data, position + BASE_SEQUENCE_AT)
        table[row, COUNT] = read_i32(data, position + COUNT_AT)
        table[row, START] = position + HEADER_SIZE
    else:
        offset = read_i64(data, position)
        timestamp = read_i64(data, position + _TIMESTAMP_V1) if magic == 1 else -1
        table[row, ATTRIBUTES] = data[position + _ATTRIBUTES_V0]
        table[row, BASE_OFFSET] = offset
        table[row, LAST_OFFSET] = offset
        table[row, LEADER_EPOCH] = -1
        table[row, CRC] = read_u32(data, position + _CRC_V0)
        table[row, BASE_TIMESTAMP] = timestamp
        table[row, MAX_TIMESTAMP] = timestamp
        table[row, PRODUCER_ID] = -1
        table[row, PRODUCER_EPOCH] = -1
        table[row, BASE_SEQUENCE] = -1
        table[row, COUNT] = 1 if data[position + _ATTRIBUTES_V0] & _CODEC_MASK == 0 else -1
        table[row, START] = position


def excluded(
    table: Array, row: int, first_offset: int, last_offset: int, first_timestamp: int, last_timestamp: int
) -> bool:
    """Return whether the header alone shows that no record of the batch is in both ranges (ends included).

    A batch with create times may hold any timestamp up to its maximum, so only the maximum can exclude it. A batch with
    append times, and a single message, hold exactly that timestamp. A wrapper at offset 0 may come from a producer that
    did not set its offset (see `measure_wrapper`): then its offset says nothing about the offsets inside.
    """
    old = table[row, MAGIC] < 2
    single = old and table[row, ATTRIBUTES] & _CODEC_MASK == 0
    ends_anywhere = old and not single and table[row, LAST_OFFSET] == 0
    if table[row, LAST_OFFSET] < first_offset and not ends_anywhere:
        return True
    if table[row, MAX_TIMESTAMP] < first_timestamp:
        return True
    if table[row, BASE_OFFSET] > last_offset and (single or table[row, MAGIC] == 2):
        return True
    return table[row, MAX_TIMESTAMP] > last_timestamp and bool(
        single or (table[row, ATTRIBUTES] & _LOG_APPEND_TIME and table[row, MAGIC] > 0)
    )


def scan(
    data: Array,
    position: int,
    end: int,
    table: Array,
    window: int,
    first_offset: int,
    last_offset: int,
    first_timestamp: int,
    last_timestamp: int,
) -> tuple[int, int, int, int]:
    """Fill `table` with the batches of `data[position:end]` that the ranges do not exclude.

    Stops when the table is full or the batches in it take `window` bytes. Returns the position reached, the number of
    rows, the reason for stopping and the broken rule.
    """
    rows = 0
    taken = 0
    while rows < len(table) and taken < window:
        outcome, size, rule = entry_extent(data, position, end)
        if outcome != MORE:
            return position, rows, outcome, rule
        read_row(data, position, size, table, rows)
        position += size
        if not excluded(table, rows, first_offset, last_offset, first_timestamp, last_timestamp):
            rows += 1
            taken += size
    return position, rows, MORE, rules.OK

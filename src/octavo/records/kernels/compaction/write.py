"""Write what compaction keeps of a batch, as a batch of magic 2 (Kafka's `buildRetainedRecordsInto`)."""

from __future__ import annotations

from octavo.records.kernels.checksum import Tables
from octavo.records.kernels.compaction.read import (
    DELTA,
    KEY_AT,
    KEY_LENGTH,
    OFFSET,
    RECORD_END,
    RECORD_START,
    REST,
    VALUE_LENGTH,
)
from octavo.records.kernels.machine import Array, copy, crc32c_of
from octavo.records.kernels.record import record_body_size, write_nullable, write_record_start
from octavo.records.kernels.scan import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    LAST_OFFSET,
    LEADER_EPOCH,
    MAGIC,
    MAX_TIMESTAMP,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    SIZE,
)
from octavo.records.kernels.varint import varint_size, write_i16, write_i64, write_u32, write_varint
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
    MAX_TIMESTAMP_AT,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    Attributes,
)

_CODEC = int(Attributes.CODEC)
_DELETE_HORIZON = int(Attributes.DELETE_HORIZON)
_LOG_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)
# The flags that a compacted batch keeps, by the magic it had.
_FLAGS = (0, _LOG_APPEND_TIME, _LOG_APPEND_TIME | int(Attributes.TRANSACTIONAL | Attributes.CONTROL))

NO_ROOM = -1  # in place of a position: the output is too small


def copy_record(data: Array, read: Array, row: int, delta: int, out: Array, at: int) -> int:
    """Write a record of magic 2 with another timestamp delta; returns the position after it, or `NO_ROOM`.

    The fields after the timestamp stay unchanged.
    """
    start = read[row, RECORD_START]
    if delta == read[row, DELTA]:
        size = read[row, RECORD_END] - start
        if at + size > len(out):
            return NO_ROOM
        copy(out, at, data, start, size)
        return int(at + size)
    rest = read[row, REST]
    size = read[row, RECORD_END] - rest
    body = 1 + varint_size(delta) + size
    if at + varint_size(body) + body > len(out):
        return NO_ROOM
    at = write_varint(out, at, body)
    out[at] = 0
    at = write_varint(out, at + 1, delta)
    copy(out, at, data, rest, size)
    return int(at + size)


def convert_message(data: Array, read: Array, row: int, delta: int, base_offset: int, out: Array, at: int) -> int:
    """Write an old message as a record of magic 2; returns the position after it, or `NO_ROOM`."""
    key_length = read[row, KEY_LENGTH]
    value_length = read[row, VALUE_LENGTH]
    offset_delta = read[row, OFFSET] - base_offset
    body = record_body_size(delta, offset_delta, key_length, value_length, 0, 0)
    if at + varint_size(body) + body > len(out):
        return NO_ROOM
    at = write_record_start(out, at, body, delta, offset_delta)
    at = write_nullable(out, at, data, read[row, KEY_AT], key_length)
    at = write_nullable(out, at, data, read[row, REST], value_length)
    out[at] = 0
    return at + 1


def copy_batch(plain: Array, table: Array, batch: int, out: Array, at: int) -> int:
    """Write a batch unchanged; returns the position after it, or `NO_ROOM`."""
    size = table[batch, SIZE]
    if at + size > len(out):
        return NO_ROOM
    copy(out, at, plain, table[batch, POSITION], size)
    return int(at + size)


def write_kept(
    tables: Tables,
    table: Array,
    batch: int,
    base_offset: int,
    last_offset: int,
    base_timestamp: int,
    max_timestamp: int,
    horizon: int,
    count: int,
    out: Array,
    start: int,
    end: int,
) -> int:
    """Write the header of the compacted batch in `out[start:end]`; returns `end`, or `NO_ROOM`.

    If there is a codec, the caller still has to compress the records, and to write the length and the checksum. An
    empty batch has no codec. A negative `horizon` means that there is none.
    """
    if start + HEADER_SIZE > len(out):
        return NO_ROOM
    attributes = table[batch, ATTRIBUTES] & _FLAGS[table[batch, MAGIC]]
    if count:
        attributes |= table[batch, ATTRIBUTES] & _CODEC
    if horizon >= 0:
        attributes |= _DELETE_HORIZON
    write_i64(out, start, base_offset)
    write_u32(out, start + LENGTH_AT, end - start - LOG_OVERHEAD)
    write_u32(out, start + LEADER_EPOCH_AT, table[batch, LEADER_EPOCH])
    out[start + MAGIC_AT] = 2
    write_i16(out, start + ATTRIBUTES_AT, attributes)
    write_u32(out, start + LAST_OFFSET_DELTA_AT, last_offset - base_offset)
    write_i64(out, start + BASE_TIMESTAMP_AT, base_timestamp)
    write_i64(out, start + MAX_TIMESTAMP_AT, max_timestamp)
    write_i64(out, start + PRODUCER_ID_AT, table[batch, PRODUCER_ID])
    write_i16(out, start + PRODUCER_EPOCH_AT, table[batch, PRODUCER_EPOCH])
    write_u32(out, start + BASE_SEQUENCE_AT, table[batch, BASE_SEQUENCE])
    write_u32(out, start + COUNT_AT, count)
    if attributes & _CODEC == 0:
        write_u32(out, start + CRC_AT, crc32c_of(tables, out, start + ATTRIBUTES_AT, end, 0))
    return end


def write_empty(tables: Tables, table: Array, batch: int, out: Array, at: int) -> int:
    """Write the header of a batch that has no records left; returns the position after it, or `NO_ROOM`."""
    last_offset = table[batch, LAST_OFFSET]
    base_offset = table[batch, BASE_OFFSET] if table[batch, MAGIC] == 2 else last_offset
    max_timestamp = table[batch, MAX_TIMESTAMP]
    end = at + HEADER_SIZE
    return write_kept(tables, table, batch, base_offset, last_offset, NO_TIMESTAMP, max_timestamp, -1, 0, out, at, end)

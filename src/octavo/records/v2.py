"""Read and write batches of magic 2 and their records (Kafka's `DefaultRecordBatch` and `DefaultRecord`).

The layout is in `layout` and `kernels.record`; this module builds objects on top of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from octavo.errors import FormatError, InvalidInput
from octavo.records.batch import Batch
from octavo.records.checksum import covered_from, crc32c
from octavo.records.compression import decompress
from octavo.records.fields import bytes_of
from octavo.records.kernels import rules
from octavo.records.kernels.machine import wrap64
from octavo.records.kernels.record import (
    MIN_RECORD_SIZE,
    nullable_size,
    record_body_size,
    walk_header,
    walk_record,
    write_nullable,
    write_record_start,
)
from octavo.records.kernels.varint import varint_size, write_varint
from octavo.records.layout import (
    BATCH_HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAX_INT64,
    MAX_SIZE,
    MIN_INT64,
    NO_SEQUENCE,
    Attributes,
    BatchHeader,
    Buffer,
)
from octavo.records.record import Header, Record
from octavo.records.sequence import increment_sequence, record_sequence
from octavo.records.text import read_text, write_text

_CRC_AT: Final = BATCH_HEADER.at("crc")
_CRC_SIZE: Final = 4
_CODEC: Final = int(Attributes.CODEC)
_LOG_APPEND_TIME: Final = int(Attributes.LOG_APPEND_TIME)
_PLAIN: Final = b"\0\0"  # attributes of a record, and how much later than its batch it is
_NO_HEADERS: Final = b"\0"
_VARINTS: Final = 4096  # lengths and offsets whose bytes are kept

HeaderLike = tuple[str, Buffer | None]  # a `Header`, or a tuple like one
_NEW_RECORD: Final = tuple.__new__  # does what Record's constructor does, without a Python call for each record


class BatchV2(Batch):
    """A batch of magic 2."""

    __slots__ = ()

    header: BatchHeader

    def __init__(self, data: memoryview, position: int, max_decompressed: int) -> None:
        self.data = data
        self.position = position
        self.header = BATCH_HEADER.read(data)
        self._max_decompressed = max_decompressed

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        return wrap64(self.header.base_offset + self.header.last_offset_delta)

    @property
    def base_timestamp_ms(self) -> int:
        return self.header.base_timestamp_ms

    @property
    def max_timestamp_ms(self) -> int:
        return self.header.max_timestamp_ms

    @property
    def count(self) -> int:
        return self.header.record_count

    @property
    def leader_epoch(self) -> int:
        return self.header.leader_epoch

    @property
    def producer_id(self) -> int:
        return self.header.producer_id

    @property
    def producer_epoch(self) -> int:
        return self.header.producer_epoch

    @property
    def base_sequence(self) -> int:
        return self.header.base_sequence

    @property
    def last_sequence(self) -> int:
        if self.header.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.header.base_sequence, self.header.last_offset_delta)

    @property
    def is_transactional(self) -> bool:
        return bool(self.header.attributes & Attributes.TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.header.attributes & Attributes.CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.header.base_timestamp_ms if self.header.attributes & Attributes.DELETE_HORIZON else None

    def __iter__(self) -> Iterator[Record]:
        header = self.header
        count = header.record_count
        if count == 0:  # left behind by compaction; like Kafka, do not check whether bytes follow
            return
        if count < 0:
            raise rules.broken(rules.RECORD_COUNT, self.position)
        data = self._records()
        end = len(data)
        if count > end // MIN_RECORD_SIZE:
            raise rules.broken(rules.RECORD_COUNT, self.position)
        at = 0
        base_offset = header.base_offset
        base_timestamp_ms = header.base_timestamp_ms
        base_sequence = header.base_sequence
        append_time_ms = header.max_timestamp_ms if header.attributes & _LOG_APPEND_TIME else None
        sequence = NO_SEQUENCE
        for _ in range(count):
            (
                at,
                timestamp_delta_ms,
                offset_delta,
                key_at,
                key_length,
                value_at,
                value_length,
                headers_at,
                header_count,
            ) = walk_record(data, at, end)
            if at < 0:
                raise self._broken(-at, timestamp_delta_ms)
            offset = base_offset + offset_delta
            timestamp_ms = base_timestamp_ms + timestamp_delta_ms if append_time_ms is None else append_time_ms
            if offset > MAX_INT64 or offset < MIN_INT64 or timestamp_ms > MAX_INT64 or timestamp_ms < MIN_INT64:
                offset, timestamp_ms = wrap64(offset), wrap64(timestamp_ms)
            if base_sequence >= 0:
                sequence = record_sequence(base_sequence, offset_delta)
            yield _NEW_RECORD(
                Record,
                (
                    offset,
                    timestamp_ms,
                    data[key_at : key_at + key_length] if key_length >= 0 else None,
                    data[value_at : value_at + value_length] if value_length >= 0 else None,
                    self._headers(data, headers_at, at, header_count) if header_count else (),
                    sequence,
                ),
            )
        if at != end:
            raise self._broken(rules.BYTES_LEFT, at)

    def _records(self) -> bytes:
        """Return the decompressed records as a copy: slicing keys and values is faster from bytes than from a view."""
        body = self.data[HEADER_SIZE:]
        if not self.header.attributes & _CODEC:
            return bytes(body)
        return bytes(decompress(self.codec, body, limit=self._max_decompressed, position=self.position))

    def _headers(self, data: bytes, at: int, end: int, count: int) -> tuple[Header, ...]:
        headers = []
        start = at
        for _ in range(count):
            at, key_at, key_length, value_at, value_length = walk_header(data, at, end)
            if at < 0:
                raise self._broken(-at, start)
            key = read_text(data[key_at : key_at + key_length])
            headers.append(Header(key, data[value_at : value_at + value_length] if value_length >= 0 else None))
        if at != end:
            raise self._broken(rules.RECORD_NOT_FILLED, start)
        return tuple(headers)

    def _broken(self, rule: int, at: int) -> FormatError:
        """Return the error for a rule broken at `at` of the records.

        For compressed records, its position is that of the batch.
        """
        return rules.broken(rule, self.position if self.is_compressed else self.position + BATCH_HEADER.size + at)


def write_headers(headers: Sequence[HeaderLike]) -> bytes:
    """Encode the headers of a record, without their count.

    Raises `InvalidInput` for a key that is not text or a value that is not bytes.
    """
    out = bytearray()
    for key, value in headers:
        if not isinstance(key, str):
            raise InvalidInput(f"a header's key is a string, not {key!r}")
        for data in (write_text(key), bytes_of("a header's value", value)):
            length = _length(data)
            at = len(out)
            out += bytes(nullable_size(length))
            write_nullable(out, at, data, 0, length)
    return bytes(out)


def record_size(
    timestamp_delta_ms: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    header_count: int,
    headers_size: int,
) -> int:
    """Return the number of bytes that `write_record` writes."""
    body_size = record_body_size(
        timestamp_delta_ms, offset_delta, _length(key), _length(value), header_count, headers_size
    )
    return varint_size(body_size) + body_size


def write_record(
    out: bytearray,
    timestamp_delta_ms: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    header_count: int,
    headers: bytes,
) -> None:
    """Append a record to `out`; `headers` are bytes from `write_headers`."""
    key_length, value_length = _length(key), _length(value)
    body_size = record_body_size(timestamp_delta_ms, offset_delta, key_length, value_length, header_count, len(headers))
    at = len(out)
    out += bytes(varint_size(body_size) + body_size)
    at = write_record_start(out, at, body_size, timestamp_delta_ms, offset_delta)
    at = write_nullable(out, at, key, 0, key_length)
    at = write_nullable(out, at, value, 0, value_length)
    at = write_varint(out, at, header_count)
    out[at:] = headers


def write_plain_record(offset_delta: int, key: bytes, value: bytes | None) -> bytes:
    """Return a record without headers that has the timestamp of its batch, several times as fast as `write_record`."""
    start = _PLAIN + _varint(offset_delta) + _varint(len(key)) + key + _varint(_length(value))
    inside = start + _NO_HEADERS if value is None else start + value + _NO_HEADERS
    return _varint(len(inside)) + inside


@lru_cache(_VARINTS)
def _varint(number: int) -> bytes:
    out = bytearray(varint_size(number))
    write_varint(out, 0, number)
    return bytes(out)


def write_batch(header: BatchHeader, records: Buffer) -> bytes:
    """Build a batch from `header` and `records`, and set its length and checksum. Raises `InvalidInput` above 2 GiB."""
    size = BATCH_HEADER.size + len(records)
    if size > MAX_SIZE:
        raise InvalidInput(f"a batch of {size:,} bytes is larger than {MAX_SIZE:,}")
    start = BATCH_HEADER.write(header._replace(length=size - LOG_OVERHEAD))
    crc = crc32c(records, crc32c(start[covered_from(header.magic) :]))
    return b"".join((start[:_CRC_AT], crc.to_bytes(_CRC_SIZE), start[_CRC_AT + _CRC_SIZE :], records))


def _length(data: Buffer | None) -> int:
    """Return the stored length of a key or value: -1 for null."""
    return -1 if data is None else len(data)

"""Records of a batch of magic 2 as Kafka's `DefaultRecordBatch` reads them, with its exceptions.

Records that are not compressed are read one by one, so that those before a damaged one are printed. Compressed ones are
all read before the first is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from octavo.errors import FormatError
from octavo.inspect.kafka_text.java_bytes import Cursor, check_heap, int_at
from octavo.inspect.kafka_text.streams import Stream, checked_codec, open_stream
from octavo.inspect.kafka_text.throwables import INVALID_RECORD, KAFKA, UNDERFLOW, Throwable
from octavo.records.compression import decompress
from octavo.records.kernels.machine import wrap64
from octavo.records.layout import BATCH_HEADER, Attributes, BatchHeader
from octavo.records.sequence import record_sequence
from octavo.records.text import read_text

_CODEC: Final = int(Attributes.CODEC)  # plain numbers: flags of an enum take longer than everything else here
_LOG_APPEND_TIME: Final = int(Attributes.LOG_APPEND_TIME)
_PREMATURE: Final = "Incorrect declared batch size, premature EOF reached"
_POINTER: Final = 4  # bytes of a reference in Java, which allocates a list for all records
_COUNT_AT: Final = BATCH_HEADER.at("record_count")


class TextRecord(NamedTuple):
    """What is printed of a record."""

    offset: int
    timestamp_ms: int
    sequence: int
    key: bytes | None
    value: bytes | None
    header_keys: list[str]


def read_records(data: memoryview) -> Iterator[TextRecord]:
    """Yield the records of a whole batch. Raises what Kafka throws."""
    if int_at(data, _COUNT_AT) == 0:
        return
    header = BATCH_HEADER.read(data)
    if not checked_codec(header.attributes & _CODEC):
        yield from _uncompressed(header, data)
        return
    yield from _compressed(header, data[BATCH_HEADER.size :])


def _uncompressed(header: BatchHeader, data: memoryview) -> Iterator[TextRecord]:
    count = _count(header)
    cursor = Cursor(data, BATCH_HEADER.size)
    for number in range(count):
        try:
            size = cursor.varint()
        except Throwable as error:
            if error.name != UNDERFLOW:
                raise
            raise Throwable(INVALID_RECORD, _PREMATURE) from None
        record = _read_body(header, cursor, size)
        if number == count - 1 and cursor.remaining:
            raise Throwable(INVALID_RECORD, "Incorrect declared batch size, records still remaining in file")
        yield record


def _compressed(header: BatchHeader, body: memoryview) -> Iterator[TextRecord]:
    """Yield the records after all of them were read once: Kafka prints none of a batch that is damaged anywhere."""
    for _ in _from_stream(header, body):
        pass
    yield from _from_stream(header, body)


def _from_stream(header: BatchHeader, body: memoryview) -> Iterator[TextRecord]:
    records = _decompressed(header, body)
    codec = header.attributes & _CODEC
    # Streams that the fast libraries refuse are decompressed as Java does it.
    is_sound = records is not None
    stream = Stream.of(records or b"") if is_sound else open_stream(codec, bytes(body), header.magic, BATCH_HEADER.size)
    count = _count(header)
    check_heap(count * _POINTER)
    for number in range(count):
        yield _read_from_stream(header, stream, number == count - 1)


def sound_records(header: BatchHeader, data: memoryview) -> memoryview | None:
    """Return the bytes of all records of a batch, decompressed; None if it has none or they do not decompress."""
    if header.record_count <= 0:
        return None
    body = data[BATCH_HEADER.size :]
    return _decompressed(header, body) if header.attributes & _CODEC else body


def _decompressed(header: BatchHeader, body: memoryview) -> memoryview | None:
    try:
        return decompress(header.attributes & _CODEC, body)
    except FormatError:
        return None


def _read_from_stream(header: BatchHeader, stream: Stream, is_last: bool) -> TextRecord:
    try:
        size = stream.varint()
        body = stream.record_body(size)
    except Throwable as error:
        if error.is_illegal_argument:
            raise Throwable(INVALID_RECORD, _PREMATURE, error) from None
        if error.is_io:
            raise Throwable(KAFKA, "Failed to decompress record stream", error) from None
        raise
    if len(body) != size:
        raise Throwable(
            INVALID_RECORD,
            f"Invalid record size: expected {size} bytes in record payload, but the record payload reached EOF.",
        )
    record = _read_body(header, Cursor(body), size)
    if is_last:
        try:
            is_at_end = stream.read_byte() is None
        except Throwable as error:
            if not error.is_io:
                raise
            message = "Error checking for remaining bytes after reading batch"
            raise Throwable(KAFKA, message, error) from None
        if not is_at_end:
            raise Throwable(INVALID_RECORD, "Incorrect declared batch size, records still remaining in file")
    return record


def _read_body(header: BatchHeader, cursor: Cursor, size: int) -> TextRecord:
    if cursor.remaining < size:
        raise Throwable(
            INVALID_RECORD,
            f"Invalid record size: expected {size} bytes in record payload, but instead the buffer has only "
            f"{cursor.remaining} remaining bytes.",
        )
    start = cursor.at
    try:
        record = _read_fields(header, cursor)
    except Throwable as error:
        if error.name != UNDERFLOW and not error.is_illegal_argument:
            raise
        raise Throwable(INVALID_RECORD, "Found invalid record structure", error) from None
    if cursor.at - start != size:
        raise Throwable(
            INVALID_RECORD,
            f"Invalid record size: expected to read {size} bytes in record payload, but instead read "
            f"{cursor.at - start}",
        )
    return record


def _read_fields(header: BatchHeader, cursor: Cursor) -> TextRecord:
    cursor.byte()  # attributes, of which none is used
    timestamp_ms = wrap64(header.base_timestamp_ms + cursor.varlong())
    if header.attributes & _LOG_APPEND_TIME:
        timestamp_ms = header.max_timestamp_ms
    offset_delta = cursor.varint()
    key = cursor.sized(cursor.varint())
    value = cursor.sized(cursor.varint())
    header_count = cursor.varint()
    if header_count < 0:
        raise Throwable(INVALID_RECORD, f"Found invalid number of record headers {header_count}")
    if header_count > cursor.remaining:
        raise Throwable(
            INVALID_RECORD,
            f"Found invalid number of record headers. {header_count} is larger than the remaining size of the buffer",
        )
    keys = []
    for _ in range(header_count):
        key_size = cursor.varint()
        if key_size < 0:
            raise Throwable(INVALID_RECORD, f"Invalid negative header key size {key_size}")
        keys.append(read_text(cursor.sized(key_size) or b""))
        cursor.sized(cursor.varint())
    return TextRecord(
        wrap64(header.base_offset + offset_delta),
        timestamp_ms,
        record_sequence(header.base_sequence, offset_delta),
        key,
        value,
        keys,
    )


def _count(header: BatchHeader) -> int:
    if header.record_count < 0:
        raise Throwable(
            INVALID_RECORD, f"Found invalid record count {header.record_count} in magic v{header.magic} batch"
        )
    return header.record_count

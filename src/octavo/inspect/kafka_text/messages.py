"""Messages of magic 0 and 1 as Kafka's `AbstractLegacyRecordBatch` reads them, with its exceptions."""

from __future__ import annotations

from typing import Final

from octavo.errors import FormatError
from octavo.inspect.kafka_text.java_bytes import check_heap, int_at, long_at, wrap32
from octavo.inspect.kafka_text.streams import Stream, checked_codec, open_stream
from octavo.inspect.kafka_text.throwables import (
    CORRUPT_RECORD,
    ILLEGAL_ARGUMENT,
    INVALID_RECORD,
    KAFKA,
    Throwable,
)
from octavo.records.checksum import crc32
from octavo.records.compression import decompress
from octavo.records.kernels.machine import wrap64
from octavo.records.layout import LOG_OVERHEAD, NO_TIMESTAMP, Buffer, Codec

_MAGIC_AT: Final = 4
_ATTRIBUTES_AT: Final = 5
_TIMESTAMP_AT: Final = 6
_SMALLEST: Final = 14
_CODEC: Final = 7
_LOG_APPEND_TIME: Final = 8


class TextMessage:
    """A message without its offset and size, and the offset that it turned out to have."""

    def __init__(self, data: Buffer, offset: int, append_time_ms: int | None = None) -> None:
        self.data: Final = data
        self.offset: Final = offset
        # The timestamp of the wrapper, which counts for messages in it if it was set by the broker.
        self._append_time_ms = append_time_ms

    @property
    def magic(self) -> int:
        return _signed(self.data[_MAGIC_AT])

    @property
    def codec(self) -> int:
        """The codec. Raises what Kafka throws if there is no such codec."""
        return checked_codec(self.data[_ATTRIBUTES_AT] & _CODEC)

    @property
    def timestamp_type(self) -> str:
        """The type of the timestamp, under Kafka's name."""
        if self.magic == 0:
            return "NoTimestampType"
        return "LogAppendTime" if self.data[_ATTRIBUTES_AT] & _LOG_APPEND_TIME else "CreateTime"

    @property
    def timestamp_ms(self) -> int:
        if self.magic == 0:
            return NO_TIMESTAMP
        return long_at(self.data, _TIMESTAMP_AT) if self._append_time_ms is None else self._append_time_ms

    @property
    def crc(self) -> int:
        return int_at(self.data, 0) & 0xFFFFFFFF

    @property
    def is_valid(self) -> bool:
        return self.crc == crc32(self.data[_MAGIC_AT:])

    @property
    def key_size(self) -> int:
        return int_at(self.data, self._key_size_at)

    @property
    def value_size(self) -> int:
        return int_at(self.data, self._value_size_at)

    @property
    def key(self) -> bytes | None:
        return _sized(self.data, self._key_size_at)

    @property
    def value(self) -> bytes | None:
        return _sized(self.data, self._value_size_at)

    @property
    def value_at(self) -> int:
        """Where the value begins."""
        return self._value_size_at + 4

    @property
    def _key_size_at(self) -> int:
        return 6 if self.magic == 0 else 14

    @property
    def _value_size_at(self) -> int:
        return wrap32(self._key_size_at + 4 + max(0, self.key_size))


def read_messages(outer: TextMessage) -> list[TextMessage]:
    """Return the message, or those that are in it if it is a wrapper. Raises what Kafka throws."""
    if not outer.codec:
        return [outer]
    if outer.magic not in (0, 1):
        raise Throwable(INVALID_RECORD, f"Invalid wrapper magic found in legacy deep record iterator {outer.magic}")
    if outer.codec == Codec.ZSTD:
        raise Throwable(
            INVALID_RECORD, f"Invalid wrapper compressionType found in legacy deep record iterator {outer.magic}"
        )
    value = outer.value
    if value is None:
        raise Throwable(INVALID_RECORD, f"Found invalid compressed record set with null value (magic = {outer.magic})")
    inner = _inner(outer, _inflated(outer, value))
    if not inner:
        raise Throwable(INVALID_RECORD, "Found invalid compressed record set with no inner records")
    to_add = _to_add(outer, inner[-1].offset)
    return [TextMessage(each.data, wrap64(each.offset + to_add), each._append_time_ms) for each in inner]


def check_inner(message: TextMessage) -> None:
    """Check a message of a wrapper just before it is printed."""
    if message.codec:
        raise Throwable(INVALID_RECORD, "Inner messages must not be compressed")


def _inner(outer: TextMessage, stream: Stream) -> list[TextMessage]:
    append_time_ms = outer.timestamp_ms if outer.timestamp_type == "LogAppendTime" else None
    found: list[TextMessage] = []
    try:
        while True:
            head = stream.read(LOG_OVERHEAD)
            if len(head) < LOG_OVERHEAD:
                return found
            size = int_at(head, 8)
            if size < _SMALLEST:
                raise Throwable(CORRUPT_RECORD, f"Record size is less than the minimum record overhead ({_SMALLEST})")
            check_heap(size)
            data = stream.read(size)
            if len(data) < size:
                return found
            own_magic = _signed(data[_MAGIC_AT])
            found.append(TextMessage(data, long_at(head, 0), append_time_ms if own_magic == 1 else None))
    except Throwable as error:
        if not error.is_io:
            raise
        raise Throwable(KAFKA, None, error) from None


def _inflated(outer: TextMessage, value: bytes) -> Stream:
    try:
        return Stream.of(decompress(outer.codec, value, magic=outer.magic))
    except FormatError:
        return open_stream(outer.codec, value, outer.magic, LOG_OVERHEAD + outer.value_at)


def _to_add(outer: TextMessage, last: int) -> int:
    """Return what is added to the offsets of inner messages, which are relative from magic 1 on."""
    if outer.magic == 0 or outer.offset == 0:  # some clients left the outer offset at 0
        return 0
    if outer.offset < last:
        raise Throwable(
            INVALID_RECORD,
            f"Found invalid wrapper offset in compressed v1 message set, wrapper offset '{outer.offset}' is less than "
            f"the last inner message offset '{last}' and it is not zero.",
        )
    return outer.offset - last


def _sized(data: Buffer, position: int) -> bytes | None:
    size = int_at(data, position)
    if size < 0:
        return None
    room = len(data) - position - 4
    if size > room:
        raise Throwable(ILLEGAL_ARGUMENT, f"newLimit > capacity: ({size} > {room})")
    return bytes(data[position + 4 : position + 4 + size])


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte

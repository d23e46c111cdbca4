"""Read and write messages of magic 0 and 1: single messages, and wrappers that hold compressed messages.

Kafka's classes are `AbstractLegacyRecordBatch` and `LegacyRecord`. The layout is in `layout` and `kernels.message`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from octavo.errors import InvalidInput
from octavo.records.batch import Batch
from octavo.records.checksum import covered_from, crc32, stored_crc_at
from octavo.records.compression import decompress
from octavo.records.kernels import rules
from octavo.records.kernels.machine import wrap64
from octavo.records.kernels.message import WalkedMessage, measure_wrapper, walk_message
from octavo.records.layout import (
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_SIZE,
    MESSAGE_V0,
    MESSAGE_V1,
    NO_TIMESTAMP,
    Buffer,
    MessageV0,
    MessageV1,
    TimestampType,
)
from octavo.records.record import Record

_LENGTH: Final = struct.Struct(">i")


class Message(Batch):
    """A message of magic 0 or 1. If its attributes name a codec, its value holds further messages."""

    __slots__ = ("_base_offset",)

    header: MessageV1  # in magic 0 ignore the timestamp: its bytes are the lengths of key and value

    def __init__(self, data: memoryview, position: int, max_decompressed: int) -> None:
        self.data = data
        self.position = position
        self.header = MESSAGE_V1.read(data)
        self._max_decompressed = max_decompressed
        self._base_offset: int | None = None  # set when the records are read

    @property
    def base_offset(self) -> int:
        if not self.is_compressed:
            return self.header.offset
        if self._base_offset is None:
            self._inner()
            assert self._base_offset is not None
        return self._base_offset

    @property
    def last_offset(self) -> int:
        return self.header.offset

    @property
    def base_timestamp_ms(self) -> int:
        return self.max_timestamp_ms

    @property
    def max_timestamp_ms(self) -> int:
        return self.header.timestamp_ms if self.header.magic else NO_TIMESTAMP

    def __iter__(self) -> Iterator[Record]:
        if not self.is_compressed:
            _, offset, timestamp_ms, key_at, key_length, value_at, value_length = self._outer()
            yield _record(self.data, offset, timestamp_ms, key_at, key_length, value_at, value_length)
            return
        data, count, to_add = self._inner()
        end = len(data)
        append_time = self.timestamp_type == TimestampType.LOG_APPEND_TIME
        next_at = 0
        for _ in range(count):
            at = next_at
            next_at, offset, timestamp_ms, key_at, key_length, value_at, value_length = walk_message(data, at, end)
            if append_time and data[at + MAGIC_AT] != 0:
                timestamp_ms = self.header.timestamp_ms
            if to_add:
                offset = wrap64(offset + to_add)
            yield _record(data, offset, timestamp_ms, key_at, key_length, value_at, value_length)

    def _outer(self) -> WalkedMessage:
        walked = walk_message(self.data, 0, len(self.data))
        if walked[0] < 0:
            raise rules.broken(-walked[0], self.position)
        return walked

    def _inner(self) -> tuple[bytes, int, int]:
        """Return the messages in the wrapper: their bytes, their count, and the number to add to their offsets.

        Kafka reads all of them before it returns the first, and so do we: the offsets follow from the last one.
        """
        *_, value_at, value_length = self._outer()
        if value_length < 0:
            raise rules.broken(rules.WRAPPER_NULL, self.position)
        stream = self.data[value_at : value_at + value_length]
        limit = self._max_decompressed
        data = bytes(decompress(self.codec, stream, limit=limit, magic=self.magic, position=self.position))
        count, to_add, rule = measure_wrapper(data, 0, len(data), self.magic, self.header.offset)
        if rule != rules.OK:
            raise rules.broken(rule, self.position)
        _, first_offset, *_ = walk_message(data, 0, len(data))
        self._base_offset = wrap64(first_offset + to_add)
        return data, count, to_add


def _record(
    data: bytes | memoryview,
    offset: int,
    timestamp_ms: int,
    key_at: int,
    key_length: int,
    value_at: int,
    value_length: int,
) -> Record:
    return Record(
        offset,
        timestamp_ms,
        bytes(data[key_at : key_at + key_length]) if key_length >= 0 else None,
        bytes(data[value_at : value_at + value_length]) if value_length >= 0 else None,
    )


def message_size(magic: int, key: Buffer | None, value: Buffer | None) -> int:
    """Return the number of bytes that `write_message` returns."""
    fixed = (MESSAGE_V1.size if magic else MESSAGE_V0.size) + 2 * _LENGTH.size
    return fixed + len(key or b"") + len(value or b"")


def write_message(
    offset: int, magic: int, attributes: int, timestamp_ms: int, key: Buffer | None, value: Buffer | None
) -> bytes:
    """Build one message of magic 0 (without the timestamp) or 1; raises `InvalidInput` above 2 GiB."""
    size = message_size(magic, key, value)
    if size > MAX_SIZE:
        raise InvalidInput(f"a message of {size:,} bytes is larger than {MAX_SIZE:,}")
    length = size - LOG_OVERHEAD
    if magic == 0:
        header = MESSAGE_V0.write(MessageV0(offset, length, 0, magic, attributes))
    else:
        header = MESSAGE_V1.write(MessageV1(offset, length, 0, magic, attributes, timestamp_ms))
    rest = b"".join((_nullable(key), _nullable(value)))
    crc = crc32(rest, crc32(header[covered_from(magic) :]))
    crc_at = stored_crc_at(magic)
    return b"".join((header[:crc_at], crc.to_bytes(4, "big"), header[crc_at + 4 :], rest))


def _nullable(data: Buffer | None) -> bytes:
    return _LENGTH.pack(-1) if data is None else _LENGTH.pack(len(data)) + data

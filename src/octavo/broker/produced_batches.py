"""What the head of produced records tells before a log has checked them: sizes, the codec, whose transaction."""

from __future__ import annotations

import struct
from typing import Final

from octavo.broker.refused import Refused
from octavo.coordinator.shard import Producer
from octavo.errors import ErrorCode
from octavo.records import Codec

_PRODUCER_ID_AT: Final = 43
_ATTRIBUTES_AT: Final = 21
_TRANSACTIONAL: Final = 0x10
_CODEC: Final = 0x07
ZSTD_FROM: Final = 7  # the first version in which batches may be compressed with zstd
_LENGTH_AT: Final = 8
_LENGTH: Final = struct.Struct(">i")
_PRODUCER: Final = struct.Struct(">qhi")  # id, epoch and first sequence number
_OVERHEAD: Final = _LENGTH_AT + _LENGTH.size
_MAGIC_AT: Final = 16
_MAGIC: Final = 2
_SMALLEST: Final = 14  # bytes of the smallest message there is, after its length


def is_usual(records: memoryview | None) -> bool:
    """Return whether there is one batch outside of transactions, which nearly all requests have."""
    if records is None or len(records) <= _ATTRIBUTES_AT + 1 or records[_MAGIC_AT] != _MAGIC:
        return False
    return _LENGTH.unpack_from(records, _LENGTH_AT)[0] == len(records) - _OVERHEAD and not is_transactional(records)


def has_identity(records: memoryview | None) -> bool:
    """Return whether the first batch is part of a transaction, and of which producer's."""
    if records is None or len(records) < _PRODUCER_ID_AT + _PRODUCER.size:
        return False
    return is_transactional(records) and records[_PRODUCER_ID_AT] < 0x80


def identity(records: memoryview) -> tuple[Producer, int]:
    """Return the producer of the first batch, and its first sequence number."""
    producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_ID_AT)
    return Producer(producer_id, epoch), sequence


def _batch_size(records: memoryview, begin: int) -> int:
    """Return the size of the batch that begins there; 0 if there is no whole one. Raises `Refused` if it is none."""
    left = len(records) - begin
    if left < _OVERHEAD:
        return 0
    (length,) = _LENGTH.unpack_from(records, begin + _LENGTH_AT)
    if length < _SMALLEST:
        why = f"Record size {length} is less than the minimum record overhead ({_SMALLEST})"
        raise Refused(ErrorCode.CORRUPT_MESSAGE, why)
    if left <= _MAGIC_AT:
        return 0
    if records[begin + _MAGIC_AT] > _MAGIC:
        magic = (records[begin + _MAGIC_AT] ^ 0x80) - 0x80
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    size: int = _OVERHEAD + length
    return size if size <= left else 0


def is_transactional(records: memoryview | None) -> bool:
    """Return whether the first batch is part of a transaction. Raises `Refused` if it is no batch."""
    if records is None or not _batch_size(records, 0):
        return False
    return records[_MAGIC_AT] == _MAGIC and bool(records[_ATTRIBUTES_AT + 1] & _TRANSACTIONAL)


def batch_problem(version: int, records: memoryview | None) -> int:
    """Return the error of records that are not one whole batch, or 0. Raises `Refused` if they are not even that."""
    size = 0 if records is None else _batch_size(records, 0)
    if records is None or not size or records[_MAGIC_AT] != _MAGIC:
        return ErrorCode.INVALID_RECORD
    if version < ZSTD_FROM:
        codec = records[_ATTRIBUTES_AT + 1] & _CODEC
        if codec > max(Codec):
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec}")
        if codec == Codec.ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.INVALID_RECORD if _batch_size(records, size) else 0

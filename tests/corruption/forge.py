"""Write batches that say whatever a test wants them to say, with the checksum of what they say.

Knows the layouts from `octavo.records.layout` and nothing else of Octavo's writers, which refuse to lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from octavo.records.checksum import covered_from, crc32, crc32c, stored_crc_at
from octavo.records.layout import (
    BATCH_HEADER,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_V0,
    MESSAGE_V1,
    BatchHeader,
    MessageV0,
    MessageV1,
)

UNENDING: Final = b"\xff" * 10  # no varint has ended after so many bytes

Number = int | bytes  # as bytes: the encoding itself
Field = bytes | None


def varint(number: Number, bits: int = 64) -> bytes:
    """The zig-zag varint of `number`; bytes are taken for one already."""
    if isinstance(number, bytes):
        return number
    raw = (number << 1 ^ number >> bits - 1) & (1 << bits) - 1
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def padded_varint(number: int, size: int) -> bytes:
    """The same in `size` bytes, which is more than it takes."""
    short = varint(number)
    assert len(short) < size
    return short[:-1] + bytes((short[-1] | 0x80,)) + b"\x80" * (size - len(short) - 1) + b"\0"


def _sized(data: Field, length: Number | None) -> bytes:
    if length is None:
        length = -1 if data is None else len(data)
    return varint(length) + (data or b"")


def header(
    key: bytes = b"h", value: Field = b"v", *, key_length: Number | None = None, value_length: Number | None = None
) -> bytes:
    return _sized(key, key_length) + _sized(value, value_length)


def record(
    key: Field = b"k",
    value: Field = b"v",
    headers: Sequence[bytes] = (),
    *,
    length: Number | None = None,
    timestamp_delta: Number = 0,
    offset_delta: Number = 0,
    key_length: Number | None = None,
    value_length: Number | None = None,
    header_count: Number | None = None,
) -> bytes:
    """A record of magic 2, each of whose numbers may be anything."""
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta)
    body += _sized(key, key_length) + _sized(value, value_length)
    body += varint(len(headers) if header_count is None else header_count) + b"".join(headers)
    return varint(len(body) if length is None else length) + body


def batch(records: bytes, *, count: int, **fields: Any) -> bytes:
    """A batch of magic 2 around `records`, compressed or not; `fields` are the header's."""
    sound = {
        "base_offset": 1000,
        "length": BATCH_HEADER.size - LOG_OVERHEAD + len(records),
        "leader_epoch": -1,
        "magic": 2,
        "crc": 0,
        "attributes": 0,
        "last_offset_delta": max(count - 1, 0) & 0x7FFFFFFF,
        "base_timestamp_ms": 1_700_000_000_000,
        "max_timestamp_ms": 1_700_000_000_000,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": count,
    }
    return sealed(BATCH_HEADER.write(BatchHeader(**{**sound, **fields})) + records)


def message(
    magic: int,
    key: Field = b"k",
    value: Field = b"v",
    *,
    offset: int = 1000,
    attributes: int = 0,
    timestamp_ms: int = 1_700_000_000_000,
    key_length: int | None = None,
    value_length: int | None = None,
    length: int | None = None,
    behind: bytes = b"",
) -> bytes:
    """A message of magic 0 or 1, each of whose numbers may be anything; a wrapper where `attributes` name a codec."""
    body = b""
    for data, given in ((key, key_length), (value, value_length)):
        size = given if given is not None else -1 if data is None else len(data)
        body += size.to_bytes(4, "big", signed=True) + (data or b"")
    body += behind
    layout_size = (MESSAGE_V1 if magic == 1 else MESSAGE_V0).size
    if length is None:
        length = layout_size - LOG_OVERHEAD + len(body)
    if magic == 1:
        head = MESSAGE_V1.write(MessageV1(offset, length, 0, magic, attributes, timestamp_ms))
    else:
        head = MESSAGE_V0.write(MessageV0(offset, length, 0, magic, attributes))
    return sealed(head + body)


def sealed(entry: bytes) -> bytes:
    """`entry`, a batch or message from its first byte to its last, with the checksum of its bytes."""
    magic = entry[MAGIC_AT]
    covered = memoryview(entry)[covered_from(magic) :]
    crc = crc32c(covered) if magic == 2 else crc32(covered)
    at = stored_crc_at(magic)
    return entry[:at] + crc.to_bytes(4, "big") + entry[at + 4 :]

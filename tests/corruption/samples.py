"""Sound batches of every magic, codec and kind, one each and small, because every byte of them gets damaged."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

import cramjam
import lz4.frame
import zstandard

from octavo.records import BatchBuilder, Codec, TimestampType, empty_batch
from tests.corruption import forge

_NOW: Final = 1_700_000_000_000

# Nulls and empties apart, something for compressors to refer back to, and a length that takes two bytes.
_RECORDS: Final = (
    (b"k1", b"value value value", 0),
    (None, b"", 5),
    (b"", None, -3),
    (b"k2", b"value value " * 6, 5),
)
_HEADERS: Final[tuple[list[tuple[str, bytes | None]], ...]] = (
    [],
    [("", None)],
    [("h", b""), ("h", b"twice")],
    [("key \N{GREEK SMALL LETTER KAPPA}", b"\x00\xff")],
)
# A transaction's end, of offset 5, from the fact sheet.
_COMMIT: Final = bytes.fromhex(
    "0000000000000005000000420000000202ad320ccb0030000000000000018bcfe568000000018bcfe5680000000000000003e80003ffffffff"
    "000000012000000008000000010c00000000000700"
)


def build(magic: int, codec: Codec, *, headers: bool = False, count: int = 4, **arguments: Any) -> bytes:
    """A batch of `count` of the records; of old magics several messages, unless there is a codec."""
    builder = BatchBuilder(magic, codec=codec, base_offset=arguments.pop("base_offset", 1000), **arguments)
    for index, (key, value, delay_ms) in enumerate(_RECORDS[:count]):
        given = _HEADERS[index] if headers else []
        offset = builder.next_offset + (index == 2)  # a gap, as compaction leaves it
        assert builder.append(key, value, timestamp_ms=_NOW + delay_ms, headers=given, offset=offset) is not None
    return builder.build()


def _samples() -> Iterator[tuple[str, bytes]]:
    for magic in (0, 1):
        yield f"magic {magic}", build(magic, Codec.NONE, count=1)
        yield f"magic {magic}, no key and no value", forge.message(magic, None, None)
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            yield f"magic {magic}, {codec.name.lower()}", build(magic, codec)
    append_time: dict[str, Any] = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time_ms": _NOW + 99}
    yield "magic 1, append time", build(1, Codec.NONE, count=1, **append_time)
    yield "magic 1, lz4, append time", build(1, Codec.LZ4, **append_time)
    for codec in Codec:
        yield f"magic 2, {codec.name.lower()}", build(2, codec)
    yield "magic 2, headers", build(2, Codec.NONE, headers=True)
    yield "magic 2, headers, zstd", build(2, Codec.ZSTD, headers=True)
    yield "magic 2, append time", build(2, Codec.NONE, **append_time)
    yield "magic 2, delete horizon", build(2, Codec.NONE, delete_horizon_ms=_NOW + 10**6)
    producer: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 2, "base_sequence": 2**31 - 2}
    yield "magic 2, transactional, leader epoch", build(2, Codec.NONE, transactional=True, leader_epoch=7, **producer)
    yield "magic 2, control", _COMMIT
    yield "magic 2, empty", empty_batch(base_offset=1000, last_offset=1004, max_timestamp_ms=_NOW, **producer)
    yield from _foreign_streams()


def _foreign_streams() -> Iterator[tuple[str, bytes]]:
    """Framings that other writers choose, and that Kafka reads."""
    records = b"".join(forge.record(key=b"k", value=b"value " * 5, offset_delta=index) for index in range(3))
    half = len(records) // 2
    whole_gzip = zlib.compressobj(9, wbits=31)
    named_gzip = b"\x1f\x8b\x08\x1c\0\0\0\0\0\xff" + b"\x02\0xy" + b"name\0" + b"comment\0"
    named_gzip += zlib.compress(records, 9, -15) + zlib.crc32(records).to_bytes(4, "little")
    streams = {
        "gzip, two members": (
            Codec.GZIP,
            zlib.compress(records[:half], wbits=31) + whole_gzip.compress(records[half:]) + whole_gzip.flush(),
        ),
        "gzip, name, comment, extra": (Codec.GZIP, named_gzip + len(records).to_bytes(4, "little")),
        "snappy, raw": (Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(records))),
        "lz4, sizes and checksums": (
            Codec.LZ4,
            lz4.frame.compress(
                records, block_linked=False, store_size=True, block_checksum=True, content_checksum=True
            ),
        ),
        "zstd, no size, checksum": (
            Codec.ZSTD,
            zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(records),
        ),
        "zstd, two frames": (
            Codec.ZSTD,
            zstandard.ZstdCompressor().compress(records[:half])
            + b"\x50\x2a\x4d\x18\x03\0\0\0abc"
            + zstandard.ZstdCompressor().compress(records[half:]),
        ),
    }
    for name, (codec, stream) in streams.items():
        yield f"magic 2, {name}", forge.batch(stream, count=3, attributes=int(codec))


SAMPLES: Final[dict[str, bytes]] = dict(_samples())

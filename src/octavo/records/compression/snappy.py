"""Read and write snappy, in the framing of snappy-java ("xerial") as in Kafka; also read it raw, as from librdkafka.

    stream := header block*                      | raw
    header := 82 'SNAPPY' 00, int32 version, int32 oldest compatible version
    block  := int32 size, raw                    of at most 32 KiB of data when Kafka writes
    raw    := varint size of the data, elements

There is no end mark and no checksum. Streams are read as snappy-java's `SnappyInputStream` reads them: the versions
in the first header do not matter, a header may stand in place of a block, and one to three bytes at the end are
ignored.
"""

from __future__ import annotations

import struct
from typing import Final

import cramjam

from octavo.errors import InvalidInput
from octavo.records.compression.output import Output
from octavo.records.layout import Buffer

STREAM_MAGIC: Final[bytes] = b"\x82SNAPPY\x00"
HEADER: Final = STREAM_MAGIC + struct.pack(">ii", 1, 1)
assert len(HEADER) == 16

BLOCK_SIZE: Final = 32 << 10
_MAX_CHUNK: Final = 512 << 20  # the limit of snappy-java
_HEAD: Final = int.from_bytes(STREAM_MAGIC[:4], "big")

# The densest element copies 64 bytes with three bytes. A block that declares more than this ratio lies.
_MAX_RATIO: Final = 22

_decompress_into = cramjam.snappy.decompress_raw_into


def compress(data: Buffer, level: int | None, magic: int) -> bytes:
    """Compress `data` in xerial framing. Raises `InvalidInput` for any level."""
    if level is not None:
        raise InvalidInput(f"snappy has no levels, {level} was asked for")
    view = memoryview(data)
    pieces: list[Buffer] = [HEADER]
    for at in range(0, len(view), BLOCK_SIZE):
        block = memoryview(cramjam.snappy.compress_raw(view[at : at + BLOCK_SIZE]))
        pieces += (len(block).to_bytes(4, "big"), block)
    return b"".join(pieces)


def decompress(data: memoryview, out: Output, magic: int) -> None:
    """Decompress `data`, in either framing, and append its content to `out`."""
    if len(data) < len(HEADER) or data[: len(STREAM_MAGIC)] != STREAM_MAGIC:
        if not data:
            raise out.cut("an empty snappy stream, which has at least one byte")
        decompress_block(data, out)
        return
    at, end = len(HEADER), len(data)
    while at + 4 <= end:
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if size == _HEAD:
            at = _next_header(data, at, out)
            continue
        if size > _MAX_CHUNK:
            raise out.bad(f"a snappy block of {size:,} bytes, more than {_MAX_CHUNK:,}")
        if size > end - at:
            raise out.cut(f"a snappy block of {size:,} bytes where {end - at:,} are left")
        decompress_block(data[at : at + size], out)
        at += size


def _next_header(data: memoryview, at: int, out: Output) -> int:
    """Check the header whose first four bytes end at `at`, and return its end. Streams may be concatenated."""
    header = bytes(data[at - 4 : at - 4 + len(HEADER)])
    if len(header) < len(HEADER):
        raise out.cut("the snappy stream ends inside a header")
    if not header.startswith(STREAM_MAGIC):
        raise out.bad("a snappy header with a wrong magic number between two blocks")
    version = int.from_bytes(header[8:12], "big", signed=True)
    if version < 1:
        raise out.bad(f"snappy version {version}, which is not compatible with 1")
    return at - 4 + len(HEADER)


def decompress_block(data: memoryview, out: Output) -> None:
    """Decompress one block, and append its content to `out`."""
    size = _declared_size(data, out)
    if size > _MAX_RATIO * len(data):
        raise out.bad(f"a snappy block of {len(data):,} bytes that says it holds {size:,}")
    out.check(size)
    try:
        written = _decompress_into(data, out.room(size))
    except Exception as error:
        raise out.bad(f"a snappy block does not decompress: {error}") from None
    if written != size:
        raise out.bad(f"a snappy block holds {written:,} bytes and says {size:,}")
    out.wrote(size)


def _declared_size(data: memoryview, out: Output) -> int:
    size = 0
    for shift, byte in zip(range(0, 35, 7), data[:5], strict=False):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            if size >= 1 << 31:
                raise out.bad(f"a snappy block that says it holds {size:,} bytes")
            return size
    raise out.bad("a snappy block whose size does not end")

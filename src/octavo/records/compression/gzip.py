"""Read and write gzip (RFC 1952) as Java's `GZIPInputStream` and `GZIPOutputStream` do.

    stream := member*
    member := 1f 8b 08, flags, int32 time, extra flags, system, [the fields that the flags name], deflate,
              int32 CRC-32 of the data, int32 its size modulo 2^32            little-endian

Java verifies a header's own checksum and ignores reserved flags. After a member it reads on only if at least
19 bytes follow that start with a good header. Anything else after a complete member is ignored.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntFlag
from typing import Final

from isal import igzip_lib, isal_zlib

from octavo.errors import BadCompression, InvalidInput
from octavo.records.compression.output import Output
from octavo.records.layout import Buffer

HEADER: Final[bytes] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # as Java writes it since Java 16: no name, no time
DEFAULT_LEVEL: Final = -1

_METHOD: Final = HEADER[:3]
_NO_FLAGS: Final = HEADER[:4]
_TRAILER: Final = struct.Struct("<II")
_MIN_NEXT: Final = 19  # bytes that must follow a member for a next one to be read

# Output is taken in pieces of this size. Smaller pieces cost a second call for the usual batch. Larger ones cost more
# than they save, since the library allocates the memory before it knows how much it needs.
_PIECE: Final = 64 << 10
_FIRST_FEED: Final = 4 << 10


class Flag(IntFlag):
    """The flags of a member's header."""

    HEADER_CHECKSUM = 0x02
    EXTRA = 0x04
    NAME = 0x08
    COMMENT = 0x10


def compress(data: Buffer, level: int | None, magic: int) -> bytes:
    """Compress `data` into one member. Raises `InvalidInput` if there is no such level."""
    if level is None:
        level = DEFAULT_LEVEL
    if level != DEFAULT_LEVEL and not 1 <= level <= 9:
        raise InvalidInput(f"gzip has levels 1 to 9 and -1 for the default, {level} was asked for")
    # ISA-L has levels 0 to 3; 2 is its default. They are several times faster than zlib's, and the result is larger
    # by a few per cent. A caller who asks for more than 3 wants a small result, and gets what Java writes.
    if level <= 3:
        body = isal_zlib.compress(data, 2 if level == DEFAULT_LEVEL else level, -15)
    else:
        body = zlib.compress(data, level, -15)
    size = memoryview(data).nbytes
    return b"".join((HEADER, body, _TRAILER.pack(isal_zlib.crc32(data), size & 0xFFFFFFFF)))


def decompress(data: memoryview, out: Output, magic: int) -> None:
    """Decompress all members of `data`, and append their content to `out`."""
    body = _header_end(data, 0, out)
    if body is None:
        raise out.cut("the gzip stream ends inside its header")
    at = _member(data, body, len(data), out)
    while len(data) - at >= _MIN_NEXT:
        try:
            body = _header_end(data, at, out)
        except BadCompression:
            return
        if body is None:
            return
        at = _member(data, body, _FIRST_FEED, out)


def _member(data: memoryview, at: int, feed: int, out: Output) -> int:
    """Decompress the member's data at `at`, check them against the trailer, and return where the trailer ends.

    Input is passed in growing pieces, beginning with `feed` bytes. The library copies the input that it did not need,
    which would take quadratic time for thousands of small members.
    """
    inflater = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP_NO_HDR)
    start = out.end
    given = data[at : at + feed]
    while True:
        try:
            piece = inflater.decompress(given, min(_PIECE, out.left + 1))
        except Exception as error:
            raise out.bad(f"the gzip stream does not decompress: {error}") from None
        at += len(given)
        out.append(piece)
        if inflater.eof:
            break
        feed *= 2
        given = data[at : at + feed] if inflater.needs_input else data[:0]
        if inflater.needs_input and not given:
            raise out.cut("the gzip stream ends before its data do")
    at -= len(inflater.unused_data)
    if at + _TRAILER.size > len(data):
        raise out.cut("the gzip stream ends inside its trailer")
    crc, size = _TRAILER.unpack_from(data, at)
    if crc != inflater.crc:
        raise out.bad(f"the gzip checksum is {crc:#010x} but the data give {inflater.crc:#010x}")
    if size != (out.end - start) & 0xFFFFFFFF:
        raise out.bad(f"the gzip trailer says {size:,} bytes but there are {out.end - start:,}")
    return at + _TRAILER.size


def _header_end(data: memoryview, at: int, out: Output) -> int | None:
    """Return where the header at `at` ends, or None if the data end first. Raises `BadCompression` for a bad header."""
    end = at + len(HEADER)
    if data[at : at + 4] == _NO_FLAGS and end <= len(data):
        return end
    if data[at : at + 3] != _METHOD[: len(data) - at]:
        raise out.bad(f"a gzip stream starts with {_METHOD.hex()}, not {data[at : at + 3].hex()}")
    if end > len(data):
        return None
    flags = data[at + 3]
    if flags & Flag.EXTRA:
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (Flag.NAME, Flag.COMMENT):
        if flags & flag:
            end = _after_zero(data, end)
    if flags & Flag.HEADER_CHECKSUM:
        computed = zlib.crc32(data[at:end]) & 0xFFFF
        if end + 2 <= len(data) and int.from_bytes(data[end : end + 2], "little") != computed:
            raise out.bad("the gzip header does not match its checksum")
        end += 2
    return end if end <= len(data) else None


def _after_zero(data: memoryview, at: int) -> int:
    """Return the position after the next zero byte, or one beyond the end if there is none."""
    step = 256  # names are short; the data after them are not
    while at < len(data):
        found = bytes(data[at : at + step]).find(0)
        if found >= 0:
            return at + found + 1
        at += step
        step *= 2
    return len(data) + 1

"""Read and write LZ4 frames as Kafka does: one frame with independent blocks.

    frame := 04 22 4d 18, FLG, BD, [int64 content size], HC, block*, int32 0, [int32 content checksum]
    block := int32 size, bytes, [int32 block checksum]        the size's top bit: stored, not compressed

All integers are little-endian here. Frames are read as Kafka's `Lz4BlockInputStream` reads them: block checksums
are verified, the content's size and checksum are not, bytes after the frame are ignored, and linked blocks are
refused.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final

import cramjam
import lz4.frame

from octavo.errors import InvalidInput
from octavo.records.compression.output import Output
from octavo.records.layout import Buffer

FRAME_MAGIC: Final[bytes] = b"\x04\x22\x4d\x18"
DEFAULT_LEVEL: Final = 9  # means the fast compressor, not level 9 of the high compressor
MAX_LEVEL: Final = 17

_LOWEST_HIGH: Final = 3  # lowest level of the library's high compressor; 1 and 2 mean the fast one
_HIGHEST_HIGH: Final = 12  # its highest level; higher numbers do the same, in Java's library as well


class Flag(IntFlag):
    """The flags in the FLG byte."""

    VERSION = 0xC0  # a number, not flags: 1
    INDEPENDENT = 0x20
    BLOCK_CHECKSUM = 0x10
    CONTENT_SIZE = 0x08
    CONTENT_CHECKSUM = 0x04
    RESERVED = 0x03  # bit 0 is a dictionary id in newer specifications; Kafka refuses both


_VERSION_1: Final = 0x40
_MAX_BLOCK: Final = {0x40: 64 << 10, 0x50: 256 << 10, 0x60: 1 << 20, 0x70: 4 << 20}  # by the BD byte

# The header that Kafka writes, and that nearly every frame has.
HEADER: Final = FRAME_MAGIC + b"\x60\x40\x82"
# Kafka's first writers computed the checksum from the magic number on. Readers of their format expect that.
HEADER_OF_MAGIC_0: Final = FRAME_MAGIC + b"\x60\x40\x1a"

_STORED: Final = 1 << 31

_decompress_into = cramjam.lz4.decompress_block_into


def compress(data: Buffer, level: int | None, magic: int) -> bytes:
    """Compress `data` into one frame; at the default level the bytes are the same as Kafka's.

    Raises `InvalidInput` if there is no such level.
    """
    if level is None:
        level = DEFAULT_LEVEL
    if not 1 <= level <= MAX_LEVEL:
        raise InvalidInput(f"lz4 has levels 1 to {MAX_LEVEL}, {level} was asked for")
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level == DEFAULT_LEVEL else min(max(level, _LOWEST_HIGH), _HIGHEST_HIGH),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return frame if magic else HEADER_OF_MAGIC_0 + frame[len(HEADER) :]


def decompress(data: memoryview, out: Output, magic: int) -> None:
    """Decompress the first frame of `data`, and append its content to `out`."""
    if data[: len(HEADER)] == HEADER:
        at, max_block, check_size, tail = len(HEADER), 64 << 10, 0, 0
    else:
        at, max_block, check_size, tail = _read_header(data, out, magic)
    end = len(data)
    while True:
        if at + 4 > end:
            raise out.cut("the lz4 frame ends before its end mark")
        word = int.from_bytes(data[at : at + 4], "little")
        at += 4
        size = word & ~_STORED
        if size == 0:
            break
        if size > max_block:
            raise out.bad(f"an lz4 block of {size:,} bytes where {max_block:,} are the most")
        after = at + size + check_size
        if after > end:
            raise out.cut(f"an lz4 block of {size:,} bytes where {end - at:,} are left")
        if check_size:
            _checked_block(data[at - 4 : after], data[5], out)
        elif word == size:
            _block(data[at:after], max_block, out)
        else:
            out.append(data[at:after])
        at = after
    if at + tail > end:
        raise out.cut("the lz4 frame ends before its checksum")


def _block(data: memoryview, max_block: int, out: Output) -> None:
    # One byte of LZ4 expands to at most 255 bytes. This bound keeps small blocks from reserving 4 MiB.
    room = out.room(min(max_block, 255 * len(data)))
    try:
        written = _decompress_into(data, room, len(room))
    except Exception as error:
        raise out.bad(f"an lz4 block does not decompress: {error}") from None
    out.wrote(written)


def _checked_block(block: memoryview, descriptor: int, out: Output) -> None:
    # Only the library computes the checksum (XXH32), so pass it a frame with just this block.
    header = bytes((_VERSION_1 | Flag.INDEPENDENT | Flag.BLOCK_CHECKSUM, descriptor))
    frame = b"".join((FRAME_MAGIC, header, bytes((header_checksum(header),)), block, bytes(4)))
    try:
        piece = lz4.frame.decompress(frame)
    except Exception as error:
        raise out.bad(f"an lz4 block does not decompress: {error}") from None
    out.append(piece)


def _read_header(data: memoryview, out: Output, magic: int) -> tuple[int, int, int, int]:
    """Return the start of the first block, the maximum block size, and the sizes of block and content checksums."""
    if len(data) < len(HEADER):
        raise out.cut(f"an lz4 frame has at least {len(HEADER)} bytes, there are {len(data)}")
    if data[:4] != FRAME_MAGIC:
        raise out.bad(f"an lz4 frame starts with {FRAME_MAGIC.hex()}, not {data[:4].hex()}")
    flags, descriptor = data[4], data[5]
    if flags & Flag.VERSION != _VERSION_1:
        raise out.bad(f"version {flags >> 6} of the lz4 frame; Kafka reads 1")
    if flags & Flag.RESERVED:
        raise out.bad("an lz4 frame with a reserved bit or a dictionary")
    if not flags & Flag.INDEPENDENT:
        raise out.bad("an lz4 frame with linked blocks, which Kafka does not read")
    if descriptor not in _MAX_BLOCK:
        raise out.bad(f"an lz4 frame with the block descriptor {descriptor:#04x}")
    at = 6
    if flags & Flag.CONTENT_SIZE:
        at += 8
        if len(data) <= at:
            raise out.cut("the lz4 frame ends inside its header")
        out.check(int.from_bytes(data[6:14], "little"))
    expected = header_checksum(bytes(data[4:at])) if magic else data[at]
    if data[at] != expected:
        raise out.bad(f"the lz4 header's checksum is {data[at]:#04x} and should be {expected:#04x}")
    check_size = 4 if flags & Flag.BLOCK_CHECKSUM else 0
    return at + 1, _MAX_BLOCK[descriptor], check_size, 4 if flags & Flag.CONTENT_CHECKSUM else 0


def header_checksum(header: bytes) -> int:
    """Return the HC byte for FLG, BD and the content size, if present: the second byte of their XXH32."""
    # This is all of XXH32 for inputs below 16 bytes, and a header is never longer.
    value = 374761393 + len(header)
    whole = len(header) & ~3
    for at in range(0, whole, 4):
        value = _rotate(value + int.from_bytes(header[at : at + 4], "little") * 3266489917, 17) * 668265263
    for byte in header[whole:]:
        value = _rotate(value + byte * 374761393, 11) * 2654435761
    value &= 0xFFFFFFFF
    value = ((value ^ (value >> 15)) * 2246822519) & 0xFFFFFFFF
    value = ((value ^ (value >> 13)) * 3266489917) & 0xFFFFFFFF
    return ((value ^ (value >> 16)) >> 8) & 0xFF


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


assert header_checksum(HEADER[4:6]) == HEADER[6]
assert header_checksum(HEADER_OF_MAGIC_0[:6]) == HEADER_OF_MAGIC_0[6]

"""Streams made by hand, each with what must come of it: what readers of Kafka's data meet, and what they may not.

`test_compression.py` beside this file reads them with Octavo and `tests/kafka/test_compression.py` with Kafka. A case
says so where the two differ.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cramjam
import lz4.frame
import zstandard

from octavo.errors import BadCompression, FormatError, LimitExceeded, Truncated
from octavo.records.compression import compress
from octavo.records.compression.lz4 import header_checksum
from octavo.records.layout import Codec

WORDS = b"order payment user session checkout cart item price total currency shipped pending failed retry".split()


def text(size: int, seed: int = 1) -> bytes:
    """Compressible data."""
    generator = random.Random(seed)
    return b" ".join(generator.choices(WORDS, k=size // 4 + 1))[:size]


def noise(size: int, seed: int = 1) -> bytes:
    """Data that do not compress."""
    return random.Random(seed).randbytes(size)


TEXT = text(3000)
MORE = text(500, seed=2)


@dataclass(frozen=True, slots=True)
class Case:
    """One stream. `kafka` is what Kafka's reader makes of it where that is not what Octavo does: None for a fault."""

    name: str
    codec: Codec
    data: bytes
    result: bytes | type[FormatError]
    magic: int = 2
    kafka: bytes | str | None = "the same"

    def __str__(self) -> str:
        return f"{self.codec.name.lower()}: {self.name}"

    @property
    def kafka_reads(self) -> bytes | None:
        if not isinstance(self.kafka, str):
            return self.kafka
        return self.result if isinstance(self.result, bytes) else None


# gzip


def gzip_member(
    data: bytes,
    *,
    flags: int = 0,
    fields: bytes = b"",
    method: int = 8,
    crc: int | None = None,
    size: int | None = None,
) -> bytes:
    header = struct.pack("<BBBBIBB", 0x1F, 0x8B, method, flags, 0, 0, 3) + fields
    trailer = struct.pack("<II", zlib.crc32(data) if crc is None else crc, len(data) if size is None else size)
    return header + zlib.compress(data, 6, -15) + trailer


def with_header_checksum(member: bytes, header_size: int, wrong: int = 0) -> bytes:
    checksum = (zlib.crc32(member[:header_size]) & 0xFFFF) ^ wrong
    return member[:header_size] + struct.pack("<H", checksum) + member[header_size:]


def gzip_cases() -> Iterator[tuple[Any, ...]]:
    one, two = gzip_member(TEXT), gzip_member(MORE)
    long = gzip_member(noise(20_000))
    all_fields = b"\x03\x00abc" + b"name\x00" + b"comment\x00"
    yield "one member", one, TEXT
    yield "two members", one + two, TEXT + MORE
    yield "many members, across input buffers", (long + two) * 3, (noise(20_000) + MORE) * 3
    yield "empty members", gzip_member(b"") * 2 + one + gzip_member(b""), TEXT
    yield "nothing at all", b"", Truncated
    for count in (1, 8, 17, 18, 19, 27, 9000):
        yield f"{count} bytes of padding", one + bytes(count), TEXT
        yield f"{count} bytes of something else", one + b"\x01" * count, TEXT
    yield "every optional field", gzip_member(TEXT, flags=0x1D, fields=all_fields), TEXT
    yield "text flag", gzip_member(TEXT, flags=0x01), TEXT
    yield "reserved flags", gzip_member(TEXT, flags=0xE0), TEXT
    yield "header checksum", with_header_checksum(gzip_member(TEXT, flags=0x02), 10), TEXT
    named = gzip_member(TEXT, flags=0x1E, fields=all_fields)
    yield "header checksum over all fields", with_header_checksum(named, 10 + len(all_fields)), TEXT
    yield "wrong header checksum", with_header_checksum(gzip_member(TEXT, flags=0x02), 10, 1), BadCompression
    yield "name without end", gzip_member(TEXT, flags=0x08)[:10] + b"x" * 5000, Truncated
    yield "extra field beyond the end", gzip_member(TEXT, flags=0x04)[:10] + b"\xff\xff" + b"x" * 50, Truncated
    yield "unknown method", gzip_member(TEXT, method=7), BadCompression
    yield "not gzip", noise(100), BadCompression
    yield "wrong checksum", gzip_member(TEXT, crc=1), BadCompression
    yield "wrong size", gzip_member(TEXT, size=2999), BadCompression
    yield "size of 4 GiB declared", gzip_member(TEXT, size=0xFFFFFFFF), BadCompression
    yield "second member with wrong checksum", one + gzip_member(MORE, crc=1), BadCompression
    yield "second member not deflate", one + one[:10] + b"\xff" * 50, BadCompression
    yield "second member cut", one + two[:-1], Truncated
    yield "second member's header cut, short", one + two[:9], TEXT
    yield "second member cut after 18 bytes", one + two[:18], TEXT
    yield "second member cut after 19 bytes", one + two[:19], Truncated
    yield "second header of another method", one + gzip_member(MORE, method=7), TEXT
    yield "second header with wrong checksum", (one + with_header_checksum(gzip_member(MORE, flags=0x02), 10, 1)), TEXT
    yield "second header whose name has no end", one + gzip_member(b"", flags=0x08)[:10] + b"x" * 50, TEXT
    yield "reserved block type", one[:10] + b"\x07" + bytes(30), BadCompression
    yield "distance before the start", one[:10] + b"\x4b\x04\x42\x00" + bytes(20), BadCompression


# snappy

XERIAL = bytes.fromhex("82534e4150505900 00000001 00000001")


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def snappy_block(data: bytes) -> bytes:
    raw = raw_snappy(data)
    return struct.pack(">i", len(raw)) + raw


def snappy_cases() -> Iterator[tuple[Any, ...]]:
    one, two = snappy_block(TEXT), snappy_block(MORE)
    yield "raw", raw_snappy(TEXT), TEXT
    yield "raw, of nothing", b"\x00", b""
    yield "raw, shorter than a header", raw_snappy(b"abc"), b"abc"
    yield "raw, size in more bytes than it needs", b"\x83\x80\x80\x80\x00" + raw_snappy(b"abc")[1:], b"abc"
    yield "raw, size in six bytes", b"\x83\x80\x80\x80\x80\x00" + raw_snappy(b"abc")[1:], BadCompression
    yield "raw, size of 2 GiB", b"\xff\xff\xff\xff\x07" + raw_snappy(b"abc")[1:], BadCompression
    yield "raw, size of 4 GiB", b"\xff\xff\xff\xff\x0f" + raw_snappy(b"abc")[1:], BadCompression
    yield "raw, followed by a byte", raw_snappy(TEXT) + b"\x00", BadCompression
    yield "raw, size too small", b"\x02" + raw_snappy(b"abc")[1:], BadCompression
    yield "raw, copy from before the start", b"\x08\x00a\x0d\x05", BadCompression
    yield "nothing at all", b"", Truncated
    yield "framed", XERIAL + one + two, TEXT + MORE
    yield "framed, no blocks", XERIAL, b""
    yield "framed, a large block", XERIAL + snappy_block(TEXT * 400), TEXT * 400
    yield "framed, an empty block", XERIAL + one + snappy_block(b"") + two, TEXT + MORE
    yield "framed, version 0", XERIAL[:8] + bytes(8) + one, TEXT
    yield "framed, version 9", XERIAL[:8] + b"\x00\x00\x00\x09" * 2 + one, TEXT
    yield "concatenated", XERIAL + one + XERIAL + two, TEXT + MORE
    yield "concatenated, header after header", XERIAL + XERIAL + one, TEXT
    yield "concatenated, needs version 9", XERIAL + one + XERIAL[:12] + b"\x00\x00\x00\x09" + two, TEXT + MORE
    yield "concatenated, version 0", XERIAL + one + XERIAL[:8] + bytes(8) + two, BadCompression
    yield "concatenated, header cut", XERIAL + one + XERIAL[:9], Truncated
    for count in (1, 2, 3):
        yield f"{count} bytes at the end", XERIAL + one + b"\xff" * count, TEXT
    yield "block of no bytes", XERIAL + one + bytes(4) + two, BadCompression
    yield "block of negative size", XERIAL + one + b"\xff" * 4, BadCompression
    yield "block above 512 MiB", XERIAL + struct.pack(">i", (512 << 20) + 1) + b"aaa", BadCompression
    yield "block beyond the end", XERIAL + struct.pack(">i", 100) + b"aaa", Truncated
    yield "block followed by a byte", XERIAL + struct.pack(">i", len(one) - 3) + one[4:] + b"\x00", BadCompression
    # snappy-java takes it for the end of the stream, or reads on, depending on where its caller's buffer ends.
    damaged = XERIAL + XERIAL[:4] + b"XXXX" + XERIAL[8:] + one
    yield "concatenated, damaged header", damaged, BadCompression, 2, b""


# lz4


def lz4_frame(
    *blocks: bytes,
    flags: int = 0x60,
    descriptor: int = 0x40,
    content_size: int | None = None,
    header_check: int | None = None,
    end: bytes = bytes(4),
) -> bytes:
    header = bytes((flags, descriptor)) + (b"" if content_size is None else struct.pack("<Q", content_size))
    check = header_checksum(header) if header_check is None else header_check
    return b"\x04\x22\x4d\x18" + header + bytes((check,)) + b"".join(blocks) + end


def lz4_block(data: bytes) -> bytes:
    raw = bytes(cramjam.lz4.compress_block(data, store_size=False))
    return struct.pack("<I", len(raw)) + raw


def stored(data: bytes) -> bytes:
    return struct.pack("<I", len(data) | 1 << 31) + data


def library_lz4(data: bytes, **options: Any) -> bytes:
    frame: bytes = lz4.frame.compress(data, block_linked=False, store_size=False, **options)
    return frame


def lz4_cases() -> Iterator[tuple[Any, ...]]:
    one, two = lz4_block(TEXT), lz4_block(MORE)
    yield "one block", lz4_frame(one), TEXT
    yield "compressed and stored", lz4_frame(one, stored(MORE), two), TEXT + MORE + MORE
    yield "no blocks", lz4_frame(), b""
    yield "nothing at all", b"", Truncated
    for descriptor, size in ((0x40, 64 << 10), (0x50, 256 << 10), (0x60, 1 << 20), (0x70, 4 << 20)):
        full = lz4_frame(lz4_block(bytes(size)), stored(bytes(size)), descriptor=descriptor)
        yield f"descriptor {descriptor:#x}, full blocks", full, bytes(2 * size)
        over = lz4_frame(lz4_block(bytes(size + 1)), descriptor=descriptor)
        yield f"descriptor {descriptor:#x}, a byte too many", over, BadCompression
        over = lz4_frame(stored(bytes(size + 1)), descriptor=descriptor)
        yield f"descriptor {descriptor:#x}, a stored byte too many", over, BadCompression
    for descriptor in (0x00, 0x30, 0x41, 0x48, 0x80, 0xC0):
        yield f"descriptor {descriptor:#x}", lz4_frame(one, descriptor=descriptor), BadCompression
    yield "linked blocks", lz4_frame(one, flags=0x40), BadCompression
    yield "linked blocks of the library", lz4.frame.compress(TEXT * 50), BadCompression
    for flags in (0x20, 0xA0, 0xE0, 0x61, 0x62):
        yield f"flags {flags:#x}", lz4_frame(one, flags=flags), BadCompression
    yield "content size", lz4_frame(one, flags=0x68, content_size=len(TEXT)), TEXT
    yield "wrong content size", lz4_frame(one, flags=0x68, content_size=5), TEXT
    yield "content size beyond the limit", lz4_frame(one, flags=0x68, content_size=1 << 60), LimitExceeded, 2, TEXT
    yield "content checksum", library_lz4(TEXT, content_checksum=True), TEXT
    yield "wrong content checksum", lz4_frame(one, flags=0x64, end=bytes(4) + b"\x01\x02\x03\x04"), TEXT
    yield "content checksum missing", lz4_frame(one, flags=0x64), Truncated
    yield "content checksum cut", lz4_frame(one, flags=0x64, end=bytes(7)), Truncated
    checked = library_lz4(TEXT * 50, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_checksum=True)
    yield "block checksums", checked, TEXT * 50
    yield "block checksum of a stored block", library_lz4(noise(90_000), block_checksum=True), noise(90_000)
    yield "block checksum in large blocks", library_lz4(TEXT * 50, block_size=7, block_checksum=True), TEXT * 50
    size = struct.unpack_from("<I", checked, 7)[0]
    at = 7 + 4 + size
    yield "wrong block checksum", checked[:at] + bytes((checked[at] ^ 1,)) + checked[at + 1 :], BadCompression
    yield "block checksum cut", checked[: at + 3], Truncated
    yield "wrong header checksum", lz4_frame(one, header_check=0x1A), BadCompression
    yield "wrong header checksum, magic 1", lz4_frame(one, header_check=0x1A), BadCompression, 1
    yield "wrong header checksum, magic 0", lz4_frame(one, header_check=0x1A), TEXT, 0
    yield "any header checksum, magic 0", lz4_frame(one, header_check=0x77), TEXT, 0
    yield "right header checksum, magic 0", lz4_frame(one), TEXT, 0
    yield "followed by a byte", lz4_frame(one) + b"x", TEXT
    yield "followed by another frame", lz4_frame(one) + lz4_frame(two), TEXT
    yield "stored end mark", lz4_frame(one, end=b"\x00\x00\x00\x80"), TEXT
    yield "no end mark", lz4_frame(one, end=b""), Truncated
    yield "skippable frame", b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + lz4_frame(one), BadCompression
    yield "legacy frame", b"\x02\x21\x4c\x18" + one, BadCompression
    yield "not lz4 in a block", lz4_frame(struct.pack("<I", 3) + b"\xff\xff\xff"), BadCompression
    yield "empty block", lz4_frame(one, struct.pack("<I", 1) + b"\x00", two), TEXT + MORE
    yield "block beyond the end", lz4_frame(one)[:-10], Truncated


# zstd

ZSTD = bytes.fromhex("28b52ffd")
SKIPPABLE = bytes.fromhex("502a4d18 04000000") + b"abcd"


def zstd_frame(data: bytes, *, size: bool = False, checksum: bool = False, level: int = 3) -> bytes:
    return zstandard.ZstdCompressor(level=level, write_content_size=size, write_checksum=checksum).compress(data)


def zstd_block(kind: int, size: int, content: bytes, last: bool = True) -> bytes:
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + content


def zstd_cases() -> Iterator[tuple[Any, ...]]:
    one, two = zstd_frame(TEXT), zstd_frame(MORE, size=True, checksum=True)
    window = ZSTD + b"\x00\x58"  # no size, a window of 2 MiB: what Java writes
    yield "one frame", one, TEXT
    yield "size and checksum", two, MORE
    yield "several frames", one + two + one, TEXT + MORE + TEXT
    yield "nothing at all", b"", b""
    yield "empty frame", zstd_frame(b""), b""
    yield "empty frames", zstd_frame(b"", size=True) * 3 + one, TEXT
    yield "skippable first", SKIPPABLE + one, TEXT
    yield "skippable between", one + SKIPPABLE + two, TEXT + MORE
    yield "skippable last", one + SKIPPABLE, TEXT
    yield "skippable alone", b"\x5f" + SKIPPABLE[1:], b""
    yield (
        "stored and repeated",
        window + zstd_block(0, 3, b"abc", False) + zstd_block(1, 131072, b"z"),
        (b"abc" + b"z" * 131072),
    )
    for count in (1, 2, 3, 4, 10):
        yield f"{count} bytes of padding", one + bytes(count), BadCompression
    yield "not zstd", noise(50), BadCompression
    yield "older format", b"\x27\xb5\x2f\xfd" + bytes(20), BadCompression
    yield "wrong checksum", two[:-1] + bytes((two[-1] ^ 1,)), BadCompression
    yield "wrong size", two[:5] + bytes((two[5] ^ 1,)) + two[6:], BadCompression
    yield "size with nothing in it", ZSTD + b"\x20\x08" + zstd_block(0, 0, b""), BadCompression
    yield "unused bit", ZSTD + b"\x10\x58" + zstd_block(0, 1, b"a"), b"a"
    yield "reserved bit", ZSTD + b"\x08\x58" + zstd_block(0, 1, b"a"), BadCompression
    yield "dictionary 0", ZSTD + b"\x01\x58\x00" + zstd_block(0, 1, b"a"), b"a"
    yield "dictionary 5", ZSTD + b"\x01\x58\x05" + zstd_block(0, 1, b"a"), BadCompression
    yield "block type 3", window + zstd_block(3, 3, b"abc"), BadCompression
    yield "block above 128 KiB", window + zstd_block(1, 131073, b"z"), BadCompression
    yield "block above the window", ZSTD + b"\x00\x00" + zstd_block(1, 2048, b"z"), BadCompression
    yield "window of 128 MiB", ZSTD + b"\x00\x88" + zstd_block(0, 1, b"a"), b"a"
    yield "window above 128 MiB", ZSTD + b"\x00\x89" + zstd_block(0, 1, b"a"), LimitExceeded
    yield "window of 2 TiB", ZSTD + b"\x00\xf8" + zstd_block(0, 1, b"a"), LimitExceeded
    huge = ZSTD + b"\xe0" + struct.pack("<Q", 1 << 40) + zstd_block(0, 1, b"a")
    yield "size of 1 TiB declared", huge, LimitExceeded
    yield "frame cut", one[:-1], Truncated
    # zstd-jni overlooks a cut frame where it read the end of another with the same 128 KiB of input. What is
    # missing is missing, wherever a buffer ends.
    yield "second frame cut", one + zstd_frame(MORE)[:-1], Truncated, 2, TEXT
    yield "second frame's magic number cut", one + ZSTD[:2], Truncated, 2, TEXT
    yield "skippable last, cut", one + SKIPPABLE[:-1], Truncated, 2, TEXT
    yield "skippable alone, cut", SKIPPABLE[:-1], Truncated


def cases() -> list[Case]:
    """All of them."""
    makers = (
        (Codec.GZIP, gzip_cases),
        (Codec.SNAPPY, snappy_cases),
        (Codec.LZ4, lz4_cases),
        (Codec.ZSTD, zstd_cases),
    )
    return [Case(name, codec, *rest) for codec, maker in makers for name, *rest in maker()]


COMPRESSED = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)

LEVELS: dict[Codec, tuple[int | None, ...]] = {
    Codec.GZIP: (None, -1, 1, 3, 6, 9),
    Codec.SNAPPY: (None,),
    Codec.LZ4: (None, 1, 2, 3, 8, 9, 10, 12, 17),
    Codec.ZSTD: (None, -131072, -1, 0, 1, 9, 19, 22),
}

SIZES = (0, 1, 100, 32767, 32768, 32769, 65535, 65536, 65537, 131072, 131073, 1 << 20)


def streams(codec: Codec) -> list[bytes]:
    """Small streams of every shape that `codec` can have, for damage: as written here, and by others."""
    data = text(60) + b"z" * 40
    plain = compress(codec, data)
    if codec == Codec.GZIP:
        named = with_header_checksum(gzip_member(data, flags=0x0A, fields=b"name\x00"), 15)
        return [plain, named, plain + gzip_member(b"more")]
    if codec == Codec.SNAPPY:
        return [plain, raw_snappy(data), XERIAL + snappy_block(data) + XERIAL + snappy_block(b"more")]
    if codec == Codec.LZ4:
        full = library_lz4(data, block_checksum=True, content_checksum=True)
        return [plain, full, lz4_frame(stored(data), flags=0x68, content_size=len(data))]
    return [plain, zstd_frame(data), zstd_frame(data, checksum=True) + SKIPPABLE + zstd_frame(b"more")]

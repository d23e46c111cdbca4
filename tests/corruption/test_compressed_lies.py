"""Compressed streams that declare what is not so, and streams that hold far more than they should.

Nothing is allocated because a stream says so, and a stream that does hold that much is given up at the limit.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import cramjam
import lz4.block
import pytest
import zstandard

from octavo.errors import LimitExceeded
from octavo.records import Codec
from octavo.records.compression import compress, snappy
from octavo.records.compression import lz4 as our_lz4
from tests.corruption import forge
from tests.corruption.child import Child
from tests.corruption.guard import Guarded
from tests.corruption.outcome import Outcome, read_both, read_columns, read_objects
from tests.corruption.worker import Case, forget_peak, status

_RECORDS: Final = forge.record(b"key", b"value " * 10) * 3
_COUNT: Final = 3


def _snappy_size(size: int) -> bytes:
    out = bytearray()
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*out, size))


def _lz4_frame(flags: int, descriptor: int, rest: bytes, content_size: bytes = b"") -> bytes:
    header = bytes((flags, descriptor)) + content_size
    return our_lz4.FRAME_MAGIC + header + bytes((our_lz4.header_checksum(header),)) + rest


def _gzip(trailer: bytes) -> bytes:
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + zlib.compress(_RECORDS, 9, -15) + trailer


def _streams() -> Iterator[tuple[str, Codec, bytes, str]]:
    """Name, codec, stream, and the error it must give."""
    crc, size = zlib.crc32(_RECORDS).to_bytes(4, "little"), len(_RECORDS)
    for lie in (0, size - 1, size + 1, 2**32 - 1):
        yield f"trailer says {lie} bytes", Codec.GZIP, _gzip(crc + lie.to_bytes(4, "little")), "BadCompression"
    yield "wrong checksum", Codec.GZIP, _gzip(bytes(4) + size.to_bytes(4, "little")), "BadCompression"
    yield "no trailer", Codec.GZIP, _gzip(b""), "Truncated"
    yield (
        "an extra field of 65535 bytes",
        Codec.GZIP,
        b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\xff\xff" + bytes(99),
        "Truncated",
    )
    yield "a name that never ends", Codec.GZIP, b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + b"x" * 999, "Truncated"

    raw = bytes(cramjam.snappy.compress_raw(_RECORDS))
    elements = raw[len(_snappy_size(size)) :]
    for lie in (0, size - 1, size + 1, 2**20, 2**31 - 1, 2**31, 2**32 - 1):
        yield f"raw says {lie} bytes", Codec.SNAPPY, _snappy_size(lie) + elements, "BadCompression"
    yield "raw, size never ends", Codec.SNAPPY, b"\xff" * 20, "BadCompression"
    blocks = ((0x7FFFFFFF, "BadCompression"), (0xFFFFFFFF, "BadCompression"), (0x1FFFFFFF, "Truncated"))
    for lie, error in (*blocks, (len(raw) + 1, "Truncated"), (len(raw) - 1, "BadCompression"), (0, "BadCompression")):
        framed = snappy.HEADER + lie.to_bytes(4, "big") + raw
        yield f"block says {lie:#x} bytes", Codec.SNAPPY, framed, error

    block = lz4.block.compress(_RECORDS, store_size=False)
    sized = len(block).to_bytes(4, "little") + block + bytes(4)
    for lie in (2**20 + 1, 2**31, 2**62, 2**64 - 1):
        frame = _lz4_frame(0x68, 0x40, sized, lie.to_bytes(8, "little"))
        yield f"content of {lie} bytes", Codec.LZ4, frame, "LimitExceeded"
    for lie, error in (
        (2**31 - 1, "BadCompression"),
        (2**32 - 1, "BadCompression"),
        (65537, "BadCompression"),
        (65536, "Truncated"),
        (len(block) + 5, "Truncated"),
        (len(block) - 1, "BadCompression"),
    ):
        frame = _lz4_frame(0x60, 0x40, lie.to_bytes(4, "little") + block + bytes(4))
        yield f"block of {lie} bytes", Codec.LZ4, frame, error
    too_large = lz4.block.compress(bytes(65537), store_size=False)
    too_large = len(too_large).to_bytes(4, "little") + too_large + bytes(4)
    yield "a block that holds more than a block", Codec.LZ4, _lz4_frame(0x60, 0x40, too_large), "BadCompression"
    yield "no end mark", Codec.LZ4, _lz4_frame(0x60, 0x40, sized[:-4]), "Truncated"

    body = zstandard.ZstdCompressor(write_content_size=False).compress(_RECORDS)
    at = 4 + 2  # magic, descriptor, window
    for lie, error in ((2**63, "LimitExceeded"), (2**20 + 1, "LimitExceeded"), (size + 1, "BadCompression")):
        frame = body[:4] + b"\xc0" + body[5:6] + lie.to_bytes(8, "little") + body[at:]
        yield f"content of {lie} bytes", Codec.ZSTD, frame, error
        single = body[:4] + b"\xe0" + lie.to_bytes(8, "little") + body[at:]
        yield f"one segment of {lie} bytes", Codec.ZSTD, single, error
    for window in (0xFF, 0x90):
        yield f"window {window:#x}", Codec.ZSTD, body[:5] + bytes((window,)) + body[at:], "LimitExceeded"
    for kind in range(4):
        block_head = (0x1FFFFF << 3 | kind << 1 | 1).to_bytes(3, "little")
        yield f"block of type {kind}, 2 MiB", Codec.ZSTD, body[:at] + block_head + b"x" * 9, "BadCompression"
    yield "a skippable frame of 4 GiB", Codec.ZSTD, b"\x50\x2a\x4d\x18\xff\xff\xff\xff" + body, "Truncated"


def _named(buffer: memoryview, error: str) -> None:
    outcome = read_both(buffer)
    assert not outcome.rows
    assert outcome.failure is not None
    assert outcome.failure.kind.__name__ == error, outcome


def lying_streams() -> Iterator[Case]:
    memory = Guarded(1 << 17)
    for name, codec, stream, error in _streams():
        buffer = memory.put(forge.batch(stream, count=_COUNT, attributes=int(codec)))
        yield f"{codec.name}: {name}", partial(_named, buffer, error)
        if codec != Codec.ZSTD:
            buffer = memory.put(forge.message(1, None, stream, attributes=int(codec)))
            yield f"{codec.name} in magic 1: {name}", partial(_named, buffer, error)


def test_a_stream_that_lies_about_its_size_is_named_and_nothing_is_allocated_for_it(child: Child) -> None:
    child.run(lying_streams, max_grown=8 << 20)


BOMB_LIMIT: Final = 16 << 20


def _gzip_bomb(size: int) -> bytes:
    """Deflate blocks of zeros refer to zeros before them, so one of them can be repeated at will."""
    deflate = zlib.compressobj(9, wbits=-15)
    piece = deflate.compress(bytes(16 << 20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + piece * (size // (16 << 20)) + b"\x03\0" + bytes(8)


def _snappy_bomb(size: int) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(32 << 10)))
    return snappy.HEADER + (len(block).to_bytes(4, "big") + block) * (size // (32 << 10))


def _raw_snappy_bomb(size: int) -> bytes:
    return bytes(cramjam.snappy.compress_raw(bytes(size)))


def _lz4_bomb(size: int) -> bytes:
    block = lz4.block.compress(bytes(4 << 20), store_size=False)
    return _lz4_frame(0x60, 0x70, (len(block).to_bytes(4, "little") + block) * (size // (4 << 20)) + bytes(4))


def _zstd_run_bomb(size: int) -> bytes:
    """Four bytes for 128 KiB each."""
    run = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\0\x40" + run * (size // (128 << 10)) + b"\x03\0\0\0"


def _zstd_bomb(size: int) -> bytes:
    """Many frames that do not say what they hold."""
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(16 << 20))
    return frame * (size // (16 << 20))


def _zstd_window_bomb(size: int) -> bytes:
    """A frame with the largest window that is allowed, of 128 MiB."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False, compression_level=1)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    pieces = [packer.compress(bytes(4 << 20)) for _ in range(size // (4 << 20))]
    return b"".join(pieces) + packer.flush()


# What each codec can do to ten gigabytes, or to as much as fits a batch of some megabytes.
BOMBS: Final[dict[str, tuple[Codec, Callable[[int], bytes], int]]] = {
    "gzip, 10 MB for 10 GiB": (Codec.GZIP, _gzip_bomb, 10 << 30),
    "snappy, 6 MB for 128 MiB": (Codec.SNAPPY, _snappy_bomb, 128 << 20),
    "raw snappy, 3 MB for 64 MiB": (Codec.SNAPPY, _raw_snappy_bomb, 64 << 20),
    "lz4, 4 MB for 1 GiB": (Codec.LZ4, _lz4_bomb, 1 << 30),
    "zstd, 330 KB for 10 GiB": (Codec.ZSTD, _zstd_run_bomb, 10 << 30),
    "zstd, 1 MB for 10 GiB": (Codec.ZSTD, _zstd_bomb, 10 << 30),
    "zstd, the largest window": (Codec.ZSTD, _zstd_window_bomb, 256 << 20),
}


def _bounded(read: Callable[..., Outcome], batch: bytes) -> None:
    """What comes out may be there twice, once as the library's; what goes in is copied by one library."""
    allowed = 2 * BOMB_LIMIT + 2 * len(batch) + (4 << 20)
    forget_peak()
    before = status("VmRSS")
    outcome = read(batch, limit=BOMB_LIMIT)
    grown = status("VmHWM") - before
    assert outcome.rows == []
    assert outcome.failure is not None
    assert outcome.failure.kind is LimitExceeded, outcome
    assert grown <= allowed, f"{grown:,} bytes were taken at a limit of {BOMB_LIMIT:,}"


def bombs(name: str) -> Iterator[Case]:
    codec, make, size = BOMBS[name]
    stream = make(size)
    batches = {"magic 2": forge.batch(stream, count=_COUNT, attributes=int(codec))}
    if codec != Codec.ZSTD:
        batches["magic 0"] = forge.message(0, None, stream, attributes=int(codec))
    for magic, batch in batches.items():
        yield f"{name}, {magic}, objects", partial(_bounded, read_objects, batch)
        yield f"{name}, {magic}, Arrow", partial(_bounded, read_columns, batch)


@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_is_given_up_at_the_limit(child: Child, name: str) -> None:
    child.run(bombs, name, max_grown=192 << 20)


def _limited(batch: bytes, limit: int, value: bytes | None) -> None:
    outcome = read_both(batch, limit=limit)
    if value is None:
        assert outcome.failure is not None
        assert outcome.failure.kind is LimitExceeded, outcome
    else:
        assert [row.value for row in outcome.rows] == [value]


def limits() -> Iterator[Case]:
    """The limit itself is allowed, a byte more is not."""
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        for size in (100, 40_000, 70_000, 300_000):
            value = bytes(size)
            records = forge.record(value=value)
            batch = forge.batch(compress(codec, records), count=1, attributes=int(codec))
            yield f"{codec.name}, {size}, at the limit", partial(_limited, batch, len(records), value)
            yield f"{codec.name}, {size}, above it", partial(_limited, batch, len(records) - 1, None)


def test_a_stream_as_large_as_the_limit_is_read_and_one_byte_more_is_not(child: Child) -> None:
    child.run(limits)


def _tiny(codec: Codec) -> Iterator[tuple[str, bytes, bytes, bytes]]:
    """What a stream begins with, the smallest piece that holds something or nothing, and what it ends with."""
    match codec:
        case Codec.GZIP:
            yield "members", b"", zlib.compress(b"x", wbits=31), b""
            yield "empty members", b"", zlib.compress(b"", wbits=31), b""
        case Codec.SNAPPY:
            yield "blocks", snappy.HEADER, b"\0\0\0\x03\x01\0x", b""
            yield "empty blocks", snappy.HEADER, b"\0\0\0\x01\0", b""
            yield "headers", b"", snappy.HEADER, b""
        case Codec.LZ4:
            block = lz4.block.compress(b"x", store_size=False)
            yield "blocks", _lz4_frame(0x60, 0x40, b""), len(block).to_bytes(4, "little") + block, bytes(4)
            yield "stored blocks", _lz4_frame(0x60, 0x40, b""), b"\x01\0\0\x80x", bytes(4)
        case Codec.ZSTD:
            yield "frames", b"", zstandard.ZstdCompressor(write_content_size=False).compress(b"x"), b""
            yield "empty frames", b"", zstandard.ZstdCompressor().compress(b""), b""
            yield "skippable frames", b"", b"\x50\x2a\x4d\x18\0\0\0\0", b""
            yield "empty blocks", b"\x28\xb5\x2f\xfd\0\x40", b"\0\0\0", b"\1\0\0"


def tiny_pieces() -> Iterator[Case]:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        for name, head, piece, tail in _tiny(codec):
            stream = head + piece * ((256 << 10) // len(piece)) + tail
            batch = forge.batch(stream, count=1, attributes=int(codec))
            yield f"{codec.name}, {name}", partial(_soon, batch)


def _soon(batch: bytes) -> None:
    begin = time.process_time()
    assert read_objects(batch).failure is not None
    spent = time.process_time() - begin
    assert spent < 3, f"{spent:.1f} seconds for a quarter of a megabyte"


@pytest.mark.parametrize("child", ["interpreted"], indirect=True)
def test_a_stream_of_countless_tiny_pieces_is_read_in_a_fixed_time_for_each_byte(child: Child) -> None:
    child.run(tiny_pieces)

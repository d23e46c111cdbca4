"""Read and write Zstandard frames (RFC 8878): any number of them, including skippable ones.

    stream := (frame | skippable)*
    frame  := 28 b5 2f fd, descriptor, [window], [dictionary id], [content size], block*, [int32 checksum]
    block  := int24: bit 0 last, bits 1-2 type, size from bit 3, then the bytes        little-endian

Kafka writes frames without a content size; zstd-jni reads any frame. The blocks are walked before anything is
decompressed. This tells a truncated stream from a complete one (the library does not), and limits the output size.
"""

from __future__ import annotations

import threading
from typing import Final

import zstandard

from octavo.errors import InvalidInput, LimitExceeded
from octavo.records.compression.output import LARGE, Output
from octavo.records.layout import Buffer

FRAME_MAGIC: Final[bytes] = b"\x28\xb5\x2f\xfd"
DEFAULT_LEVEL: Final = 3
MIN_LEVEL: Final = -131072
MAX_LEVEL: Final = 22

# 128 MiB, as in zstd-jni. A frame's header makes the library reserve that memory, but only data use it.
MAX_WINDOW: Final = 1 << 27
_LARGEST_WINDOW: Final = (27 - 10) << 3  # the same limit as encoded in a frame's header

_MAX_BLOCK: Final = 128 << 10
_READ: Final = 1 << 20  # bytes to grow by for data of unknown size

_CHECKSUM: Final = 0x04  # bits of the frame's descriptor
_RESERVED: Final = 0x08
_SINGLE_SEGMENT: Final = 0x20
_DICTIONARY_ID_SIZE: Final = (0, 1, 2, 4)
_CONTENT_SIZE_SIZE: Final = (0, 2, 4, 8)

# The end of the header of a frame that is a single segment, by its descriptor, for sizes that one block can hold.
_SIZED_HEADER: Final = {_SINGLE_SEGMENT: 6, _SINGLE_SEGMENT | 0x40: 7, _SINGLE_SEGMENT | 0x80: 9}
_EMPTY_LAST_BLOCK: Final[bytes] = b"\x01\x00\x00"

_RAW, _RUN, _COMPRESSED, _NOBODYS = range(4)


class _Contexts(threading.local):
    """The zstd state of one thread. It is expensive to set up, and two threads must not share it."""

    level: int | None = None
    compressor: zstandard.ZstdCompressor

    def __init__(self) -> None:
        self.decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)


_contexts = _Contexts()


def compress(data: Buffer, level: int | None, magic: int) -> bytes:
    """Compress `data` into one frame that declares its size. Raises `InvalidInput` if there is no such level."""
    if level is None:
        level = DEFAULT_LEVEL
    if not MIN_LEVEL <= level <= MAX_LEVEL:
        raise InvalidInput(f"zstd has levels {MIN_LEVEL} to {MAX_LEVEL}, {level} was asked for")
    if magic < 2:
        raise InvalidInput(f"zstd came with magic 2, messages of magic {magic} cannot have it")
    if _contexts.level != level:
        _contexts.compressor = zstandard.ZstdCompressor(level=level, write_content_size=True)
        _contexts.level = level
    return _contexts.compressor.compress(data)


def decompress(data: memoryview, out: Output, magic: int) -> None:
    """Decompress all frames of `data`, and append their content to `out`."""
    if not data:
        return  # zstd-jni treats no frame like an empty one
    if _is_one_block(data):
        try:
            piece = _contexts.decompressor.decompress(data, max_output_size=_MAX_BLOCK)
        except zstandard.ZstdError as error:
            raise out.bad(f"the zstd stream does not decompress: {error}") from None
        out.append(piece)
        return
    try:
        _decompress_stream(data, out)
    finally:
        if out.size > LARGE:  # the library keeps a window of up to 128 MiB
            _contexts.decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)


def _decompress_stream(data: memoryview, out: Output) -> None:
    least, most = _walk(data, out)
    reader = _contexts.decompressor.stream_reader(data, read_across_frames=True)
    while True:
        # Ask for one byte more than there can be: only a read that returns less shows that nothing is left.
        size = min(most - out.size, out.left, _READ) + 1
        with out.room(size) as room:
            try:
                written = reader.readinto(room)
            except Exception as error:
                raise out.bad(f"the zstd stream does not decompress: {error}") from None
        out.wrote(written)
        if written < size or out.size > most:
            break
    if not least <= out.size <= most:
        raise out.bad("the zstd frames do not hold as much as they declare")


def _is_one_block(data: memoryview) -> bool:
    """Return whether `data` is like nearly every batch: one frame with one non-empty block, with no size or its own.

    Such a frame holds `_MAX_BLOCK` bytes at most. zstd-jni writes no size and flushes before it ends a frame, so an
    empty block comes last. Other clients write the size.
    """
    if data[:4] != FRAME_MAGIC or len(data) < 12:
        return False
    descriptor = data[4]
    if descriptor == 0:
        if data[5] > _LARGEST_WINDOW:
            return False
        start = 6
    else:
        start = _SIZED_HEADER.get(descriptor & ~_CHECKSUM, 0)
        if not start or not 0 < _declared_size(data, 5, start) <= _MAX_BLOCK:
            return False
    head = int.from_bytes(data[start : start + 3], "little")
    end = start + 3 + (head >> 3)
    if head & 7 == _COMPRESSED << 1:
        return descriptor == 0 and data[end:] == _EMPTY_LAST_BLOCK
    return head & 7 == _COMPRESSED << 1 | 1 and end + (descriptor & _CHECKSUM) == len(data)


def _walk(data: memoryview, out: Output) -> tuple[int, int]:
    """Find the end of every frame; returns the least and the most bytes that all frames can hold.

    Raises `Truncated` if the last frame is incomplete, `BadCompression` if bytes are not a frame, and `LimitExceeded`
    if the frames themselves declare too much.
    """
    at, end = 0, len(data)
    least = most = 0
    while at < end:
        head = data[at : at + 4]
        if head == FRAME_MAGIC:
            at, low, high = _frame(data, at + 4, out)
            least += low
            most += high
            out.check(least)
        elif _could_be_skippable(head):
            if at + 8 > end:
                raise out.cut("the zstd stream ends inside a skippable frame")
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            if at > end:
                raise out.cut(f"a skippable zstd frame goes on for {at - end:,} bytes after the last")
        elif FRAME_MAGIC[: len(head)] == head:
            raise out.cut("the zstd stream ends inside a frame's magic number")
        else:
            raise out.bad(f"a zstd frame starts with {FRAME_MAGIC.hex()}, not {head.hex()}")
    return least, most


def _could_be_skippable(head: memoryview) -> bool:
    """Return whether `head` is one of the sixteen magic numbers 50..5f 2a 4d 18, or the beginning of one."""
    return head[0] & 0xF0 == 0x50 and b"\x2a\x4d\x18"[: len(head) - 1] == head[1:]


def _frame(data: memoryview, at: int, out: Output) -> tuple[int, int, int]:
    """Return the end of the frame whose magic number ends at `at`, and the least and most bytes that it can hold."""
    at, declared, max_block, checksum = _frame_header(data, at, out)
    end = len(data)
    least = most = 0
    last = 0
    while not last:
        if at + 3 > end:
            raise out.cut("the zstd stream ends inside a frame")
        head = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = head & 1, head >> 1 & 3, head >> 3
        if kind == _NOBODYS or size > max_block:
            raise out.bad(f"a zstd block of type {kind} and {size:,} bytes where {max_block:,} are the most")
        if kind == _COMPRESSED:
            most += max_block
        else:
            most += size
            least += size
            if least > out.limit:
                out.check(least)
        at += 3 + (1 if kind == _RUN else size)
    at += checksum
    if at > end:
        raise out.cut(f"a zstd frame goes on for {at - end:,} bytes after the last")
    if declared is None:
        return at, least, most
    if not least <= declared <= most:
        raise out.bad(f"a zstd frame declares {declared:,} bytes and can hold {most:,} at most")
    return at, declared, declared


def _frame_header(data: memoryview, at: int, out: Output) -> tuple[int, int | None, int, int]:
    """Return the start of the first block, the declared size, the maximum block size and the checksum's size."""
    if at == len(data):
        raise out.cut("the zstd stream ends inside a frame's header")
    descriptor = data[at]
    if descriptor & _RESERVED:
        raise out.bad("a zstd frame with a reserved bit")
    single = descriptor & _SINGLE_SEGMENT
    window_at = at + 1
    declared_at = window_at + (not single) + _DICTIONARY_ID_SIZE[descriptor & 3]
    declared_size = _CONTENT_SIZE_SIZE[descriptor >> 6] or (1 if single else 0)
    first = declared_at + declared_size
    if first > len(data):
        raise out.cut("the zstd stream ends inside a frame's header")
    declared = None
    if declared_size:
        declared = _declared_size(data, declared_at, first)
        out.check(declared)
    if single:
        window = declared or 0
    else:
        exponent, eighths = divmod(data[window_at], 8)
        window = (8 + eighths) << (7 + exponent)
    if window > MAX_WINDOW:
        raise LimitExceeded(out.position, "the window of a zstd frame", window, MAX_WINDOW)
    return first, declared, min(window, _MAX_BLOCK), 4 if descriptor & _CHECKSUM else 0


def _declared_size(data: memoryview, start: int, end: int) -> int:
    return int.from_bytes(data[start:end], "little") + (256 if end - start == 2 else 0)

"""Kafka's `Lz4BlockInputStream`, with its exceptions."""

from __future__ import annotations

import re
from typing import Final

import lz4.block

from octavo.inspect.kafka_text.throwables import IO, LZ4, RUNTIME, UNDERFLOW, Throwable
from octavo.records.compression.lz4 import FRAME_MAGIC, Flag, header_checksum

_PREMATURE: Final = "Stream ended prematurely"
_ERROR_CODE: Final = re.compile(r"Error code: (\d+)")
_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_MASK: Final = 0xFFFFFFFF


class Lz4Source:
    """A frame, read block by block."""

    def __init__(self, data: bytes, ignore_header_checksum: bool, start: int) -> None:
        self._data = data
        self._start = start  # of the frame, in the buffer that Kafka reads it from
        self._block = b""
        self._block_at = 0
        self._is_at_end = False
        if len(data) < 6:
            raise Throwable(IO, _PREMATURE)
        if data[:4] != FRAME_MAGIC:
            raise Throwable(IO, "Stream unsupported (invalid magic bytes)")
        self._flags = _checked_flags(data[4])
        self._largest = 1 << (2 * _checked_size(data[5]) + 8)
        self._at = 6
        if self._flags & Flag.CONTENT_SIZE:
            if len(data) < 14:
                raise Throwable(IO, _PREMATURE)
            self._at = 14
        if not ignore_header_checksum:
            if self._at >= len(data):
                raise Throwable(UNDERFLOW)
            if data[self._at] != header_checksum(data[4 : self._at]):
                raise Throwable(IO, "Stream frame descriptor corrupted")
        elif self._at >= len(data):
            raise Throwable(
                "java.lang.IllegalArgumentException", f"newPosition > limit: ({self._at + 1} > {len(data)})"
            )
        self._at += 1

    def available(self) -> int:
        return len(self._block) - self._block_at

    def read(self, size: int) -> bytes:
        if not self._is_at_end and not self.available():
            self._read_block()
        if self._is_at_end:
            return b""
        piece = self._block[self._block_at : self._block_at + size]
        self._block_at += len(piece)
        return piece

    def _read_block(self) -> None:
        head = self._take(4, IO, _PREMATURE)
        size = int.from_bytes(head, "little")
        is_stored = size >> 31
        size &= 0x7FFFFFFF
        if size == 0:
            self._is_at_end = True
            if self._flags & Flag.CONTENT_CHECKSUM:
                self._take(4, UNDERFLOW, None)
            return
        if size > self._largest:
            raise Throwable(IO, f"Block size {size} exceeded max: {self._largest}")
        start = self._at
        block = self._take(size, IO, _PREMATURE)
        self._block = block if is_stored else self._uncompress(block, start)
        self._block_at = 0
        if self._flags & Flag.BLOCK_CHECKSUM:
            stored = int.from_bytes(self._take(4, UNDERFLOW, None), "little")
            if stored != xxh32(block):
                raise Throwable(IO, "Block checksum mismatch")

    def _uncompress(self, block: bytes, start: int) -> bytes:
        try:
            return bytes(lz4.block.decompress(block, uncompressed_size=self._largest))
        except lz4.block.LZ4BlockError as error:
            code = _ERROR_CODE.search(str(error))
            at = self._start + start + (int(code[1]) if code else 0)
            cause = Throwable(LZ4, f"Error decoding offset {at} of input buffer")
            raise Throwable(IO, None, cause) from None

    def _take(self, size: int, name: str, message: str | None) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise Throwable(name, message)
        self._at += size
        return taken


def _checked_flags(flags: int) -> int:
    if flags & 3:
        raise Throwable(RUNTIME, "Reserved bits must be 0")
    if not flags & Flag.INDEPENDENT:
        raise Throwable(RUNTIME, "Dependent block stream is unsupported")
    if flags >> 6 != 1:
        raise Throwable(RUNTIME, f"Version {flags >> 6} is unsupported")
    return flags


def _checked_size(descriptor: int) -> int:
    if descriptor & 15:
        raise Throwable(RUNTIME, "Reserved2 field must be 0")
    size = descriptor >> 4 & 7
    if size < 4:
        raise Throwable(RUNTIME, "Block size value must be between 4 and 7")
    if descriptor & 0x80:
        raise Throwable(RUNTIME, "Reserved3 field must be 0")
    return size


def xxh32(data: bytes) -> int:
    """Return the XXH32 of `data` with the seed 0."""
    one, two, three, four, five = _PRIMES
    at, end = 0, len(data)
    if end >= 16:
        lanes = [(one + two) & _MASK, two, 0, -one & _MASK]
        while at <= end - 16:
            for lane in range(4):
                word = int.from_bytes(data[at : at + 4], "little")
                lanes[lane] = _rotate(lanes[lane] + word * two, 13) * one & _MASK
                at += 4
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        value = five
    value += end
    while at <= end - 4:
        value = _rotate(value + int.from_bytes(data[at : at + 4], "little") * three, 17) * four
        at += 4
    for byte in data[at:]:
        value = _rotate(value + byte * five, 11) * one
    value &= _MASK
    value = (value ^ value >> 15) * two & _MASK
    value = (value ^ value >> 13) * three & _MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK

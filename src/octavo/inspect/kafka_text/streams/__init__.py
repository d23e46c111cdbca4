"""Decompress as the streams of Java do, read by read, to find out which exception ends a damaged stream, and where.

Sound streams are decompressed by `octavo.records.compression`, which is faster. Only streams that it refuses come here.
"""

from __future__ import annotations

from typing import Final, Protocol

from octavo.errors import LimitExceeded
from octavo.inspect.kafka_text.java_bytes import Cursor, check_heap
from octavo.inspect.kafka_text.throwables import (
    ILLEGAL_ARGUMENT,
    KAFKA,
    Throwable,
)
from octavo.records.compression import DEFAULT_LIMIT
from octavo.records.layout import Buffer, Codec

_LARGE_CHUNK: Final = 16 << 10
_SMALL_CHUNK: Final = 2 << 10


class Source(Protocol):
    """An `InputStream` that decompresses."""

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, and none at the end of the stream. Raises what Java throws."""

    def available(self) -> int:
        """Return how many bytes can be read at once, as this stream of Java answers it."""


class Stream:
    """Kafka's `ChunkedBytesStream`: reads from a source in chunks."""

    def __init__(self, source: Source | None, chunk: int, data: Buffer = b"") -> None:
        self._source = source
        self._chunk = chunk
        self._data: Buffer = data
        self._at = 0
        self._total = 0

    @classmethod
    def of(cls, data: Buffer) -> Stream:
        """Return a stream of bytes that are there already."""
        return cls(None, _LARGE_CHUNK, data)

    def read_byte(self) -> int | None:
        """Return the next byte, or None at the end."""
        if self._at >= len(self._data) and not self._fill():
            return None
        self._at += 1
        return self._data[self._at - 1]

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end: what Kafka's `Utils.readFully` reads."""
        pieces = []
        left = size
        while left:
            piece = self._read(left)
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def varint(self) -> int:
        """Read a varint. At the end of the stream Java takes the mark of the end for the byte FF."""
        data = bytearray()
        for _ in range(5):
            byte = self.read_byte()
            data.append(0xFF if byte is None else byte)
            if data[-1] < 0x80:
                break
        return Cursor(bytes(data)).varint()

    def record_body(self, size: int) -> bytes:
        """Read the body of a record, into a buffer that Java allocates first."""
        if size < 0:
            raise Throwable(ILLEGAL_ARGUMENT, f"capacity < 0: ({size} < 0)")
        check_heap(size)
        return self.read(size)

    def _read(self, size: int) -> bytes:
        """Do what one call of the stream's `read` does."""
        pieces: list[bytes] = []
        left = size
        while left:
            piece = self._read_once(left)
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
            if left and (self._source is None or self._source.available() <= 0):
                break
        return b"".join(pieces)

    def _read_once(self, size: int) -> bytes:
        if self._at >= len(self._data):
            if self._source is not None and size >= self._chunk:
                return self._counted(self._source.read(size))
            if not self._fill():
                return b""
        piece = bytes(self._data[self._at : self._at + size])
        self._at += len(piece)
        return piece

    def _fill(self) -> bool:
        self._data = b"" if self._source is None else self._counted(self._source.read(self._chunk))
        self._at = 0
        return len(self._data) > 0

    def _counted(self, data: bytes) -> bytes:
        self._total += len(data)
        if self._total > DEFAULT_LIMIT:
            raise LimitExceeded(0, "the decompressed batch", self._total, DEFAULT_LIMIT)
        return data


def checked_codec(codec: int) -> int:
    """Return the number of a codec. Raises what Kafka throws if there is no such codec."""
    if codec > Codec.ZSTD:
        raise Throwable(ILLEGAL_ARGUMENT, f"Unknown compression type id: {codec}")
    return codec


def open_stream(codec: int, data: bytes, magic: int, start: int) -> Stream:
    """Open a stream of a codec, which begins at `start` of the buffer that Kafka reads it from.

    Raises what Kafka throws if the beginning of the stream is damaged already.
    """
    try:
        # A codec's library is imported when it is first used.
        if codec == Codec.GZIP:
            from octavo.inspect.kafka_text.streams.gzip import GzipSource

            return Stream(GzipSource(data), _LARGE_CHUNK)
        if codec == Codec.SNAPPY:
            from octavo.inspect.kafka_text.streams.snappy import SnappySource

            return Stream(SnappySource(data), _SMALL_CHUNK)
        if codec == Codec.LZ4:
            from octavo.inspect.kafka_text.streams.lz4 import Lz4Source

            return Stream(Lz4Source(data, magic == 0, start), _SMALL_CHUNK)
        from octavo.inspect.kafka_text.streams.zstd import ZstdSource

        return Stream(ZstdSource(data), _LARGE_CHUNK)
    except Throwable as error:
        raise Throwable(KAFKA, None, error) from None

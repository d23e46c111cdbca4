"""The `SnappyInputStream` of snappy-java, with its exceptions."""

from __future__ import annotations

from typing import Final

from octavo.errors import FormatError
from octavo.inspect.kafka_text.java_bytes import HEAP, check_heap
from octavo.inspect.kafka_text.throwables import IO, SNAPPY_IO, Throwable
from octavo.records.compression.output import Output
from octavo.records.compression.snappy import decompress_block


class SnappySource:
    """The `SnappyInputStream` of snappy-java."""

    _MAGIC: Final = b"\x82SNAPPY\x00"
    _HEADER: Final = 16
    _LARGEST: Final = 512 << 20
    _ERROR: Final = "org.xerial.snappy.SnappyError"

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._chunk = b""
        self._chunk_at = 0
        if not data:
            raise Throwable(SNAPPY_IO, "[EMPTY_INPUT] Cannot decompress empty stream")
        if len(data) < self._HEADER or not data.startswith(self._MAGIC):
            self._at = len(data)
            self._chunk = self._uncompress(data)
        else:
            self._at = self._HEADER

    def available(self) -> int:
        if self._chunk_at >= len(self._chunk):
            self._next_chunk()
        return len(self._chunk) - self._chunk_at

    def read(self, size: int) -> bytes:
        out = b""
        while len(out) < size:
            if self._chunk_at >= len(self._chunk):
                if not self._next_chunk():
                    break
                continue
            piece = self._chunk[self._chunk_at : self._chunk_at + size - len(out)]
            self._chunk_at += len(piece)
            out += piece
        return out

    def _next_chunk(self) -> bool:
        self._chunk, self._chunk_at = b"", 0
        head = self._data[self._at : self._at + 4]
        self._at += len(head)
        if len(head) < 4:
            return False
        if head == self._MAGIC[:4]:
            return self._next_header() and self._next_chunk()
        size = int.from_bytes(head, "big", signed=True)
        if size < 0:
            raise Throwable(self._ERROR, f"[INVALID_CHUNK_SIZE] chunkSize is too big or negative : {size}")
        if size > self._LARGEST:
            raise Throwable(
                self._ERROR,
                f"[FAILED_TO_UNCOMPRESS] Received chunkSize {size:,} is greater than max configured chunk size "
                f"{self._LARGEST:,}",
            )
        if size > HEAP:
            raise Throwable(self._ERROR, "[INVALID_CHUNK_SIZE] Java heap space")
        chunk = self._data[self._at : self._at + size]
        self._at += len(chunk)
        if len(chunk) < size:
            raise Throwable(IO, "failed to read chunk")
        self._chunk = self._uncompress(chunk)
        return True

    def _next_header(self) -> bool:
        header = self._data[self._at - 4 : self._at - 4 + self._HEADER]
        self._at += len(header) - 4
        if len(header) < self._HEADER:
            raise Throwable(SNAPPY_IO, "[FAILED_TO_UNCOMPRESS] Insufficient header size in a concatenated block")
        if not header.startswith(self._MAGIC):
            return False
        version = int.from_bytes(header[8:12], "big", signed=True)
        if version < 1:
            raise Throwable(
                SNAPPY_IO,
                f"[INCOMPATIBLE_VERSION] Compressed with an incompatible codec version {version}. At least version 1 "
                "is required",
            )
        return True

    def _uncompress(self, chunk: bytes) -> bytes:
        size = _snappy_size(chunk)
        if size is None:
            raise Throwable(IO, "PARSING_ERROR(2)")
        check_heap(size)
        out = Output(HEAP)
        try:
            decompress_block(memoryview(chunk), out)
        except FormatError:
            raise Throwable(IO, "FAILED_TO_UNCOMPRESS(5)") from None
        return bytes(out.view())


def _snappy_size(chunk: bytes) -> int | None:
    """Return the size that a block declares, or None if it declares none."""
    size = 0
    for shift, byte in zip(range(0, 35, 7), chunk[:5], strict=False):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size if size < 1 << 32 else None
    return None

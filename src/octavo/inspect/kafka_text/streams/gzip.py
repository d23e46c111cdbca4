"""Java's `GZIPInputStream`, with its exceptions."""

from __future__ import annotations

import zlib
from typing import Final

from octavo.inspect.kafka_text.throwables import END_OF_FILE, ZIP, Throwable
from octavo.records.compression.gzip import Flag


class GzipSource:
    """Java's `GZIPInputStream`, with Kafka's buffer of 8 KiB for its input."""

    _BUFFER: Final = 8 << 10

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = self._header_end(0)
        self._is_at_end = False
        self._begin(b"")

    def _begin(self, pending: bytes) -> None:
        self._inflater = zlib.decompressobj(-15)
        self._pending = pending
        self._crc = 0
        self._written = 0

    def available(self) -> int:
        return 0 if self._is_at_end or self._inflater.eof else 1

    def read(self, size: int) -> bytes:
        while not self._is_at_end:
            out = self._inflate(size)
            if out:
                self._crc = zlib.crc32(out, self._crc)
                self._written += len(out)
                return out
            self._is_at_end = self._read_trailer()
        return b""

    def _inflate(self, size: int) -> bytes:
        while not self._inflater.eof:
            try:
                out = self._inflater.decompress(self._pending, size)
            except zlib.error as error:
                raise Throwable(ZIP, str(error).partition(": ")[2]) from None
            self._pending = self._inflater.unused_data or self._inflater.unconsumed_tail
            if out:
                return out
            if not self._is_member_read() and not self._pending:
                self._pending = self._data[self._at : self._at + self._BUFFER]
                self._at += len(self._pending)
                if not self._pending:
                    raise Throwable(END_OF_FILE, "Unexpected end of ZLIB input stream")
        return b""

    def _is_member_read(self) -> bool:
        return self._inflater.eof

    def _read_trailer(self) -> bool:
        """Check the trailer; return whether the stream ends here, and no other member follows."""
        left = len(self._pending)
        start = self._at - left
        for stored in (self._crc, self._written & 0xFFFFFFFF):
            if start + 4 > len(self._data):
                raise Throwable(END_OF_FILE)
            if int.from_bytes(self._data[start : start + 4], "little") != stored:
                raise Throwable(ZIP, "Corrupt GZIP trailer")
            start += 4
        if self._at >= len(self._data) and left <= 26:
            return True
        try:
            end = self._header_end(start)
        except Throwable:
            return True
        self._begin(self._data[end : self._at])
        self._at = max(self._at, end)
        return False

    def _header_end(self, start: int) -> int:
        header = _Header(self._data, start)
        if header.short() != 0x8B1F:
            raise Throwable(ZIP, "Not in GZIP format")
        if header.byte() != 8:
            raise Throwable(ZIP, "Unsupported compression method")
        flags = header.byte()
        header.skip(6)
        if flags & Flag.EXTRA:
            header.skip(header.short())
        for flag in (Flag.NAME, Flag.COMMENT):
            if flags & flag:
                while header.byte():
                    pass
        if flags & Flag.HEADER_CHECKSUM:
            computed = zlib.crc32(self._data[start : header.at]) & 0xFFFF
            if header.short() != computed:
                raise Throwable(ZIP, "Corrupt GZIP header")
        return header.at


class _Header:
    """Reads the header of a member."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def byte(self) -> int:
        if self.at >= len(self._data):
            raise Throwable(END_OF_FILE)
        self.at += 1
        return self._data[self.at - 1]

    def short(self) -> int:
        return self.byte() | self.byte() << 8

    def skip(self, size: int) -> None:
        for _ in range(size):
            self.byte()

"""The `ZstdInputStream` of zstd-jni, with its exceptions."""

from __future__ import annotations

import zstandard

from octavo.inspect.kafka_text.throwables import ZSTD_IO, Throwable
from octavo.records.compression.zstd import MAX_WINDOW


class ZstdSource:
    """The `ZstdInputStream` of zstd-jni."""

    def __init__(self, data: bytes) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        self._left = data
        self._ready = b""
        self._ready_at = 0
        self._broken: zstandard.ZstdDecompressionReader | None = None
        self._is_cut = False

    def available(self) -> int:
        return 1 if self._ready_at < len(self._ready) or self._broken is not None else len(self._left)

    def read(self, size: int) -> bytes:
        while True:
            if self._ready_at < len(self._ready):
                piece = self._ready[self._ready_at : self._ready_at + size]
                self._ready_at += len(piece)
                return piece
            if self._is_cut:
                raise Throwable(ZSTD_IO, "Truncated source")
            if self._broken is not None:
                return self._read_broken(size)
            if not self._left:
                return b""
            self._next_frame()

    def _next_frame(self) -> None:
        """Decompress a frame. Where that fails, start again, and read it piece by piece up to the damage."""
        frame = self._decompressor.decompressobj()
        self._ready_at = 0
        try:
            self._ready = frame.decompress(self._left)
        except zstandard.ZstdError:
            self._ready = b""
            self._broken = self._decompressor.stream_reader(self._left, read_size=131075)
            return
        self._is_cut = not frame.eof
        self._left = frame.unused_data if frame.eof else b""

    def _read_broken(self, size: int) -> bytes:
        assert self._broken is not None
        try:
            piece = self._broken.read(size)
        except zstandard.ZstdError as error:
            raise Throwable(ZSTD_IO, str(error).rpartition(": ")[2]) from None
        if not piece:
            raise Throwable(ZSTD_IO, "Truncated source")
        return piece

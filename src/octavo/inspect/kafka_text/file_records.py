"""Batches of a file as Kafka's `FileRecords` finds them, with its exceptions where bytes are no batch.

This is the exact way, byte by byte what Kafka does. It is meant for headers and for small or damaged files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from octavo.inspect.kafka_text.java_names import JavaFile
from octavo.inspect.kafka_text.throwables import (
    CORRUPT_RECORD,
    END_OF_FILE,
    ILLEGAL_ARGUMENT,
    KAFKA,
    Throwable,
)
from octavo.inspect.kinds import open_regular
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD, MAX_INT32

_HEADER_UP_TO_MAGIC: Final = 17
_LOG_HEADER: Final = struct.Struct(">qi4xb")
_SMALLEST_RECORD: Final = 14  # the overhead of a message of magic 0
_HEADER_SIZES: Final = {0: LOG_OVERHEAD + 6, 1: LOG_OVERHEAD + 14}
_WINDOW: Final = 1 << 20
# Java prints the identity of an object here, which differs from run to run.
_CHANNEL: Final = "sun.nio.ch.FileChannelImpl@0"

assert _LOG_HEADER.size == _HEADER_UP_TO_MAGIC


class Bytes:
    """The bytes of a file, read in windows. The file may grow or shrink meanwhile."""

    def __init__(self, path: str) -> None:
        self._file = open_regular(Path(path))
        self.size: Final = self._file.size()
        self._window = memoryview(b"")
        self._window_at = 0

    def read(self, position: int, size: int) -> memoryview:
        """Return `size` bytes at `position`, or fewer at the end of the file."""
        at = position - self._window_at
        if at < 0 or at + size > len(self._window):
            self._window = memoryview(self._file.read_at(max(size, _WINDOW), position))
            self._window_at = position
            at = 0
        return self._window[at : at + size]


class FileRecords:
    """The batches in a range of a file."""

    def __init__(self, file: JavaFile, data: Bytes, start: int = 0, end: int = MAX_INT32) -> None:
        self.file: Final = file
        self.data: Final = data
        self.start: Final = start
        self.end: Final = end
        self.size: Final = min(data.size, end) - start

    @classmethod
    def open(cls, file: JavaFile) -> FileRecords:
        """Open a segment. Raises `Unreadable`, and what Kafka throws for a file that is too large."""
        data = Bytes(file.path)
        if data.size > MAX_INT32:
            raise Throwable(
                KAFKA,
                f"The size of segment {file} ({data.size}) is larger than the maximum allowed segment size of "
                f"{MAX_INT32}",
            )
        return cls(file, data)

    def __str__(self) -> str:
        return f"FileRecords(size={self.size}, file={self.file}, start={self.start}, end={self.end})"

    def slice(self, position: int, size: int) -> FileRecords:
        """Return the batches from `position` on, in at most `size` bytes."""
        if position < 0:
            raise Throwable(ILLEGAL_ARGUMENT, f"Invalid position: {position} in read from {self}")
        if position > self.size - self.start:
            raise Throwable(ILLEGAL_ARGUMENT, f"Slice from position {position} exceeds end position of {self}")
        if size < 0:
            raise Throwable(ILLEGAL_ARGUMENT, f"Invalid size: {size} in read from {self}")
        start = self.start + position
        return FileRecords(self.file, self.data, start, min(start + size, self.start + self.size))

    def batches(self) -> Iterator[FileBatch]:
        """Yield the batches, up to the first that is cut off."""
        position = self.start
        while position < self.end - _HEADER_UP_TO_MAGIC:
            head = self.data.read(position, _HEADER_UP_TO_MAGIC)
            if len(head) < _HEADER_UP_TO_MAGIC:
                raise Throwable(
                    CORRUPT_RECORD,
                    "Unexpected EOF while attempting to read the next batch",
                    _end_of_file("log header", _HEADER_UP_TO_MAGIC, len(head), position),
                )
            offset, length, magic = _LOG_HEADER.unpack(head)
            if length < _SMALLEST_RECORD:
                raise Throwable(
                    CORRUPT_RECORD,
                    f"Found record size {length} smaller than minimum record overhead ({_SMALLEST_RECORD}) in file "
                    f"{self.file}.",
                )
            if position > self.end - LOG_OVERHEAD - length:
                return
            yield FileBatch(self, offset, magic, position, LOG_OVERHEAD + length)
            position += LOG_OVERHEAD + length


class FileBatch:
    """A batch of which nothing was read but the beginning of its header."""

    __slots__ = ("magic", "offset", "position", "records", "size")

    def __init__(self, records: FileRecords, offset: int, magic: int, position: int, size: int) -> None:
        self.records = records
        self.offset = offset  # the base offset from magic 2 on, the last offset before
        self.magic = magic
        self.position = position
        self.size = size

    def header(self) -> memoryview:
        """Return the bytes of the header, also of a batch that is shorter than that."""
        if self.magic >= 2:
            return self._load(BATCH_HEADER.size, "record batch header")
        size = _HEADER_SIZES.get(self.magic)
        if size is None:
            raise Throwable(ILLEGAL_ARGUMENT, f"Invalid magic used in LegacyRecord: {self.magic}")
        return self._load(size, "record batch header")

    def load(self) -> memoryview:
        """Return all bytes of the batch."""
        return self._load(self.size, "full record batch")

    def _load(self, size: int, what: str) -> memoryview:
        data = self.records.data.read(self.position, size)
        if len(data) < size:
            raise Throwable(
                KAFKA,
                f"Failed to load record batch at position {self.position} from {self.records}",
                _end_of_file(what, size, len(data), self.position),
            )
        return data


def _end_of_file(what: str, size: int, read: int, position: int) -> Throwable:
    return Throwable(
        END_OF_FILE,
        f"Failed to read `{what}` from file channel `{_CHANNEL}`. Expected to read {size} bytes, but reached end of "
        f"file after reading {read} bytes. Started read from position {position}.",
    )

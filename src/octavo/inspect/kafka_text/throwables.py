"""Exceptions of the Java tool: their classes and messages, which it prints on standard error."""

from __future__ import annotations

from typing import Final

from octavo.errors.root import Signal

KAFKA: Final = "org.apache.kafka.common.KafkaException"
CORRUPT_RECORD: Final = "org.apache.kafka.common.errors.CorruptRecordException"
INVALID_RECORD: Final = "org.apache.kafka.common.InvalidRecordException"
CORRUPT_INDEX: Final = "org.apache.kafka.storage.internals.log.CorruptIndexException"
ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
NUMBER_FORMAT: Final = "java.lang.NumberFormatException"
OUT_OF_BOUNDS: Final = "java.lang.IndexOutOfBoundsException"
STRING_OUT_OF_BOUNDS: Final = "java.lang.StringIndexOutOfBoundsException"
NO_SUCH_ELEMENT: Final = "java.util.NoSuchElementException"
NULL_POINTER: Final = "java.lang.NullPointerException"
RUNTIME: Final = "java.lang.RuntimeException"
OUT_OF_MEMORY: Final = "java.lang.OutOfMemoryError"
UNDERFLOW: Final = "java.nio.BufferUnderflowException"
END_OF_FILE: Final = "java.io.EOFException"
IO: Final = "java.io.IOException"
ZIP: Final = "java.util.zip.ZipException"
SNAPPY_IO: Final = "org.xerial.snappy.SnappyIOException"
ZSTD_IO: Final = "com.github.luben.zstd.ZstdIOException"
LZ4: Final = "net.jpountz.lz4.LZ4Exception"

_IO_EXCEPTIONS: Final = frozenset({END_OF_FILE, IO, ZIP, SNAPPY_IO, ZSTD_IO})
_ILLEGAL_ARGUMENTS: Final = frozenset({ILLEGAL_ARGUMENT, NUMBER_FORMAT})


class Throwable(Signal):
    """An exception that Kafka's tool throws, and that ends its run."""

    def __init__(self, name: str, message: str | None = None, cause: Throwable | None = None) -> None:
        super().__init__(name, message)
        self.name: Final = name
        # Java takes over the text of the cause if an exception has no message of its own.
        self.message: Final = str(cause) if message is None and cause is not None else message
        self.cause: Final = cause

    def __str__(self) -> str:
        """Return what Java's `toString` returns."""
        return self.name if self.message is None else f"{self.name}: {self.message}"

    @property
    def is_io(self) -> bool:
        """Whether it is an `IOException`, which Kafka's readers wrap into others."""
        return self.name in _IO_EXCEPTIONS

    @property
    def is_illegal_argument(self) -> bool:
        """Whether it is an `IllegalArgumentException`, which Kafka's readers of records wrap into others."""
        return self.name in _ILLEGAL_ARGUMENTS

    def report(self) -> str:
        """Return what Java prints about it at the end, without the frames of the stack."""
        lines = [f'Exception in thread "main" {self}']
        cause = self.cause
        while cause is not None:
            lines.append(f"Caused by: {cause}")
            cause = cause.cause
        return "\n".join(lines)

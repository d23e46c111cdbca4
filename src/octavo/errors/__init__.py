"""Exceptions that Octavo raises. This is the whole tree.

    OctavoError
    ├── FormatError               bytes break a rule of the format; has `position` and `rule`
    │   ├── Truncated             the bytes end before the structure does
    │   ├── Corrupt               the bytes cannot be what a writer wrote
    │   │   ├── ChecksumMismatch  the stored and the computed checksum differ
    │   │   ├── BadLength         a length, size or count is not possible at its place
    │   │   ├── BadVarint         a varint continues after its last possible byte
    │   │   ├── BadRecord         a record breaks a rule of its batch
    │   │   └── BadCompression    a compressed stream does not decompress
    │   ├── LimitExceeded         the structure is larger than the caller allows
    │   └── Unsupported           the bytes are well formed, but of a kind that Octavo does not handle
    ├── LogError                  a log, or a directory of logs, cannot do what the caller asked for
    │   ├── OffsetOutOfRange      the log does not hold this offset; has the range that it does hold
    │   ├── AppendRefused         Kafka would refuse these batches; has its error code and the records at fault
    │   ├── BadDirectory          a directory or file is not in a state that Kafka or Octavo leave behind
    │   │   └── OthersDecide      other nodes of a cluster decide what the directory contains
    │   ├── DirectoryLocked       another process, or this one, has the directory open
    │   ├── LockLost              the lock file of an open directory was deleted or replaced
    │   ├── WrongProcess          a fork of the process that opened the directory tried to write
    │   └── Closed                the log, directory, producer or consumer is closed
    └── InvalidInput              the caller asked for something that cannot be expressed
        └── InvalidConfig         a configuration has a name or value that Kafka does not accept

Exceptions carry data in fields; `str()` tells a person what is wrong and where. A torn tail (an
incomplete last batch) is an error only if the caller asks for that very batch.
"""

from __future__ import annotations

from enum import IntEnum
from os import PathLike, fspath
from typing import NamedTuple


class ErrorCode(IntEnum):
    """Kafka's error codes for the answers of a log (`Errors.java`)."""

    UNKNOWN_SERVER_ERROR = -1
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    INVALID_GROUP_ID = 24
    INVALID_TIMESTAMP = 32
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    KAFKA_STORAGE_ERROR = 56
    UNKNOWN_PRODUCER_ID = 59
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87
    PRODUCER_FENCED = 90
    TRANSACTION_ABORTABLE = 120


class OctavoError(Exception):
    """Root of everything that Octavo raises on purpose."""


class FormatError(OctavoError):
    """Bytes at `position` break `rule`.

    `position` counts from the start of the buffer that the caller passed in. If the bytes are inside
    a compressed stream, it is the position of the batch that holds the stream.
    """

    def __init__(self, position: int, rule: str) -> None:
        super().__init__(position, rule)
        self.position = position
        self.rule = rule

    def __str__(self) -> str:
        return f"at byte {self.position}: {self.rule}"


class Truncated(FormatError):
    """The bytes end before the end of the structure that starts at `position`."""


class Corrupt(FormatError):
    """The bytes at `position` cannot be what a writer wrote."""


class ChecksumMismatch(Corrupt):
    """The stored checksum does not match the bytes that it covers."""

    def __init__(self, position: int, stored: int, computed: int) -> None:
        super().__init__(position, f"checksum is {stored:#010x} but the bytes give {computed:#010x}")
        self.args = (position, stored, computed)
        self.stored = stored
        self.computed = computed


class BadLength(Corrupt):
    """A length, size or count is not possible at its place."""


class BadVarint(Corrupt):
    """A variable-length integer continues after its last possible byte."""


class BadRecord(Corrupt):
    """A record breaks a rule of its batch."""


class BadCompression(Corrupt):
    """A compressed stream does not decompress."""


class LimitExceeded(FormatError):
    """A structure is larger than the limit that the caller set."""

    def __init__(self, position: int, what: str, size: int | None, limit: int) -> None:
        declared = "more" if size is None else f"{size:,} bytes"
        super().__init__(position, f"{what} would take {declared}, above the limit of {limit:,} bytes")
        self.args = (position, what, size, limit)
        self.what = what
        self.size = size
        self.limit = limit


class Unsupported(FormatError):
    """The bytes are of a kind that Octavo does not handle: an unknown magic, codec or combination."""


class InvalidInput(OctavoError, ValueError):
    """The caller asked for something that the format cannot express."""


class InvalidConfig(InvalidInput):
    """There is no configuration `name`, or it cannot have this `value`; `allowed` says which values it can have."""

    code = ErrorCode.INVALID_CONFIG

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(name, value, allowed)
        self.name = name
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.name} cannot be {self.value!r}: {self.allowed}"


class LogError(OctavoError):
    """A log, or a directory of logs, cannot do what the caller asked for; `code` is Kafka's error code."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRange(LogError):
    """`offset` is not in the log. The log starts at `start` and ends before `end`."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, offset: int, start: int, end: int) -> None:
        super().__init__(offset, start, end)
        self.offset = offset
        self.start = start
        self.end = end

    def __str__(self) -> str:
        return f"offset {self.offset} is out of range: the log starts at {self.start} and ends before {self.end}"


class RecordError(NamedTuple):
    """The reason why one record of a batch is refused."""

    record_index: int  # index in its batch, from 0
    message: str


class AppendRefused(LogError):
    """Kafka would refuse these batches; none of their records was appended."""

    def __init__(self, code: ErrorCode, message: str, record_errors: tuple[RecordError, ...] = ()) -> None:
        super().__init__(code, message, record_errors)
        self.code = code
        self.message = message
        self.record_errors = record_errors

    def __str__(self) -> str:
        return f"{self.message} ({self.code.name})"


class BadDirectory(LogError):
    """The directory or file at `path` is not in a state that Kafka or Octavo leave behind."""

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str | PathLike[str], problem: str) -> None:
        super().__init__(fspath(path), problem)
        self.path = fspath(path)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class OthersDecide(BadDirectory):
    """Other nodes of a cluster decide about the partitions at `path`. Writing here would make the replicas differ."""

    def __str__(self) -> str:
        return f"{super().__str__()}. It can be read, with read_only=True, but not written to"


class DirectoryLocked(LogError):
    """The directory at `path` is open in process `pid`; `pid` is None if the system does not tell it."""

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str | PathLike[str], pid: int | None) -> None:
        super().__init__(fspath(path), pid)
        self.path = fspath(path)
        self.pid = pid

    def __str__(self) -> str:
        owner = "another process" if self.pid is None else f"process {self.pid}"
        return f"{self.path} is in use by {owner}: stop it first, or open the directory read-only"


class LockLost(LogError):
    """The lock file of the directory at `path` was deleted or replaced, so other processes may write there."""

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(fspath(path))
        self.path = fspath(path)

    def __str__(self) -> str:
        return (
            f"{self.path}: the lock file was deleted or replaced while the directory was open, "
            "so another process may have opened it: nothing more is written, open it again"
        )


class WrongProcess(LogError):
    """Process `pid` opened the directory at `path`. This process is a fork of it and may only read."""

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str | PathLike[str], pid: int) -> None:
        super().__init__(fspath(path), pid)
        self.path = fspath(path)
        self.pid = pid

    def __str__(self) -> str:
        return (
            f"{self.path} was opened by process {self.pid}, and only that one may write to it: "
            "this process is a fork of it, and may open the directory read-only"
        )


class Closed(LogError):
    """The log, directory, producer or consumer is closed."""

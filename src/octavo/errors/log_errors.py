"""Errors of logs and directories of logs."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from octavo.errors.root import ErrorCode, OctavoError

if TYPE_CHECKING:
    from octavo.log.names import TopicPartition


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
    """One refused record of a batch, and the reason why it is refused."""

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


class UnknownPartition(LogError):
    """There is no such topic or partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class NotReady(UnknownPartition):
    """The partition has a folder but no segment yet, because it is being created. A later attempt finds it."""


class TopicExists(LogError):
    """A topic of this name exists already."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class PolicyViolation(LogError):
    """The topic's configuration forbids the operation."""

    code = ErrorCode.POLICY_VIOLATION


class BadPolicy(LogError):
    """A retention policy from another package cannot be used, or gave an invalid answer."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name = name
        self.problem = problem

    def __str__(self) -> str:
        return f"the retention policy {self.name!r} (entry point group 'octavo.retention') {self.problem}"


class CompactionAborted(LogError):
    """Truncating, deleting from or closing the log aborted a compaction. Nothing is lost; a later one finishes it."""


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


class NoSegments(BadDirectory):
    """A folder has no segments. Kafka creates the folder of a partition first, and then its first segment."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "there are no segments in this folder")
        self.args = (folder,)


class DataLoss(BadDirectory):
    """Offsets that a query has to read are no longer in the log; `reason`, if given, replaces the usual message."""

    def __init__(self, partition: TopicPartition, first: int, end: int, reason: str | None = None) -> None:
        super().__init__(str(partition), f"offsets {first} to {end - 1}")
        self.args = (partition, first, end, reason)
        self.partition = partition
        self.first = first
        self.end = end
        self.reason = reason

    def __str__(self) -> str:
        reason = self.reason or (
            f"offsets {self.first} to {self.end - 1} of {self.partition} are not in the log, or no longer: "
            "they may have been deleted by retention."
        )
        return f"{reason} If a query should not fail for this, set the option failOnDataLoss to false"


class CommitUnresolved(BadDirectory):
    """A commit of staged batches was interrupted, and cannot be finished. `path` is the journal that tells of it."""

    def __str__(self) -> str:
        return (
            f"{self.path}: the pending commit in this journal cannot be finished: {self.problem}. Restore what is "
            "missing, or leave the logs as they are and forget the commit with octavo.log.give_up_commit"
        )


class CommitPending(LogError):
    """A commit of staged batches is decided and not finished, because of `why`. It must not be staged again."""

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return (
            f"the commit is decided but not finished ({self.why}): its records will be appended by the next commit, or "
            "when the directory is next opened for writing"
        )


class WouldLoseRecords(LogError):
    """The file at `path` is damaged at byte `position`, and opening the log would cut off sound batches behind that.

    Nothing was cut. `rule` says what is wrong there, `before` and `behind` are numbers of records.
    """

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str | PathLike[str], position: int, rule: str, before: int, behind: int) -> None:
        super().__init__(fspath(path), position, rule, before, behind)
        self.path = fspath(path)
        self.position = position
        self.rule = rule
        self.before = before
        self.behind = behind

    def __str__(self) -> str:
        return (
            f"{self.path} is damaged at byte {self.position} ({self.rule}): {self.before:,} record(s) lie before that, "
            f"and {self.behind:,} sound one(s) behind it. After a power cut this is ordinary for what was never "
            "flushed. Nothing was cut. `octavo salvage SOURCE TARGET` makes a log of all that is sound; "
            'recover="as-kafka" cuts the log at the damage, as Apache Kafka and `octavo serve` do, and keeps the file '
            "as it was beside it"
        )


class DirectoryLocked(LogError):
    """The directory at `path` is open in process `pid`; `pid` is None if it is not known."""

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str | PathLike[str], pid: int | None) -> None:
        super().__init__(fspath(path), pid)
        self.path = fspath(path)
        self.pid = pid

    def __str__(self) -> str:
        owner = "another process" if self.pid is None else f"process {self.pid}"
        return f"{self.path} is in use by {owner}: stop it first, or open the directory read-only"


class LockLost(LogError):
    """The lock of the directory at `path` was lost: its file was deleted or replaced. Other processes may write there.

    Where a lock belongs to a process and not to an open file, as on macOS, the process may have closed the file, too.
    """

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(fspath(path))
        self.path = fspath(path)

    def __str__(self) -> str:
        return (
            f"{self.path}: the lock file was deleted or replaced, or its lock lost, while the directory was open, "
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

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # so that a client asks where the partition is now

"""Tell which kind of file a path is, and open it without ever blocking.

The kind is decided by the name alone, as Kafka does. A file that was renamed (`00000000000000000042.log.deleted`) keeps
its kind. A path comes from a user, so it may be anything: a folder, a pipe, a device, a file of somebody else. Whatever
cannot be opened as a regular file raises `Unreadable` with one sentence.
"""

from __future__ import annotations

import os
import stat
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import BadDirectory, NoSuchFile, Unreadable
from octavo.log.names import (
    CHECKPOINT,
    CLEAN_SHUTDOWN,
    CLEANED,
    COMMIT_JOURNAL,
    DELETED,
    INDEX,
    LEADER_EPOCHS,
    LOCK,
    LOG,
    LOST,
    META_PROPERTIES,
    PARTITION_METADATA,
    QUORUM_STATE,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TMP,
    TXN_INDEX,
    AsideFolder,
    TopicPartition,
    base_offset_of,
)
from octavo.log.storage import DISK, File
from octavo.records.kernels import rules
from octavo.records.kernels.scan import MORE, TORN, entry_extent
from octavo.records.layout import MAGIC_AT, Buffer

_PART: Final = ".part"  # a snapshot that is still being written or fetched
_OFFSET_CHECKPOINT: Final = "-checkpoint"
_NO_FILE: Final = "it is no ordinary file"
_FIRST_LOOK: Final = 4096  # bytes; most parts of a file are not zero from their first bytes on
_PIECE: Final = 1 << 20
_RENAMED: Final = (DELETED, SWAP, CLEANED, TMP, LOST, _PART)


class Kind(Enum):
    """The kinds of files in a data directory. The value is a phrase for messages."""

    SEGMENT = "a segment"
    OFFSET_INDEX = "an index of offsets"
    TIME_INDEX = "an index of timestamps"
    TRANSACTION_INDEX = "an index of aborted transactions"
    PRODUCER_SNAPSHOT = "a snapshot of producers"
    METADATA_SNAPSHOT = "a snapshot of the cluster's metadata"
    LEADER_EPOCHS = "a checkpoint of leader epochs"
    OFFSET_CHECKPOINT = "a checkpoint of offsets"
    PARTITION_METADATA = "the metadata of a partition"
    META_PROPERTIES = "the properties of a data directory"
    QUORUM_STATE = "the state of a KRaft election"
    CLEAN_SHUTDOWN = "the mark of a clean shutdown"
    LOCK = "a lock file"
    COMMIT_JOURNAL = "Octavo's journal of commits"
    UNKNOWN = "a file of unknown kind"

    @property
    def has_batches(self) -> bool:
        """Whether files of this kind consist of record batches."""
        return self in (Kind.SEGMENT, Kind.METADATA_SNAPSHOT)


_BY_NAME: Final = {
    LEADER_EPOCHS: Kind.LEADER_EPOCHS,
    PARTITION_METADATA: Kind.PARTITION_METADATA,
    META_PROPERTIES: Kind.META_PROPERTIES,
    QUORUM_STATE: Kind.QUORUM_STATE,
    CLEAN_SHUTDOWN: Kind.CLEAN_SHUTDOWN,
    LOCK: Kind.LOCK,
    COMMIT_JOURNAL: Kind.COMMIT_JOURNAL,
}
_BY_ENDING: Final = {
    LOG: Kind.SEGMENT,
    INDEX: Kind.OFFSET_INDEX,
    TIME_INDEX: Kind.TIME_INDEX,
    TXN_INDEX: Kind.TRANSACTION_INDEX,
    SNAPSHOT: Kind.PRODUCER_SNAPSHOT,
    CHECKPOINT: Kind.METADATA_SNAPSHOT,
    _OFFSET_CHECKPOINT: Kind.OFFSET_CHECKPOINT,
}


class FileName(NamedTuple):
    """What the name of a file says about it."""

    kind: Kind
    base_offset: int | None  # the offset that the file is named after
    epoch: int | None  # of a KRaft snapshot
    renamed: str  # suffixes that were added to the whole name, such as `.deleted`; usually empty

    @classmethod
    def parse(cls, name: str) -> FileName:
        """Parse the last component of a path. Any name is accepted; the kind is `UNKNOWN` if it is none of Kafka's."""
        plain = _without_added_suffixes(name)
        kind = _BY_NAME.get(plain)
        if kind is None:
            kind = next((kind for ending, kind in _BY_ENDING.items() if plain.endswith(ending)), Kind.UNKNOWN)
        offset, epoch = _snapshot_id(plain) if kind is Kind.METADATA_SNAPSHOT else (base_offset_of(plain), None)
        return cls(kind, offset, epoch, name[len(plain) :])


def kind_of(path: Path) -> Kind:
    """Return the kind of a file, judged by its name."""
    return FileName.parse(path.name).kind


def topic_and_partition(path: Path) -> tuple[str | None, int | None]:
    """Return the topic and partition from the name of a segment's folder, or None for both."""
    named = TopicPartition.parse(path.absolute().parent.name)
    return (None, None) if named is None or kind_of(path) is not Kind.SEGMENT else named


def is_partition_folder(path: Path) -> bool:
    """Whether a folder is named like that of a partition, including one that was set aside (`-delete`, `-stray`)."""
    name = path.absolute().name
    return TopicPartition.parse(name) is not None or AsideFolder.parse(name) is not None


def begins_with_batch(head: Buffer, size: int) -> bool:
    """Whether a file of `size` bytes seems to have batches, judged by its first bytes, at least those of a header."""
    outcome, extent, rule = entry_extent(head, 0, size)
    return outcome == MORE or bool(outcome == TORN and size > MAGIC_AT and rule != rules.ENTRY_MAGIC and extent)


def is_zero(file: File, position: int, end: int) -> bool:
    """Whether there are only zeros between two positions. Holes of the file are not read."""
    size = _FIRST_LOOK
    while position < end:
        data = file.read_at(min(size, end - position), position)
        if not data or data.count(0) != len(data):
            return not data
        position = file.next_data(position + len(data))
        size = _PIECE
    return True


def open_regular(path: Path) -> File:
    """Open a regular file for reading. Raises `Unreadable` for everything else, without waiting for anybody."""
    check_regular(path)  # before opening: merely opening a device can have effects
    try:
        return DISK.open(path)  # does not block even if a pipe has taken the file's place meanwhile
    except BadDirectory:
        raise Unreadable(path, _NO_FILE) from None
    except OSError as error:
        kind = NoSuchFile if isinstance(error, FileNotFoundError) else Unreadable
        raise kind(path, reason_of(error)) from None


def check_regular(path: Path) -> os.stat_result:
    """Return the status of a regular file. Raises `Unreadable` for everything else."""
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise NoSuchFile(path, reason_of(error)) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise Unreadable(path, reason_of(error)) from None
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable(path, "it is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(path, _NO_FILE)
    return status


def reason_of(error: OSError | ValueError) -> str:
    """Return the reason of an error of the file system as a phrase, without its number."""
    if isinstance(error, OSError):
        return str(error) if error.errno is None else os.strerror(error.errno)
    # Versions of Python say it in different words.
    return str(error) if isinstance(error, UnicodeError) else "there is a null character in the path"


def _without_added_suffixes(name: str) -> str:
    while name.endswith(_RENAMED):
        plain = name[: name.rindex(".")]
        if not plain:
            return name
        name = plain
    return name


def _snapshot_id(name: str) -> tuple[int | None, int | None]:
    """Return offset and epoch from `<20 digits>-<10 digits>.checkpoint`, or None for both."""
    offset, dash, epoch = name.removesuffix(CHECKPOINT).partition("-")
    epoch = epoch.partition("-")[0]  # a random number follows while it is being written
    if not dash or len(epoch) != 10 or not (epoch.isascii() and epoch.isdigit()):
        return None, None
    at = base_offset_of(offset + CHECKPOINT)
    return (None, None) if at is None else (at, int(epoch))

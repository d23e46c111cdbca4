"""Kafka's names for files and folders, and its rules for topic names.

A name is accepted only in the form in which Kafka writes it. Kafka would also read `topic-007` or `topic-+7` as
partition 7. Here they are not partitions, so that no two folders can mean the same partition.
"""

from __future__ import annotations

import re
import uuid
from enum import Enum
from typing import Final, NamedTuple

from octavo.errors import InvalidInput
from octavo.log.storage import TMP as TMP
from octavo.records.layout import MAX_INT32, MAX_INT64

# Suffixes of the files of one segment, after its base offset.
LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
CHECKPOINT: Final = ".checkpoint"  # snapshots of the metadata log, which are named after an offset and an epoch

# Suffixes that are added to a whole file name.
DELETED: Final = ".deleted"  # waiting to be removed
CLEANED: Final = ".cleaned"  # output that compaction or a split is still writing
SWAP: Final = ".swap"  # finished output that is about to replace its input
LOST: Final = ".lost"  # data after offsets that are missing; nobody reads or removes them

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
QUORUM_STATE: Final = "quorum-state"
LOCK: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"  # the one name of a metadata snapshot that has no offset
COMMIT_JOURNAL: Final = "octavo-commits"  # Octavo's own; Kafka takes no notice of files that it does not know

METADATA_TOPIC: Final = "__cluster_metadata"
CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
_INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

_OFFSET_DIGITS: Final = 20
_MAX_TOPIC_NAME: Final = 249  # leaves room for the partition in a folder's name
_MAX_FOLDER_NAME: Final = 255
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_UNIQUE_ID: Final = re.compile(r"[^\s.]+")


def file_name(base_offset: int, suffix: str) -> str:
    """Return the file name for an offset, such as `00000000000000000042.log` for 42 and the suffix `.log`."""
    return f"{base_offset:020d}{suffix}"


def base_offset_of(name: str) -> int | None:
    """Return the offset that a file is named after, the part before its first dot; None if that is not an offset."""
    digits = name.partition(".")[0]
    if len(digits) != _OFFSET_DIGITS or not (digits.isascii() and digits.isdigit()) or len(name) == _OFFSET_DIGITS:
        return None
    offset = int(digits)
    return offset if offset <= MAX_INT64 else None


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def folder(self) -> str:
        """The name of the partition's folder: `topic-partition`.

        Every path of a partition is built from this name, so it is checked here. A topic such as `../victim` must not
        lead out of the directory, wherever its name came from. Raises `InvalidInput`.
        """
        problem = self.problem
        if problem is not None:
            raise InvalidInput(problem)
        return str(self)

    @property
    def problem(self) -> str | None:
        """The reason why Kafka does not allow this topic name or partition number; None if it allows them."""
        if not 0 <= self.partition <= MAX_INT32:
            return f"the number of a partition is from 0 to {MAX_INT32}, not {self.partition}"
        return topic_name_problem(self.topic)

    @classmethod
    def parse(cls, folder_name: str) -> TopicPartition | None:
        """Return the partition whose folder has this name; None for other names, such as those of folders set aside."""
        topic, dash, number = folder_name.rpartition("-")
        if not dash or _NUMBER.fullmatch(number) is None:
            return None
        partition = cls(topic, int(number))
        return partition if partition.problem is None else None


class Aside(Enum):
    """The reason why a partition's folder was renamed and set aside. The value is the suffix of the new name."""

    DELETE = "-delete"  # its topic is deleted, and the folder is removed after a delay
    STRAY = "-stray"  # the metadata do not have the partition
    FUTURE = "-future"  # a copy that is being moved to another disk


class AsideFolder(NamedTuple):
    """A folder that is set aside. The topic name in `partition` may be truncated."""

    partition: TopicPartition
    why: Aside

    @classmethod
    def parse(cls, folder_name: str) -> AsideFolder | None:
        """Parse the name of a folder `topic-partition.id-delete` (or `-stray`, `-future`); None for other names."""
        for why in Aside:
            name, dot, unique_id = folder_name.removesuffix(why.value).rpartition(".")
            if folder_name.endswith(why.value) and dot and _UNIQUE_ID.fullmatch(unique_id):
                partition = TopicPartition.parse(name)
                return None if partition is None else cls(partition, why)
        return None


def aside_folder_name(partition: TopicPartition, why: Aside) -> str:
    """Return a unique name for a folder to be set aside. Like Kafka, truncate a long topic name, except for FUTURE."""
    end = f"-{partition.partition}.{uuid.uuid4().hex}{why.value}"
    room = len(partition.topic) if why is Aside.FUTURE else _MAX_FOLDER_NAME - len(end)
    return partition.topic[:room] + end


def topic_name_problem(name: str) -> str | None:
    """Return why Kafka does not allow a topic of this name; None if it does."""
    if not name:
        return "a topic's name cannot be empty"
    if name in {".", ".."}:
        return f"a topic cannot be named {name!r}"
    if len(name) > _MAX_TOPIC_NAME:
        return f"a topic's name has at most {_MAX_TOPIC_NAME} characters, not {len(name)}"
    if _TOPIC_NAME.fullmatch(name) is None:
        return f"a topic's name has ASCII letters, digits, '.', '_' and '-' alone, not {name!r}"
    return None


def check_topic_name(name: str) -> None:
    """Check that Kafka allows a topic of this name. Raises `InvalidInput`."""
    problem = topic_name_problem(name)
    if problem is not None:
        raise InvalidInput(problem)


def check_clients_may_write(topic: str) -> None:
    """Raise `InvalidInput` for topics that only Kafka itself writes to."""
    if topic == METADATA_TOPIC or is_internal_topic(topic):
        raise InvalidInput(f"{topic} is written by Kafka's coordinators and controllers alone")


def is_internal_topic(name: str) -> bool:
    """Whether the topic is one in which Kafka keeps its own state. Clients may not write to those."""
    return name in _INTERNAL_TOPICS

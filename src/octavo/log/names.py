"""How Kafka names files and folders, and what a topic may be called.

A name is read only in the form in which Kafka writes it: where Kafka would also take `topic-007` or `topic-+7` for
partition 7, here it is no partition, so that no two folders can mean the same one.
"""

from __future__ import annotations

import re
import uuid
from enum import Enum
from typing import Final, NamedTuple

from octavo.errors import InvalidInput
from octavo.log.storage import TMP as TMP
from octavo.records.layout import MAX_INT32, MAX_INT64

# Of one segment, after its base offset.
LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"

# After a whole name.
DELETED: Final = ".deleted"  # waits to be removed
CLEANED: Final = ".cleaned"  # compaction or a split is writing it
SWAP: Final = ".swap"  # written, and about to take its place

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
LOCK: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"

METADATA_TOPIC: Final = "__cluster_metadata"
CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
_INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state"})

_OFFSET_DIGITS: Final = 20
_MAX_TOPIC_NAME: Final = 249  # leaves room for the partition in a folder's name
_MAX_FOLDER_NAME: Final = 255
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_UNIQUE_ID: Final = re.compile(r"[^\s.]+")


def file_name(base_offset: int, suffix: str) -> str:
    """`00000000000000000042.log` for offset 42 and the suffix `.log`."""
    return f"{base_offset:020d}{suffix}"


def base_offset_of(name: str) -> int | None:
    """The offset that a file is named after: what stands before its first dot. None where that is no offset."""
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
        """The name of its folder: `topic-partition`.

        Every path of a partition is made of this name, so it is checked here: a topic such as `../victim` must not
        lead out of the directory, wherever its name was read. Raises `InvalidInput`.
        """
        problem = self.problem
        if problem is not None:
            raise InvalidInput(problem)
        return str(self)

    @property
    def problem(self) -> str | None:
        """Why Kafka would have no such partition; None where it could have it."""
        if not 0 <= self.partition <= MAX_INT32:
            return f"the number of a partition is from 0 to {MAX_INT32}, not {self.partition}"
        return topic_name_problem(self.topic)

    @classmethod
    def parse(cls, folder_name: str) -> TopicPartition | None:
        """The partition whose folder has this name; None where it is no partition's, or one that is put aside."""
        topic, dash, number = folder_name.rpartition("-")
        if not dash or _NUMBER.fullmatch(number) is None:
            return None
        partition = cls(topic, int(number))
        return partition if partition.problem is None else None


class Aside(Enum):
    """Why a partition's folder is put aside under another name; the value ends that name."""

    DELETE = "-delete"  # its topic is deleted: it goes after a while
    STRAY = "-stray"  # the metadata does not know it
    FUTURE = "-future"  # a copy that moves to another disk


class AsideFolder(NamedTuple):
    """A folder that is put aside. `partition` may have a topic whose name is cut."""

    partition: TopicPartition
    why: Aside

    @classmethod
    def parse(cls, folder_name: str) -> AsideFolder | None:
        """What a folder `topic-partition.id-delete` (or `-stray`, `-future`) holds; None for all other names."""
        for why in Aside:
            name, dot, unique_id = folder_name.removesuffix(why.value).rpartition(".")
            if folder_name.endswith(why.value) and dot and _UNIQUE_ID.fullmatch(unique_id):
                partition = TopicPartition.parse(name)
                return None if partition is None else cls(partition, why)
        return None


def aside_folder_name(partition: TopicPartition, why: Aside) -> str:
    """A new name for a partition's folder. Kafka cuts the topic where the name would be too long, except for FUTURE."""
    end = f"-{partition.partition}.{uuid.uuid4().hex}{why.value}"
    room = len(partition.topic) if why is Aside.FUTURE else _MAX_FOLDER_NAME - len(end)
    return partition.topic[:room] + end


def topic_name_problem(name: str) -> str | None:
    """Why Kafka would not have a topic of this name; None where it would."""
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
    """Raises `InvalidInput` for a name that Kafka would not give to a topic."""
    problem = topic_name_problem(name)
    if problem is not None:
        raise InvalidInput(problem)


def is_internal_topic(name: str) -> bool:
    """Whether Kafka keeps its own state in a topic of this name, which clients may not write to."""
    return name in _INTERNAL_TOPICS

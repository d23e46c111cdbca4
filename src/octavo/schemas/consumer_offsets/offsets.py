"""The records of `__consumer_offsets` that hold the committed offsets of groups.

The topic also has records of many other kinds, about the members of groups. Readers of committed offsets skip them.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from octavo.schemas.entity import entity, kafka
from octavo.schemas.primitives import NO_UUID
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue, read_key, read_number


@entity
class LegacyOffsetCommitValue(CoordinatorValue):
    """A committed offset before Kafka 0.9."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 1

    offset: int = kafka("int64")
    metadata: str = kafka("string")
    commit_timestamp: int = kafka("int64")


@entity
class LegacyOffsetCommitKey(CoordinatorKey[LegacyOffsetCommitValue]):
    """The key of a committed offset before Kafka 0.9: a group and a partition."""

    TYPE: ClassVar = 0
    VALUE: ClassVar = LegacyOffsetCommitValue

    group: str = kafka("string")
    topic: str = kafka("string")
    partition: int = kafka("int32")


@entity
class OffsetCommitValue(CoordinatorValue):
    """A committed offset. A record without a value deletes it."""

    VERSIONS: ClassVar = range(5)
    FIRST_FLEXIBLE: ClassVar = 4

    offset: int = kafka("int64")
    leader_epoch: int = kafka("int32", since=3, default=-1)
    metadata: str = kafka("string")
    commit_timestamp: int = kafka("int64")
    expire_timestamp: int = kafka("int64", since=1, until=1, default=-1)
    topic_id: UUID = kafka("uuid", since=4, tag=0, default=NO_UUID)


@entity
class OffsetCommitKey(CoordinatorKey[OffsetCommitValue]):
    """The key of a committed offset: a group and a partition."""

    TYPE: ClassVar = 1
    VALUE: ClassVar = OffsetCommitValue

    group: str = kafka("string")
    topic: str = kafka("string")
    partition: int = kafka("int32")


def read_offset_key(key: bytes) -> OffsetCommitKey | None:
    """Read the key of a committed offset; returns None for a key of another kind. Raises a `FormatError`.

    A key from before Kafka 0.9 has the same structure, and is read as a newer one.
    """
    if read_number(key) not in (LegacyOffsetCommitKey.TYPE, OffsetCommitKey.TYPE):
        return None
    return read_key(OffsetCommitKey, key)

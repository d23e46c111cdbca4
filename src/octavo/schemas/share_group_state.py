"""The records of `__share_group_state`: which records of a partition a share group has still to deliver (KIP-932).

A snapshot holds the whole state of a partition, and updates hold what has changed since.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

from octavo.schemas.entity import entity, kafka
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue, UnknownKey, read_any_key


@entity
class StateBatch:
    """A range of offsets with the same delivery state and count."""

    first_offset: int = kafka("int64")
    last_offset: int = kafka("int64")
    delivery_state: int = kafka("int8")
    delivery_count: int = kafka("int16")


@entity
class ShareSnapshotValue(CoordinatorValue):
    """The whole share state of a partition. It replaces what was before. A record without a value removes it."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    snapshot_epoch: int = kafka("int32")
    state_epoch: int = kafka("int32")
    leader_epoch: int = kafka("int32")
    start_offset: int = kafka("int64")
    delivery_complete_count: int = kafka("int32", tag=0, default=-1)
    create_timestamp: int = kafka("int64")
    write_timestamp: int = kafka("int64")
    state_batches: tuple[StateBatch, ...] = kafka("[]")


@entity
class ShareSnapshotKey(CoordinatorKey[ShareSnapshotValue]):
    """The key of a snapshot: a share group and a partition."""

    TYPE: ClassVar = 0
    VALUE: ClassVar = ShareSnapshotValue

    group_id: str = kafka("string")
    topic_id: UUID = kafka("uuid")
    partition: int = kafka("int32")


@entity
class ShareUpdateValue(CoordinatorValue):
    """Changes of the share state since the snapshot with the same epoch."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    snapshot_epoch: int = kafka("int32")
    leader_epoch: int = kafka("int32")
    start_offset: int = kafka("int64")
    delivery_complete_count: int = kafka("int32", tag=0, default=-1)
    state_batches: tuple[StateBatch, ...] = kafka("[]")


@entity
class ShareUpdateKey(CoordinatorKey[ShareUpdateValue]):
    """The key of an update: a share group and a partition."""

    TYPE: ClassVar = 1
    VALUE: ClassVar = ShareUpdateValue

    group_id: str = kafka("string")
    topic_id: UUID = kafka("uuid")
    partition: int = kafka("int32")


KINDS: Final[dict[int, type[CoordinatorKey[Any]]]] = {kind.TYPE: kind for kind in (ShareSnapshotKey, ShareUpdateKey)}


def read_share_key(key: bytes) -> CoordinatorKey[Any] | UnknownKey:
    """Read a key of `__share_group_state`. Raises a `FormatError` if it is malformed."""
    return read_any_key(KINDS, key)

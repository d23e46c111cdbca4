"""Requests about groups and committed offsets, and their answers. Fields are called as in Kafka's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from octavo.coordinator.shard import Producer
from octavo.errors import ErrorCode
from octavo.schemas.primitives import NO_UUID

NO_OFFSET = -1


class CommittedOffset(NamedTuple):
    """An offset to be committed in a partition."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: UUID = NO_UUID


class CommitRequest(NamedTuple):
    """A group's offsets are to be committed, by a member or by somebody who is none."""

    group_id: str
    offsets: Sequence[CommittedOffset]
    member_id: str = ""
    group_instance_id: str | None = None
    generation_id_or_member_epoch: int = -1  # -1: not by a member
    retention_time_ms: int = -1
    producer: Producer | None = None  # as part of its transaction
    version: int = 10  # of OffsetCommit


class CommitAnswer(NamedTuple):
    """What came of a commit: an error of the whole, or one for each offset, in the order of the request."""

    error_code: ErrorCode
    error_codes: Sequence[ErrorCode] = ()


class FetchedOffset(NamedTuple):
    """What a group has committed in a partition."""

    topic: str
    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.NONE
    topic_id: UUID = NO_UUID  # that it was committed with


class FetchRequest(NamedTuple):
    """What has a group committed?"""

    group_id: str
    partitions: Sequence[tuple[str, int, UUID]] | None  # topic, partition, and the topic's id; None for all
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False


class FetchAnswer(NamedTuple):
    """What a group has committed."""

    error_code: ErrorCode
    offsets: Sequence[FetchedOffset] = ()


class ListedGroup(NamedTuple):
    """A group in a list."""

    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


class DeleteRequest(NamedTuple):
    """Offsets of a group are to be forgotten."""

    group_id: str
    partitions: Sequence[tuple[str, int]]


class DeleteAnswer(NamedTuple):
    """What came of it: an error of the whole, or one for each partition, in the order of the request."""

    error_code: ErrorCode
    error_codes: Sequence[ErrorCode] = ()

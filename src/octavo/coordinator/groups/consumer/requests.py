"""Requests of members of consumer groups, and their answers. Fields are called as in Kafka's protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from octavo.errors import ErrorCode
from octavo.errors.root import Signal

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2  # a static member goes, and will come back
UNCHANGED: Final = -1  # a time-out that is not told again


class ConsumerHeartbeatRequest(NamedTuple):
    """A member joins, is alive, or leaves. Fields that are None have not changed."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: Mapping[UUID, Collection[int]] | None = None  # what the member still has
    client_id: str = ""
    client_host: str = ""
    version: int = 1  # of ConsumerGroupHeartbeat


class ConsumerHeartbeatAnswer(NamedTuple):
    """What a member is told. The assignment is there when it has changed, or when all was asked for."""

    error_code: ErrorCode
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Mapping[UUID, Sequence[int]] | None = None


class DescribedPartitions(NamedTuple):
    """Partitions of one topic."""

    topic_id: UUID
    topic_name: str
    partitions: Sequence[int]


class DescribedMember(NamedTuple):
    """A member, as administrators are told of it."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    subscribed_topic_regex: str | None
    assignment: Sequence[DescribedPartitions]
    target_assignment: Sequence[DescribedPartitions]
    member_type: int  # 0: classic protocol, 1: consumer protocol


class DescribedConsumerGroup(NamedTuple):
    """A consumer group, as administrators are told of it."""

    error_code: ErrorCode
    error_message: str | None
    group_id: str
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[DescribedMember] = ()


class Refused(Signal):
    """A request cannot be granted, for a reason that Kafka has an error for."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code: Final = error_code
        self.message: Final = message

"""The messages in which consumers of a classic group say what they have subscribed to and are assigned.

The coordinator keeps them in the fields `subscription` and `assignment` of a member. They begin with their version.
"""

from __future__ import annotations

from typing import ClassVar

from octavo.schemas.entity import entity, kafka
from octavo.schemas.versioned import CoordinatorValue


@entity
class TopicPartition:
    """Partitions of one topic."""

    topic: str = kafka("string")
    partitions: tuple[int, ...] = kafka("[]int32")


@entity
class ConsumerProtocolSubscription(CoordinatorValue):
    """What a consumer has subscribed to, and the partitions that it has."""

    VERSIONS: ClassVar = range(4)
    FIRST_FLEXIBLE: ClassVar = 4

    topics: tuple[str, ...] = kafka("[]string")
    user_data: bytes | None = kafka("bytes", nullable=True, default=None)
    owned_partitions: tuple[TopicPartition, ...] = kafka("[]", since=1, default=())
    generation_id: int = kafka("int32", since=2, default=-1)
    rack_id: str | None = kafka("string", since=3, nullable=True, default=None)


@entity
class ConsumerProtocolAssignment(CoordinatorValue):
    """The partitions that the leader of the group has assigned to a consumer."""

    VERSIONS: ClassVar = range(4)
    FIRST_FLEXIBLE: ClassVar = 4

    assigned_partitions: tuple[TopicPartition, ...] = kafka("[]")
    user_data: bytes | None = kafka("bytes", nullable=True, default=None)

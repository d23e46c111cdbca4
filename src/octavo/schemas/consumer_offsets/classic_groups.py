"""Groups of the classic protocol, whose members assign the partitions themselves."""

from __future__ import annotations

from typing import ClassVar

from octavo.schemas.entity import entity, kafka
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue


@entity
class MemberMetadata:
    """A member of a classic group. `subscription` and `assignment` are in the protocol of the group's clients."""

    member_id: str = kafka("string")
    group_instance_id: str | None = kafka("string", since=3, nullable=True, default=None)
    client_id: str = kafka("string")
    client_host: str = kafka("string")
    rebalance_timeout: int = kafka("int32", since=1, default=-1)
    session_timeout: int = kafka("int32")
    subscription: bytes = kafka("bytes")
    assignment: bytes = kafka("bytes")


@entity
class GroupMetadataValue(CoordinatorValue):
    """A classic group with its members. A record without a value removes it."""

    VERSIONS: ClassVar = range(5)
    FIRST_FLEXIBLE: ClassVar = 4

    protocol_type: str = kafka("string")
    generation: int = kafka("int32")
    protocol: str | None = kafka("string", nullable=True)
    leader: str | None = kafka("string", nullable=True)
    current_state_timestamp: int = kafka("int64", since=2, default=-1)
    members: tuple[MemberMetadata, ...] = kafka("[]")


@entity
class GroupMetadataKey(CoordinatorKey[GroupMetadataValue]):
    """The key of a classic group."""

    TYPE: ClassVar = 2
    VALUE: ClassVar = GroupMetadataValue

    group: str = kafka("string")

"""Share groups (KIP-932), whose members share the records of partitions."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from octavo.schemas.entity import entity, kafka
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue


@entity
class ShareGroupMemberMetadataValue(CoordinatorValue):
    """A member of a share group and the topics that it has subscribed to."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    rack_id: str | None = kafka("string", nullable=True)
    client_id: str = kafka("string")
    client_host: str = kafka("string")
    subscribed_topic_names: tuple[str, ...] = kafka("[]string")


@entity
class ShareGroupMemberMetadataKey(CoordinatorKey[ShareGroupMemberMetadataValue]):
    """The key of a member of a share group."""

    TYPE: ClassVar = 10
    VALUE: ClassVar = ShareGroupMemberMetadataValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class ShareGroupMetadataValue(CoordinatorValue):
    """The epoch of a share group, which rises with each change of members or topics."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    epoch: int = kafka("int32")
    metadata_hash: int = kafka("int64")


@entity
class ShareGroupMetadataKey(CoordinatorKey[ShareGroupMetadataValue]):
    """The key of a share group."""

    TYPE: ClassVar = 11
    VALUE: ClassVar = ShareGroupMetadataValue

    group_id: str = kafka("string")


@entity
class ShareGroupTargetAssignmentMetadataValue(CoordinatorValue):
    """The epoch for which the target assignment was computed, and when."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    assignment_epoch: int = kafka("int32")
    assignment_timestamp: int = kafka("int64", tag=0, default=0)


@entity
class ShareGroupTargetAssignmentMetadataKey(CoordinatorKey[ShareGroupTargetAssignmentMetadataValue]):
    """The key of the target assignment of a share group."""

    TYPE: ClassVar = 12
    VALUE: ClassVar = ShareGroupTargetAssignmentMetadataValue

    group_id: str = kafka("string")


@entity
class TopicPartition:
    """Partitions of one topic in a target assignment."""

    topic_id: UUID = kafka("uuid")
    partitions: tuple[int, ...] = kafka("[]int32")


@entity
class ShareGroupTargetAssignmentMemberValue(CoordinatorValue):
    """The partitions that a member shall have."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    topic_partitions: tuple[TopicPartition, ...] = kafka("[]")


@entity
class ShareGroupTargetAssignmentMemberKey(CoordinatorKey[ShareGroupTargetAssignmentMemberValue]):
    """The key of the target assignment of one member."""

    TYPE: ClassVar = 13
    VALUE: ClassVar = ShareGroupTargetAssignmentMemberValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class TopicPartitions:
    """Partitions of one topic in a current assignment."""

    topic_id: UUID = kafka("uuid")
    partitions: tuple[int, ...] = kafka("[]int32")


@entity
class ShareGroupCurrentMemberAssignmentValue(CoordinatorValue):
    """The partitions that a member has."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    member_epoch: int = kafka("int32")
    previous_member_epoch: int = kafka("int32")
    state: int = kafka("int8")
    assigned_partitions: tuple[TopicPartitions, ...] = kafka("[]")


@entity
class ShareGroupCurrentMemberAssignmentKey(CoordinatorKey[ShareGroupCurrentMemberAssignmentValue]):
    """The key of the current assignment of one member."""

    TYPE: ClassVar = 14
    VALUE: ClassVar = ShareGroupCurrentMemberAssignmentValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class TopicPartitionsInfo:
    """Partitions of a topic, by id and name."""

    topic_id: UUID = kafka("uuid")
    topic_name: str = kafka("string")
    partitions: tuple[int, ...] = kafka("[]int32")


@entity
class TopicInfo:
    """A topic, by id and name."""

    topic_id: UUID = kafka("uuid")
    topic_name: str = kafka("string")


@entity
class ShareGroupStatePartitionMetadataValue(CoordinatorValue):
    """The topics whose share state is being initialized, is initialized, or is being deleted."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    initializing_topics: tuple[TopicPartitionsInfo, ...] = kafka("[]")
    initialized_topics: tuple[TopicPartitionsInfo, ...] = kafka("[]")
    deleting_topics: tuple[TopicInfo, ...] = kafka("[]")


@entity
class ShareGroupStatePartitionMetadataKey(CoordinatorKey[ShareGroupStatePartitionMetadataValue]):
    """The key of the state of a share group's topics."""

    TYPE: ClassVar = 15
    VALUE: ClassVar = ShareGroupStatePartitionMetadataValue

    group_id: str = kafka("string")

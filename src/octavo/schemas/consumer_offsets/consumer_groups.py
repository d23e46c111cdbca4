"""Groups of the consumer protocol (KIP-848), to whose members the broker assigns partitions."""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import UUID

from octavo.schemas.entity import entity, kafka
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue


@entity
class ConsumerGroupMetadataValue(CoordinatorValue):
    """The epoch of a consumer group, which rises with each change of members or topics."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    epoch: int = kafka("int32")
    metadata_hash: int = kafka("int64", tag=0, default=0)


@entity
class ConsumerGroupMetadataKey(CoordinatorKey[ConsumerGroupMetadataValue]):
    """The key of a consumer group."""

    TYPE: ClassVar = 3
    VALUE: ClassVar = ConsumerGroupMetadataValue

    group_id: str = kafka("string")


@entity
class PartitionMetadata:
    """A partition and the racks of its replicas."""

    partition: int = kafka("int32")
    racks: tuple[str, ...] = kafka("[]string")


@entity
class TopicMetadata:
    """A topic that the group has subscribed to."""

    topic_id: UUID = kafka("uuid")
    topic_name: str = kafka("string")
    num_partitions: int = kafka("int32")
    partition_metadata: tuple[PartitionMetadata, ...] = kafka("[]")


@entity
class ConsumerGroupPartitionMetadataValue(CoordinatorValue):
    """The topics that a consumer group has subscribed to; written before Kafka 4.1."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    topics: tuple[TopicMetadata, ...] = kafka("[]")


@entity
class ConsumerGroupPartitionMetadataKey(CoordinatorKey[ConsumerGroupPartitionMetadataValue]):
    """The key of the topics of a consumer group."""

    TYPE: ClassVar = 4
    VALUE: ClassVar = ConsumerGroupPartitionMetadataValue

    group_id: str = kafka("string")


@entity
class ClassicProtocol:
    """An assignor that a member of the classic protocol supports."""

    name: str = kafka("string")
    metadata: bytes = kafka("bytes")


@entity
class ClassicMemberMetadata:
    """What is kept about a member that still uses the classic protocol."""

    session_timeout_ms: int = kafka("int32")
    supported_protocols: tuple[ClassicProtocol, ...] = kafka("[]")


# The default by mistake in Kafka's definition: null is written, and this is not.
_NO_CLASSIC_MEMBER: Final = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())


@entity
class ConsumerGroupMemberMetadataValue(CoordinatorValue):
    """A member of a consumer group and what it has subscribed to."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    instance_id: str | None = kafka("string", nullable=True)
    rack_id: str | None = kafka("string", nullable=True)
    client_id: str = kafka("string")
    client_host: str = kafka("string")
    subscribed_topic_names: tuple[str, ...] = kafka("[]string")
    subscribed_topic_regex: str | None = kafka("string", nullable=True)
    rebalance_timeout_ms: int = kafka("int32", default=-1)
    server_assignor: str | None = kafka("string", nullable=True)
    classic_member_metadata: ClassicMemberMetadata | None = kafka(
        "struct", tag=0, nullable=True, default=_NO_CLASSIC_MEMBER
    )


@entity
class ConsumerGroupMemberMetadataKey(CoordinatorKey[ConsumerGroupMemberMetadataValue]):
    """The key of a member of a consumer group."""

    TYPE: ClassVar = 5
    VALUE: ClassVar = ConsumerGroupMemberMetadataValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class ConsumerGroupTargetAssignmentMetadataValue(CoordinatorValue):
    """The epoch for which the target assignment was computed, and when."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    assignment_epoch: int = kafka("int32")
    assignment_timestamp: int = kafka("int64", tag=0, default=0)


@entity
class ConsumerGroupTargetAssignmentMetadataKey(CoordinatorKey[ConsumerGroupTargetAssignmentMetadataValue]):
    """The key of the target assignment of a consumer group."""

    TYPE: ClassVar = 6
    VALUE: ClassVar = ConsumerGroupTargetAssignmentMetadataValue

    group_id: str = kafka("string")


@entity
class TopicPartition:
    """Partitions of one topic."""

    topic_id: UUID = kafka("uuid")
    partitions: tuple[int, ...] = kafka("[]int32")


@entity
class ConsumerGroupTargetAssignmentMemberValue(CoordinatorValue):
    """The partitions that a member shall have."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    topic_partitions: tuple[TopicPartition, ...] = kafka("[]")


@entity
class ConsumerGroupTargetAssignmentMemberKey(CoordinatorKey[ConsumerGroupTargetAssignmentMemberValue]):
    """The key of the target assignment of one member."""

    TYPE: ClassVar = 7
    VALUE: ClassVar = ConsumerGroupTargetAssignmentMemberValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class TopicPartitions:
    """Partitions of one topic, with the epochs in which the member was given them."""

    topic_id: UUID = kafka("uuid")
    partitions: tuple[int, ...] = kafka("[]int32")
    assignment_epochs: tuple[int, ...] | None = kafka("[]int32", tag=0, nullable=True, default=())


@entity
class ConsumerGroupCurrentMemberAssignmentValue(CoordinatorValue):
    """The partitions that a member has, and those that it has yet to give back."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    member_epoch: int = kafka("int32")
    previous_member_epoch: int = kafka("int32")
    state: int = kafka("int8")
    assigned_partitions: tuple[TopicPartitions, ...] = kafka("[]")
    partitions_pending_revocation: tuple[TopicPartitions, ...] = kafka("[]")


@entity
class ConsumerGroupCurrentMemberAssignmentKey(CoordinatorKey[ConsumerGroupCurrentMemberAssignmentValue]):
    """The key of the current assignment of one member."""

    TYPE: ClassVar = 8
    VALUE: ClassVar = ConsumerGroupCurrentMemberAssignmentValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class ConsumerGroupRegularExpressionValue(CoordinatorValue):
    """The topics that a regular expression matched."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    topics: tuple[str, ...] = kafka("[]string")
    version: int = kafka("int64")
    timestamp: int = kafka("int64")


@entity
class ConsumerGroupRegularExpressionKey(CoordinatorKey[ConsumerGroupRegularExpressionValue]):
    """The key of a regular expression that members have subscribed to."""

    TYPE: ClassVar = 16
    VALUE: ClassVar = ConsumerGroupRegularExpressionValue

    group_id: str = kafka("string")
    regular_expression: str = kafka("string")

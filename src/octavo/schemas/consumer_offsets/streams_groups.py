"""Groups of Kafka Streams (KIP-1071), to whose members the broker assigns tasks."""

from __future__ import annotations

from typing import ClassVar

from octavo.schemas.entity import entity, kafka
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue


@entity
class LastAssignmentConfig:
    """A configuration with which the last assignment was computed."""

    key: str = kafka("string")
    value: str = kafka("string")


@entity
class StreamsGroupMetadataValue(CoordinatorValue):
    """The epoch of a streams group, which rises with each change of members or topics."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    epoch: int = kafka("int32")
    metadata_hash: int = kafka("int64")
    validated_topology_epoch: int = kafka("int32", tag=0, default=-1)
    last_assignment_configs: tuple[LastAssignmentConfig, ...] | None = kafka("[]", tag=1, nullable=True, default=())


@entity
class StreamsGroupMetadataKey(CoordinatorKey[StreamsGroupMetadataValue]):
    """The key of a streams group."""

    TYPE: ClassVar = 17
    VALUE: ClassVar = StreamsGroupMetadataValue

    group_id: str = kafka("string")


@entity
class Endpoint:
    """An address at which a member can be queried."""

    host: str = kafka("string")
    port: int = kafka("uint16")


@entity
class KeyValue:
    """A tag of a member."""

    key: str = kafka("string")
    value: str = kafka("string")


@entity
class StreamsGroupMemberMetadataValue(CoordinatorValue):
    """A member of a streams group."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    instance_id: str | None = kafka("string", nullable=True)
    rack_id: str | None = kafka("string", nullable=True)
    client_id: str = kafka("string")
    client_host: str = kafka("string")
    rebalance_timeout_ms: int = kafka("int32", default=-1)
    topology_epoch: int = kafka("int32")
    process_id: str = kafka("string")
    user_endpoint: Endpoint | None = kafka("struct", nullable=True, default=None)
    client_tags: tuple[KeyValue, ...] = kafka("[]")


@entity
class StreamsGroupMemberMetadataKey(CoordinatorKey[StreamsGroupMemberMetadataValue]):
    """The key of a member of a streams group."""

    TYPE: ClassVar = 19
    VALUE: ClassVar = StreamsGroupMemberMetadataValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class StreamsGroupTargetAssignmentMetadataValue(CoordinatorValue):
    """The epoch for which the target assignment was computed, and when."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    assignment_epoch: int = kafka("int32")
    assignment_timestamp: int = kafka("int64", tag=0, default=0)


@entity
class StreamsGroupTargetAssignmentMetadataKey(CoordinatorKey[StreamsGroupTargetAssignmentMetadataValue]):
    """The key of the target assignment of a streams group."""

    TYPE: ClassVar = 20
    VALUE: ClassVar = StreamsGroupTargetAssignmentMetadataValue

    group_id: str = kafka("string")


@entity
class TaskIds:
    """Tasks of one subtopology."""

    subtopology_id: str = kafka("string")
    partitions: tuple[int, ...] = kafka("[]int32")


@entity
class StreamsGroupTargetAssignmentMemberValue(CoordinatorValue):
    """The tasks that a member shall have."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    active_tasks: tuple[TaskIds, ...] = kafka("[]")
    standby_tasks: tuple[TaskIds, ...] = kafka("[]")
    warmup_tasks: tuple[TaskIds, ...] = kafka("[]")


@entity
class StreamsGroupTargetAssignmentMemberKey(CoordinatorKey[StreamsGroupTargetAssignmentMemberValue]):
    """The key of the target assignment of one member."""

    TYPE: ClassVar = 21
    VALUE: ClassVar = StreamsGroupTargetAssignmentMemberValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class CurrentTaskIds:
    """Tasks of one subtopology, with the epochs in which the member was given them."""

    NAME: ClassVar = "TaskIds"

    subtopology_id: str = kafka("string")
    partitions: tuple[int, ...] = kafka("[]int32")
    assignment_epochs: tuple[int, ...] | None = kafka("[]int32", tag=0, nullable=True, default=())


@entity
class StreamsGroupCurrentMemberAssignmentValue(CoordinatorValue):
    """The tasks that a member has, and those that it has yet to give back."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    member_epoch: int = kafka("int32")
    previous_member_epoch: int = kafka("int32")
    state: int = kafka("int8")
    active_tasks: tuple[CurrentTaskIds, ...] = kafka("[]")
    standby_tasks: tuple[CurrentTaskIds, ...] = kafka("[]")
    warmup_tasks: tuple[CurrentTaskIds, ...] = kafka("[]")
    active_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = kafka("[]")
    standby_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = kafka("[]")
    warmup_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = kafka("[]")


@entity
class StreamsGroupCurrentMemberAssignmentKey(CoordinatorKey[StreamsGroupCurrentMemberAssignmentValue]):
    """The key of the current assignment of one member."""

    TYPE: ClassVar = 22
    VALUE: ClassVar = StreamsGroupCurrentMemberAssignmentValue

    group_id: str = kafka("string")
    member_id: str = kafka("string")


@entity
class TopicConfig:
    """A configuration of an internal topic."""

    key: str = kafka("string")
    value: str = kafka("string")


@entity
class TopicInfo:
    """An internal topic of a topology."""

    name: str = kafka("string")
    partitions: int = kafka("int32")
    replication_factor: int = kafka("int16")
    topic_configs: tuple[TopicConfig, ...] = kafka("[]")


@entity
class CopartitionGroup:
    """Topics that need the same number of partitions, by their index in the lists of the subtopology."""

    source_topics: tuple[int, ...] = kafka("[]int16")
    source_topic_regex: tuple[int, ...] = kafka("[]int16")
    repartition_source_topics: tuple[int, ...] = kafka("[]int16")


@entity
class Subtopology:
    """A part of a topology whose tasks run together."""

    subtopology_id: str = kafka("string")
    source_topics: tuple[str, ...] = kafka("[]string")
    source_topic_regex: tuple[str, ...] = kafka("[]string")
    state_changelog_topics: tuple[TopicInfo, ...] = kafka("[]")
    repartition_sink_topics: tuple[str, ...] = kafka("[]string")
    repartition_source_topics: tuple[TopicInfo, ...] = kafka("[]")
    copartition_groups: tuple[CopartitionGroup, ...] = kafka("[]")


@entity
class StreamsGroupTopologyValue(CoordinatorValue):
    """The topology of a streams group."""

    VERSIONS: ClassVar = range(1)
    FIRST_FLEXIBLE: ClassVar = 0

    epoch: int = kafka("int32")
    subtopologies: tuple[Subtopology, ...] = kafka("[]")


@entity
class StreamsGroupTopologyKey(CoordinatorKey[StreamsGroupTopologyValue]):
    """The key of the topology of a streams group."""

    TYPE: ClassVar = 23
    VALUE: ClassVar = StreamsGroupTopologyValue

    group_id: str = kafka("string")

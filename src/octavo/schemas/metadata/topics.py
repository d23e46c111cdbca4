"""Records for topics, partitions and configurations."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from octavo.schemas.entity import entity, kafka
from octavo.schemas.metadata.record import MetadataRecord


@entity
class TopicRecord(MetadataRecord):
    """A topic was created with this name and id."""

    TYPE: ClassVar = 2
    VERSIONS: ClassVar = range(1)

    name: str = kafka("string")
    topic_id: UUID = kafka("uuid")


@entity
class RemoveTopicRecord(MetadataRecord):
    """A topic was removed, with its partitions and its configuration."""

    TYPE: ClassVar = 9
    VERSIONS: ClassVar = range(1)

    topic_id: UUID = kafka("uuid")


@entity
class PartitionRecord(MetadataRecord):
    """The complete state of a partition. It replaces any earlier state."""

    TYPE: ClassVar = 3
    VERSIONS: ClassVar = range(3)

    partition_id: int = kafka("int32", default=-1)
    topic_id: UUID = kafka("uuid")
    replicas: tuple[int, ...] = kafka("[]int32")
    isr: tuple[int, ...] = kafka("[]int32")
    removing_replicas: tuple[int, ...] = kafka("[]int32")
    adding_replicas: tuple[int, ...] = kafka("[]int32")
    leader: int = kafka("int32", default=-1)
    leader_recovery_state: int = kafka("int8", tag=0, default=0)
    leader_epoch: int = kafka("int32", default=-1)
    partition_epoch: int = kafka("int32", default=-1)
    directories: tuple[UUID, ...] = kafka("[]uuid", since=1, default=())
    eligible_leader_replicas: tuple[int, ...] | None = kafka("[]int32", since=2, tag=1, nullable=True, default=None)
    last_known_elr: tuple[int, ...] | None = kafka("[]int32", since=2, tag=2, nullable=True, default=None)


@entity
class PartitionChangeRecord(MetadataRecord):
    """A change in a partition; unset fields stay as they are.

    Setting the leader, even to the same node, increments the leader epoch.
    """

    TYPE: ClassVar = 5
    VERSIONS: ClassVar = range(3)

    partition_id: int = kafka("int32", default=-1)
    topic_id: UUID = kafka("uuid")
    isr: tuple[int, ...] | None = kafka("[]int32", tag=0, nullable=True, default=None)
    leader: int = kafka("int32", tag=1, default=-2)
    replicas: tuple[int, ...] | None = kafka("[]int32", tag=2, nullable=True, default=None)
    removing_replicas: tuple[int, ...] | None = kafka("[]int32", tag=3, nullable=True, default=None)
    adding_replicas: tuple[int, ...] | None = kafka("[]int32", tag=4, nullable=True, default=None)
    leader_recovery_state: int = kafka("int8", tag=5, default=-1)
    directories: tuple[UUID, ...] | None = kafka("[]uuid", since=1, tag=8, nullable=True, default=None)
    eligible_leader_replicas: tuple[int, ...] | None = kafka("[]int32", since=2, tag=6, nullable=True, default=None)
    last_known_elr: tuple[int, ...] | None = kafka("[]int32", since=2, tag=7, nullable=True, default=None)


@entity
class ConfigRecord(MetadataRecord):
    """One configuration of a topic, a broker or another resource; a value of None removes it."""

    TYPE: ClassVar = 4
    VERSIONS: ClassVar = range(1)

    resource_type: int = kafka("int8")
    resource_name: str = kafka("string")
    name: str = kafka("string")
    value: str | None = kafka("string", nullable=True)


@entity
class ClearElrRecord(MetadataRecord):
    """Clears the eligible leader replicas of a topic, or of all topics if the name is empty (KIP-966)."""

    TYPE: ClassVar = 28
    VERSIONS: ClassVar = range(1)

    topic_name: str = kafka("string")

"""The kinds of records of `__remote_log_metadata`."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar
from uuid import UUID

from octavo.schemas.entity import entity, kafka
from octavo.schemas.framed import FramedRecord


class RemoteLogSegmentState(IntEnum):
    """The state of a segment in remote storage, with Kafka's numbers."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class RemotePartitionDeleteState(IntEnum):
    """How far the deletion of a partition from remote storage is, with Kafka's numbers."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


class RemoteLogMetadataRecord(FramedRecord):
    """A record of `__remote_log_metadata`; each kind is a dataclass of its own."""

    __slots__ = ()


@entity
class TopicIdPartitionEntry:
    """A partition with the id of its topic."""

    name: str = kafka("string")
    id: UUID = kafka("uuid")
    partition: int = kafka("int32")


@entity
class RemoteLogSegmentIdEntry:
    """The id of a segment in remote storage."""

    topic_id_partition: TopicIdPartitionEntry = kafka("struct")
    id: UUID = kafka("uuid")


@entity
class SegmentLeaderEpochEntry:
    """A leader epoch of a segment and its first offset."""

    leader_epoch: int = kafka("int32")
    offset: int = kafka("int64")


@entity
class RemoteLogSegmentMetadataRecord(RemoteLogMetadataRecord):
    """A segment is about to be copied to remote storage."""

    TYPE: ClassVar = 0
    VERSIONS: ClassVar = range(1)

    remote_log_segment_id: RemoteLogSegmentIdEntry = kafka("struct")
    start_offset: int = kafka("int64")
    end_offset: int = kafka("int64")
    broker_id: int = kafka("int32")
    max_timestamp_ms: int = kafka("int64")
    event_timestamp_ms: int = kafka("int64")
    segment_leader_epochs: tuple[SegmentLeaderEpochEntry, ...] = kafka("[]")
    segment_size_in_bytes: int = kafka("int32")
    custom_metadata: bytes | None = kafka("bytes", nullable=True, default=None)
    remote_log_segment_state: int = kafka("int8")
    txn_index_empty: bool = kafka("bool", tag=0, default=False)


@entity
class RemoteLogSegmentMetadataUpdateRecord(RemoteLogMetadataRecord):
    """The state of a segment in remote storage has changed."""

    TYPE: ClassVar = 1
    VERSIONS: ClassVar = range(1)

    remote_log_segment_id: RemoteLogSegmentIdEntry = kafka("struct")
    broker_id: int = kafka("int32")
    event_timestamp_ms: int = kafka("int64")
    custom_metadata: bytes | None = kafka("bytes", nullable=True, default=None)
    remote_log_segment_state: int = kafka("int8")


@entity
class RemotePartitionDeleteMetadataRecord(RemoteLogMetadataRecord):
    """The deletion of a partition from remote storage has advanced."""

    TYPE: ClassVar = 2
    VERSIONS: ClassVar = range(1)

    topic_id_partition: TopicIdPartitionEntry = kafka("struct")
    broker_id: int = kafka("int32")
    event_timestamp_ms: int = kafka("int64")
    remote_partition_delete_state: int = kafka("int8")


@entity
class RemoteLogSegmentMetadataSnapshotRecord(RemoteLogMetadataRecord):
    """A segment in a snapshot of a partition's remote segments; not written to the topic."""

    TYPE: ClassVar = 3
    VERSIONS: ClassVar = range(1)

    segment_id: UUID = kafka("uuid")
    start_offset: int = kafka("int64")
    end_offset: int = kafka("int64")
    broker_id: int = kafka("int32")
    max_timestamp_ms: int = kafka("int64")
    event_timestamp_ms: int = kafka("int64")
    segment_leader_epochs: tuple[SegmentLeaderEpochEntry, ...] = kafka("[]")
    segment_size_in_bytes: int = kafka("int32")
    custom_metadata: bytes | None = kafka("bytes", nullable=True, default=None)
    remote_log_segment_state: int = kafka("int8")
    txn_index_empty: bool = kafka("bool", tag=0, default=False)

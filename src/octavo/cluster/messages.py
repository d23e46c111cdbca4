"""Requests of a broker to controllers and leaders, and their answers, as far as decisions depend on them.

Names of fields are Kafka's. What is the same in every request, and what is only for the wire, such as how partitions
are grouped by topics, is left to the one who encodes them. `error_code` may be a code that `ErrorCode` does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from octavo.errors import ErrorCode

NONE: Final = int(ErrorCode.NONE)
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
NO_NODE: Final = -1

LATEST: Final = -1  # timestamps of ListOffsets
EARLIEST_LOCAL: Final = -4


class TopicIdPartition(NamedTuple):
    """A partition, by the id of its topic: a topic that is deleted and created again has another one."""

    topic_id: UUID
    partition: int


class EpochEndOffset(NamedTuple):
    """An epoch, and the offset at which a leader has its end."""

    epoch: int
    end_offset: int


# --------------------------------------------------------------------------------------------------- Fetch, to a leader


class FetchPartition(NamedTuple):
    """What is asked of one partition."""

    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FetchRequest(NamedTuple):
    """Fetch, of a replica. `session_epoch` 0: a full request; from 1 on, only what has changed is in it."""

    session_id: int
    session_epoch: int
    partitions: Mapping[TopicIdPartition, FetchPartition]
    forgotten: Sequence[TopicIdPartition] = ()


class FetchedPartition(NamedTuple):
    """The answer for one partition."""

    error_code: int = NONE
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: bytes | memoryview = b""
    diverging_epoch: EpochEndOffset | None = None


class FetchAnswer(NamedTuple):
    """The answer to Fetch. In a session, partitions with nothing new are left out."""

    error_code: int
    session_id: int
    partitions: Mapping[TopicIdPartition, FetchedPartition]


class ListOffsetsPartition(NamedTuple):
    """What is asked of one partition: the offset of a timestamp, such as `LATEST`."""

    current_leader_epoch: int
    timestamp: int


class ListOffsetsRequest(NamedTuple):
    """ListOffsets, of a replica."""

    partitions: Mapping[TopicIdPartition, ListOffsetsPartition]


class ListedOffset(NamedTuple):
    """The answer for one partition."""

    error_code: int
    offset: int = NO_OFFSET


# ------------------------------------------------------------------------------------ AlterPartition, to the controller


class BrokerState(NamedTuple):
    """A replica that is to be in sync, with the epoch of its broker; -1 if that is not known."""

    broker_id: int
    broker_epoch: int


class AlterPartitionChange(NamedTuple):
    """What is asked of one partition."""

    leader_epoch: int
    partition_epoch: int
    new_isr_with_epochs: Sequence[BrokerState]
    leader_recovery_state: int = 0


class AlterPartitionRequest(NamedTuple):
    """AlterPartition."""

    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicIdPartition, AlterPartitionChange]


class AlteredPartition(NamedTuple):
    """The answer for one partition."""

    error_code: int
    leader_epoch: int = NO_EPOCH
    isr: Sequence[int] = ()
    partition_epoch: int = NO_EPOCH


class AlterPartitionAnswer(NamedTuple):
    """The answer to AlterPartition."""

    error_code: int
    partitions: Mapping[TopicIdPartition, AlteredPartition]


# ---------------------------------------------------------------------------------------- life cycle, to the controller


class Listener(NamedTuple):
    """An address at which a broker is reached."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class Feature(NamedTuple):
    """The levels of a feature that a broker supports."""

    name: str
    min_supported_version: int
    max_supported_version: int


class BrokerRegistrationRequest(NamedTuple):
    """BrokerRegistration."""

    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    listeners: Sequence[Listener]
    features: Sequence[Feature]
    rack: str | None
    log_dirs: Sequence[UUID]
    previous_broker_epoch: int


class BrokerRegistrationAnswer(NamedTuple):
    """The answer to BrokerRegistration."""

    error_code: int
    broker_epoch: int = NO_EPOCH


class BrokerHeartbeatRequest(NamedTuple):
    """BrokerHeartbeat."""

    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: Sequence[UUID] = ()
    cordoned_log_dirs: Sequence[UUID] | None = None


class BrokerHeartbeatAnswer(NamedTuple):
    """The answer to BrokerHeartbeat."""

    error_code: int
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


# ------------------------------------------------------------------------------------- metadata log, to the controllers


class Endpoint(NamedTuple):
    """Where a node listens."""

    host: str
    port: int


class CurrentLeader(NamedTuple):
    """The leader of the quorum and its epoch; -1 for what is not known."""

    leader_id: int = NO_NODE
    leader_epoch: int = NO_EPOCH


class SnapshotId(NamedTuple):
    """A snapshot of the metadata: the offset at which it ends, and the epoch of the last record before that."""

    end_offset: int
    epoch: int


class MetadataFetchRequest(NamedTuple):
    """Fetch, of the metadata log."""

    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    high_watermark: int


class MetadataFetchAnswer(NamedTuple):
    """The answer to it. `top_error_code` is that of the whole answer, `error_code` that of the partition."""

    top_error_code: int = NONE
    error_code: int = NONE
    current_leader: CurrentLeader = CurrentLeader()
    node_endpoints: Mapping[int, Endpoint] = {}
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: bytes | memoryview = b""
    diverging_epoch: EpochEndOffset | None = None
    snapshot_id: SnapshotId | None = None


class FetchSnapshotRequest(NamedTuple):
    """FetchSnapshot, of the metadata log."""

    current_leader_epoch: int
    snapshot_id: SnapshotId
    position: int


class FetchSnapshotAnswer(NamedTuple):
    """The answer to it."""

    top_error_code: int = NONE
    error_code: int = NONE
    current_leader: CurrentLeader = CurrentLeader()
    node_endpoints: Mapping[int, Endpoint] = {}
    snapshot_id: SnapshotId = SnapshotId(NO_OFFSET, NO_EPOCH)
    size: int = 0
    position: int = 0
    unaligned_records: bytes | memoryview = b""

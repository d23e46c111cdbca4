"""Write what a member asks of controllers and leaders, and read their answers.

The requests and answers are those of `octavo.cluster.messages`; Fetch is in `replica_fetch`. All readers raise
`MalformedRequest`. What the same version of an API always has, such as the name of the metadata topic, is added here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from octavo.broker.wire.api_keys import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    ASSIGN_REPLICAS_TO_DIRS,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    ENVELOPE,
    FETCH_SNAPSHOT,
    LIST_OFFSETS,
)
from octavo.broker.wire.messages import Content, read_response, write_request
from octavo.cluster.messages import (
    NONE,
    AlteredPartition,
    AlterPartitionAnswer,
    AlterPartitionRequest,
    BrokerHeartbeatAnswer,
    BrokerHeartbeatRequest,
    BrokerRegistrationAnswer,
    BrokerRegistrationRequest,
    CurrentLeader,
    Endpoint,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    ListedOffset,
    ListOffsetsRequest,
    SnapshotId,
    TopicIdPartition,
)
from octavo.errors import MalformedRequest

# The newest versions that are written, which are those of Apache Kafka 4.3.
FETCH_SNAPSHOT_VERSION: Final = 1
BROKER_REGISTRATION_VERSION: Final = 4
BROKER_HEARTBEAT_VERSION: Final = 2
ALTER_PARTITION_VERSION: Final = 3
ALLOCATE_PRODUCER_IDS_VERSION: Final = 0
ASSIGN_REPLICAS_TO_DIRS_VERSION: Final = 0
ENVELOPE_VERSION: Final = 0

_METADATA_TOPIC: Final = "__cluster_metadata"
_SNAPSHOT_BYTES: Final = 1 << 20  # controller.quorum.fetch.snapshot.max.bytes


# --------------------------------------------------------------------------------------------------------- life cycle


def write_broker_registration(request: BrokerRegistrationRequest) -> bytes:
    """Return the body of a BrokerRegistration."""
    content = request._asdict() | {
        "incarnation_id": request.incarnation_id.bytes,
        "listeners": [each._asdict() for each in request.listeners],
        "features": [each._asdict() for each in request.features],
        "log_dirs": _bytes_of(request.log_dirs),
    }
    return write_request(BROKER_REGISTRATION, BROKER_REGISTRATION_VERSION, content)


def read_broker_registration(body: memoryview) -> BrokerRegistrationAnswer:
    """Read the answer to a BrokerRegistration."""
    answer = read_response(BROKER_REGISTRATION, BROKER_REGISTRATION_VERSION, body)
    return BrokerRegistrationAnswer(answer.error_code, answer.broker_epoch)


def write_broker_heartbeat(request: BrokerHeartbeatRequest, version: int = BROKER_HEARTBEAT_VERSION) -> bytes:
    """Return the body of a BrokerHeartbeat. Before version 2 it names no cordoned directories."""
    cordoned = request.cordoned_log_dirs
    content = request._asdict() | {
        "offline_log_dirs": _bytes_of(request.offline_log_dirs),
        "cordoned_log_dirs": None if cordoned is None else _bytes_of(cordoned),
    }
    return write_request(BROKER_HEARTBEAT, version, content)


def read_broker_heartbeat(body: memoryview, version: int = BROKER_HEARTBEAT_VERSION) -> BrokerHeartbeatAnswer:
    """Read the answer to a BrokerHeartbeat."""
    answer = read_response(BROKER_HEARTBEAT, version, body)
    return BrokerHeartbeatAnswer(answer.error_code, answer.is_caught_up, answer.is_fenced, answer.should_shut_down)


# ---------------------------------------------------------------------------------------------------------- partitions


def write_alter_partition(request: AlterPartitionRequest) -> bytes:
    """Return the body of an AlterPartition."""
    partitions = (
        (
            partition,
            change._asdict() | {"new_isr_with_epochs": [each._asdict() for each in change.new_isr_with_epochs]},
        )
        for partition, change in request.partitions.items()
    )
    content = {
        "broker_id": request.broker_id,
        "broker_epoch": request.broker_epoch,
        "topics": [
            {"topic_id": topic_id.bytes, "partitions": several} for topic_id, several in _by_topic(partitions).items()
        ],
    }
    return write_request(ALTER_PARTITION, ALTER_PARTITION_VERSION, content)


def read_alter_partition(body: memoryview) -> AlterPartitionAnswer:
    """Read the answer to an AlterPartition."""
    answer = read_response(ALTER_PARTITION, ALTER_PARTITION_VERSION, body)
    partitions = {
        TopicIdPartition(UUID(bytes=topic.topic_id), each.partition_index): AlteredPartition(
            each.error_code, each.leader_epoch, each.isr, each.partition_epoch
        )
        for topic in answer.topics
        for each in topic.partitions
    }
    return AlterPartitionAnswer(answer.error_code, partitions)


def write_assign_replicas_to_dirs(
    broker_id: int, broker_epoch: int, directory_id: UUID, partitions: Sequence[TopicIdPartition]
) -> bytes:
    """Return the body of an AssignReplicasToDirs that names one directory."""
    topics = _by_topic((each, {}) for each in partitions)
    content = {
        "broker_id": broker_id,
        "broker_epoch": broker_epoch,
        "directories": [
            {
                "id_": directory_id.bytes,
                "topics": [{"topic_id": topic.bytes, "partitions": several} for topic, several in topics.items()],
            }
        ],
    }
    return write_request(ASSIGN_REPLICAS_TO_DIRS, ASSIGN_REPLICAS_TO_DIRS_VERSION, content)


def read_assign_replicas_to_dirs(body: memoryview) -> tuple[int, dict[TopicIdPartition, int]]:
    """Read the answer to an AssignReplicasToDirs: the error code of all of it, and of each partition."""
    answer = read_response(ASSIGN_REPLICAS_TO_DIRS, ASSIGN_REPLICAS_TO_DIRS_VERSION, body)
    codes = {
        TopicIdPartition(UUID(bytes=topic.topic_id), each.partition_index): each.error_code
        for directory in answer.directories
        for topic in directory.topics
        for each in topic.partitions
    }
    return answer.error_code, codes


def list_offsets_version(metadata_version: int) -> int:
    """Return the version of ListOffsets that replicas use, by the level of metadata.version."""
    levels = ((29, 11), (25, 10), (21, 9), (9, 8))
    return next((version for level, version in levels if metadata_version >= level), 7)


def write_list_offsets(
    request: ListOffsetsRequest, version: int, *, broker_id: int, name_of: Callable[[UUID], str]
) -> bytes:
    """Return the body of a replica's ListOffsets, which has names of topics in it."""
    partitions = _by_topic((partition, asked._asdict()) for partition, asked in request.partitions.items())
    content = {
        "replica_id": broker_id,
        "isolation_level": 0,
        "topics": [{"name": name_of(topic_id), "partitions": several} for topic_id, several in partitions.items()],
    }
    return write_request(LIST_OFFSETS, version, content)


def read_list_offsets(
    body: memoryview, version: int, *, id_of: Callable[[str], UUID | None]
) -> dict[TopicIdPartition, ListedOffset]:
    """Read the answer to a ListOffsets. Topics without an id are left out."""
    answer = read_response(LIST_OFFSETS, version, body)
    return {
        TopicIdPartition(topic_id, each.partition_index): ListedOffset(each.error_code, each.offset)
        for topic in answer.topics
        if (topic_id := id_of(topic.name)) is not None
        for each in topic.partitions
    }


# ------------------------------------------------------------------------------------------------------------ metadata


def write_fetch_snapshot(
    request: FetchSnapshotRequest, *, cluster_id: str | None, broker_id: int, directory_id: UUID
) -> bytes:
    """Return the body of a FetchSnapshot."""
    partition = {
        "partition": 0,
        "current_leader_epoch": request.current_leader_epoch,
        "snapshot_id": request.snapshot_id._asdict(),
        "position": request.position,
        "replica_directory_id": directory_id.bytes,
    }
    content = {
        "cluster_id": cluster_id,
        "replica_id": broker_id,
        "max_bytes": _SNAPSHOT_BYTES,
        "topics": [{"name": _METADATA_TOPIC, "partitions": [partition]}],
    }
    return write_request(FETCH_SNAPSHOT, FETCH_SNAPSHOT_VERSION, content)


def read_fetch_snapshot(body: memoryview) -> FetchSnapshotAnswer:
    """Read the answer to a FetchSnapshot."""
    answer = read_response(FETCH_SNAPSHOT, FETCH_SNAPSHOT_VERSION, body)
    if answer.error_code != NONE:
        return FetchSnapshotAnswer(answer.error_code)
    if len(answer.topics) != 1 or len(answer.topics[0].partitions) != 1:
        raise MalformedRequest("the answer to a FetchSnapshot has not exactly one partition")
    [found] = answer.topics[0].partitions
    leader = found.current_leader
    return FetchSnapshotAnswer(
        NONE,
        found.error_code,
        CurrentLeader() if leader is None else CurrentLeader(leader.leader_id, leader.leader_epoch),
        {each.node_id: Endpoint(each.host, each.port) for each in answer.node_endpoints},
        SnapshotId(found.snapshot_id.end_offset, found.snapshot_id.epoch),
        found.size,
        found.position,
        found.unaligned_records,
    )


# ------------------------------------------------------------------------------------------------------------ the rest


class ProducerIds(NamedTuple):
    """A block of producer ids that belongs to one broker."""

    error_code: int
    first: int
    length: int


def write_allocate_producer_ids(broker_id: int, broker_epoch: int) -> bytes:
    """Return the body of an AllocateProducerIds."""
    content = {"broker_id": broker_id, "broker_epoch": broker_epoch}
    return write_request(ALLOCATE_PRODUCER_IDS, ALLOCATE_PRODUCER_IDS_VERSION, content)


def read_allocate_producer_ids(body: memoryview) -> ProducerIds:
    """Read the answer to an AllocateProducerIds."""
    answer = read_response(ALLOCATE_PRODUCER_IDS, ALLOCATE_PRODUCER_IDS_VERSION, body)
    return ProducerIds(answer.error_code, answer.producer_id_start, answer.producer_id_len)


def write_envelope(request_data: bytes, request_principal: bytes | None, client_host_address: bytes) -> bytes:
    """Return the body of an Envelope. `request_data` has the header of the client's request, and no size before it."""
    content = {
        "request_data": request_data,
        "request_principal": request_principal,
        "client_host_address": client_host_address,
    }
    return write_request(ENVELOPE, ENVELOPE_VERSION, content)


def read_envelope(body: memoryview) -> tuple[int, bytes | None]:
    """Read the answer to an Envelope: its error code, and the answer in it, which begins with a header."""
    answer = read_response(ENVELOPE, ENVELOPE_VERSION, body)
    return answer.error_code, answer.response_data


def _bytes_of(ids: Iterable[UUID]) -> list[bytes]:
    return [each.bytes for each in ids]


def _by_topic(partitions: Iterable[tuple[TopicIdPartition, Content]]) -> dict[UUID, list[dict[str, Any]]]:
    topics: dict[UUID, list[dict[str, Any]]] = {}
    for (topic_id, partition), content in partitions:
        topics.setdefault(topic_id, []).append({"partition_index": partition, **content})
    return topics

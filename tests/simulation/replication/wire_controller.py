"""The model of the controller, asked by bytes (`WireController`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from octavo.broker.wire.api_keys import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    API_VERSIONS,
    ASSIGN_REPLICAS_TO_DIRS,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    ENVELOPE,
    FETCH,
    FETCH_SNAPSHOT,
)
from octavo.broker.wire.messages import Struct, read_request, write_response
from octavo.cluster.messages import (
    NONE,
    AlterPartitionAnswer,
    AlterPartitionChange,
    AlterPartitionRequest,
    BrokerHeartbeatAnswer,
    BrokerHeartbeatRequest,
    BrokerRegistrationAnswer,
    BrokerRegistrationRequest,
    BrokerState,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
    TopicIdPartition,
)
from octavo.log.names import METADATA_TOPIC
from tests.simulation.replication.network import Reply
from tests.simulation.replication.wire_log import WireLog

if TYPE_CHECKING:
    from tests.simulation.replication.world import World

KINDS: Final = {
    API_VERSIONS: "versions",
    FETCH: "metadata",
    FETCH_SNAPSHOT: "metadata",
    BROKER_REGISTRATION: "registration",
    BROKER_HEARTBEAT: "heartbeat",
    ALTER_PARTITION: "change",
    ASSIGN_REPLICAS_TO_DIRS: "directories",
}
_SERVED: Final = {  # what a broker wants to ask, in the versions of 4.3
    "error_code": NONE,
    "api_keys": [
        {"api_key": api_key, "min_version": 0, "max_version": 18}
        for api_key in (*KINDS, ALLOCATE_PRODUCER_IDS, ENVELOPE)
    ],
}
_METADATA_ID: Final = UUID(int=1).bytes
_LOOK_MS: Final = 10  # how often the controller looks whether there is something new to answer
_WAIT_MS: Final = 150  # before it answers that there is nothing


class WireController:
    """Reads requests, asks the model, and writes answers."""

    def __init__(self, world: World) -> None:
        self._world: Final = world
        self.log: Final = WireLog(world.controller.log, world.controller.min_isr)

    def serve(self, api_key: int, version: int, body: bytes, reply: Reply) -> None:
        """Answer a request, now or later."""
        request = read_request(api_key, version, memoryview(body))
        if api_key == API_VERSIONS:
            reply(_write(api_key, version, _SERVED))
            return
        if api_key == FETCH:
            self._fetch(_metadata_fetch(request), reply, self._world.now_ms + _WAIT_MS)
            return
        if api_key == ASSIGN_REPLICAS_TO_DIRS:
            reply(_write(api_key, version, _assigned(request)))  # the log knows already, see `WireLog`
            return
        if api_key == FETCH_SNAPSHOT:
            reply(_write(api_key, version, _snapshot_content(self.log.fetch_snapshot(_snapshot(request)))))
            return
        serve, content_of = self._asked(api_key, request)
        written = self._world.when_committed(serve)
        written(lambda answer: reply(_write(api_key, version, content_of(answer))))

    def _asked(self, api_key: int, request: Struct) -> tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]:
        controller, now_ms = self._world.controller, self._world.now_ms
        if api_key == BROKER_REGISTRATION:
            return partial(controller.register, _registration(request), now_ms), _registered
        if api_key == BROKER_HEARTBEAT:
            return partial(controller.heartbeat, self._heartbeat(request), now_ms), _heard
        assert api_key == ALTER_PARTITION
        return partial(controller.alter_partition, _alteration(request)), _altered

    def _heartbeat(self, request: Struct) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            request.broker_id,
            request.broker_epoch,
            self.log.index_of(request.current_metadata_offset + 1) - 1,
            request.want_fence,
            request.want_shut_down,
        )

    def _fetch(self, request: MetadataFetchRequest, reply: Reply, until_ms: int) -> None:
        answer = self.log.fetch(request)
        is_nothing = answer == MetadataFetchAnswer(high_watermark=answer.high_watermark, log_start_offset=0)
        if is_nothing and answer.high_watermark <= request.high_watermark and self._world.now_ms < until_ms:
            self._world.at(_LOOK_MS, lambda: self._fetch(request, reply, until_ms))
        else:
            reply(_write(FETCH, 18, _fetched(answer)))


# ------------------------------------------------------------------------------------------------ requests and answers


def _write(api_key: int, version: int, content: dict[str, Any]) -> bytes:
    return write_response(api_key, version, {"throttle_time_ms": 0, **content})


def _metadata_fetch(request: Struct) -> MetadataFetchRequest:
    asked = request.topics[0].partitions[0]
    return MetadataFetchRequest(
        asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch, asked.high_watermark
    )


def _fetched(answer: MetadataFetchAnswer) -> dict[str, Any]:
    partition: dict[str, Any] = {
        "partition_index": 0,
        "error_code": answer.error_code,
        "high_watermark": answer.high_watermark,
        "last_stable_offset": -1,
        "log_start_offset": answer.log_start_offset,
        "current_leader": answer.current_leader._asdict(),
        "aborted_transactions": None,
        "preferred_read_replica": -1,
        "records": bytes(answer.records),
    }
    if answer.diverging_epoch is not None:
        partition["diverging_epoch"] = answer.diverging_epoch._asdict()
    if answer.snapshot_id is not None:
        partition["snapshot_id"] = answer.snapshot_id._asdict()
    nodes = [
        {"node_id": number, "host": endpoint.host, "port": endpoint.port, "rack": None}
        for number, endpoint in answer.node_endpoints.items()
    ]
    topics = [{"topic_id": _METADATA_ID, "partitions": [partition]}]
    return {"error_code": NONE, "session_id": 0, "responses": topics, "node_endpoints": nodes}


def _snapshot(request: Struct) -> FetchSnapshotRequest:
    asked = request.topics[0].partitions[0]
    snapshot_id = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    return FetchSnapshotRequest(asked.current_leader_epoch, snapshot_id, asked.position)


def _snapshot_content(answer: FetchSnapshotAnswer) -> dict[str, Any]:
    if answer.top_error_code != NONE:
        return {"error_code": answer.top_error_code, "topics": []}
    partition = {
        "index": 0,
        "error_code": NONE,
        "snapshot_id": answer.snapshot_id._asdict(),
        "size": answer.size,
        "position": answer.position,
        "unaligned_records": bytes(answer.unaligned_records),
    }
    return {"error_code": NONE, "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}]}


def _registration(request: Struct) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        request.broker_id,
        request.cluster_id,
        UUID(bytes=bytes(request.incarnation_id)),
        (),
        (),
        request.rack,
        tuple(UUID(bytes=bytes(each)) for each in request.log_dirs),
        request.previous_broker_epoch,
    )


def _registered(answer: BrokerRegistrationAnswer) -> dict[str, Any]:
    return answer._asdict()


def _heard(answer: BrokerHeartbeatAnswer) -> dict[str, Any]:
    return answer._asdict()


def _assigned(request: Struct) -> dict[str, Any]:
    directories = [
        {
            "id": bytes(directory.id),
            "topics": [
                {
                    "topic_id": bytes(topic.topic_id),
                    "partitions": [
                        {"partition_index": each.partition_index, "error_code": NONE} for each in topic.partitions
                    ],
                }
                for topic in directory.topics
            ],
        }
        for directory in request.directories
    ]
    return {"error_code": NONE, "directories": directories}


def _alteration(request: Struct) -> AlterPartitionRequest:
    partitions = {
        TopicIdPartition(UUID(bytes=bytes(topic.topic_id)), each.partition_index): AlterPartitionChange(
            each.leader_epoch,
            each.partition_epoch,
            tuple(BrokerState(member.broker_id, member.broker_epoch) for member in each.new_isr_with_epochs),
            each.leader_recovery_state,
        )
        for topic in request.topics
        for each in topic.partitions
    }
    return AlterPartitionRequest(request.broker_id, request.broker_epoch, partitions)


def _altered(answer: AlterPartitionAnswer) -> dict[str, Any]:
    topics = [
        {
            "topic_id": partition.topic_id.bytes,
            "partitions": [
                {
                    "partition_index": partition.partition,
                    "error_code": each.error_code,
                    "leader_id": -1,
                    "leader_epoch": each.leader_epoch,
                    "isr": list(each.isr),
                    "leader_recovery_state": 0,
                    "partition_epoch": each.partition_epoch,
                }
            ],
        }
        for partition, each in answer.partitions.items()
    ]
    return {"error_code": answer.error_code, "topics": topics}

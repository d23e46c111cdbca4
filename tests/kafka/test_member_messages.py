"""What a member asks, and nodes of Apache Kafka that answer it, and log what they have read."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from octavo.broker.wire import api_keys, member_messages, replica_fetch
from octavo.broker.wire.messages import read_response, write_request
from octavo.cluster.messages import (
    EARLIEST_LOCAL,
    LATEST,
    AlterPartitionChange,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerState,
    Endpoint,
    EpochEndOffset,
    Feature,
    FetchPartition,
    FetchRequest,
    FetchSnapshotRequest,
    Listener,
    ListOffsetsPartition,
    ListOffsetsRequest,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
    TopicIdPartition,
)
from octavo.errors import ErrorCode
from tests.batches import build
from tests.kafka.answers import BatchSpec, RecordSpec
from tests.kafka.asking import MemberAsker, member_asker
from tests.kafka.client import produce
from tests.kafka.cluster import CLUSTER_ID, FIRST_CONTROLLER, StockCluster

KAFKA, MEMBER = 2, 3
INCARNATION, DIRECTORY = uuid4(), UUID(bytes=b"a directory's id")
LIMITS = replica_fetch.FetchLimits(max_wait_ms=0)
ANONYMOUS = b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0\0"
FEATURES = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}
REGISTRATION = BrokerRegistrationRequest(
    MEMBER,
    CLUSTER_ID,
    INCARNATION,
    [Listener("PLAINTEXT", "127.0.0.1", 45678)],
    [Feature(name, *levels) for name, levels in FEATURES.items()],
    "a rack",
    [DIRECTORY],
    -1,
)


class Conversation:
    """A cluster of one controller and one broker of Apache Kafka, and a member that is played."""

    def __init__(self, cluster: StockCluster, asker: MemberAsker) -> None:
        self.cluster = cluster
        self.asker = asker
        self.controller = Endpoint("127.0.0.1", cluster.controllers[0].controller_port)
        self.broker = Endpoint("127.0.0.1", cluster.brokers[KAFKA].port)
        self.broker_epoch = -1

    def fetch_metadata(self, request: MetadataFetchRequest) -> MetadataFetchAnswer:
        body = replica_fetch.write_metadata_fetch(
            request, cluster_id=CLUSTER_ID, broker_id=MEMBER, directory_id=DIRECTORY
        )

        def read(data: memoryview) -> MetadataFetchAnswer:
            answer = replica_fetch.read_metadata_fetch(data)
            return answer._replace(records=bytes(answer.records))

        return self.asker.ask(self.controller, "metadata", api_keys.FETCH, 18, body, read)

    def register(self, request: BrokerRegistrationRequest) -> Any:
        return self.asker.ask(
            self.controller,
            "life",
            api_keys.BROKER_REGISTRATION,
            member_messages.BROKER_REGISTRATION_VERSION,
            member_messages.write_broker_registration(request),
            member_messages.read_broker_registration,
        )

    def beat(self, request: BrokerHeartbeatRequest) -> Any:
        return self.asker.ask(
            self.controller,
            "life",
            api_keys.BROKER_HEARTBEAT,
            member_messages.BROKER_HEARTBEAT_VERSION,
            member_messages.write_broker_heartbeat(request),
            member_messages.read_broker_heartbeat,
        )

    def create_topic(self, name: str, replicas: list[list[int]]) -> UUID:
        """Through the controller, in an Envelope."""
        assignments = [{"partition_index": index, "broker_ids": ids} for index, ids in enumerate(replicas)]
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        inner = struct.pack(">hhih", api_keys.CREATE_TOPICS, 7, 99, 1) + b"c\0"
        inner += write_request(api_keys.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 20_000})
        body = member_messages.write_envelope(inner, ANONYMOUS, b"\x7f\0\0\1")
        error_code, answer = self.asker.ask(
            self.controller, "forward", api_keys.ENVELOPE, 0, body, member_messages.read_envelope
        )
        assert error_code == 0
        assert answer is not None
        assert answer[:5] == struct.pack(">i", 99) + b"\0"
        [created] = read_response(api_keys.CREATE_TOPICS, 7, memoryview(answer)[5:]).topics
        assert created.error_code == 0, created.error_message
        return UUID(bytes=created.topic_id)

    def alter(self, changes: dict[TopicIdPartition, AlterPartitionChange]) -> Any:
        return self.asker.ask(
            self.controller,
            "changes",
            api_keys.ALTER_PARTITION,
            member_messages.ALTER_PARTITION_VERSION,
            member_messages.write_alter_partition(AlterPartitionRequest(MEMBER, self.broker_epoch, changes)),
            member_messages.read_alter_partition,
        )

    def logged(self, name: str, number: int) -> Any:
        """A request of a kind as the controller has read it; it is logged after the answer was sent."""
        while True:
            lines = self.cluster.controllers[0].lines_with("Completed request:")
            every = [json.loads(line.partition("Completed request:")[2]) for line in lines if line.endswith("}")]
            own = [each for each in every if each["requestHeader"]["clientId"] == "a member"]
            found = [each["request"] for each in own if each["requestHeader"]["requestApiKeyName"] == name]
            if len(found) > number:
                return found[number]


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory, java: str) -> Iterator[Conversation]:
    """The member is registered and unfenced."""
    folder: Path = tmp_path_factory.mktemp("cluster")
    settings = {"broker.session.timeout.ms": "60000", "metadata.log.max.record.bytes.between.snapshots": "8000"}
    with StockCluster(folder, settings=settings, logs_requests=True) as cluster, member_asker() as asker:
        cluster.start()
        cluster.new_broker(KAFKA).start()
        talk = Conversation(cluster, asker)
        answer = talk.register(REGISTRATION)
        assert answer.error_code == 0
        talk.broker_epoch = answer.broker_epoch
        heartbeat = BrokerHeartbeatRequest(MEMBER, answer.broker_epoch, 1 << 40, want_fence=False, want_shut_down=False)
        assert talk.beat(heartbeat._replace(want_fence=True)) == (0, True, True, False)
        assert talk.beat(heartbeat) == (0, True, False, False)
        yield talk


def test_registration(talk: Conversation) -> None:
    assert talk.register(REGISTRATION._replace(cluster_id="another")).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    other = REGISTRATION._replace(incarnation_id=uuid4())
    assert talk.register(other).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    first = talk.logged("BROKER_REGISTRATION", 0)
    assert first["listeners"] == [
        {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 45678, "securityProtocol": 0},
    ]
    told = {each["name"]: (each["minSupportedVersion"], each["maxSupportedVersion"]) for each in first["features"]}
    assert told == FEATURES
    assert (first["rack"], first["previousBrokerEpoch"]) == ("a rack", -1)
    assert len(first["logDirs"]) == 1


def test_heartbeat(talk: Conversation) -> None:
    request = BrokerHeartbeatRequest(
        MEMBER, 4711, 5, want_fence=True, want_shut_down=True, offline_log_dirs=[uuid4()], cordoned_log_dirs=[]
    )
    assert talk.beat(request).error_code == ErrorCode.STALE_BROKER_EPOCH
    told = talk.logged("BROKER_HEARTBEAT", 2)  # after two of the fixture
    assert (told["brokerEpoch"], told["currentMetadataOffset"]) == (4711, 5)
    assert (told["wantFence"], told["wantShutDown"]) == (True, True)
    assert (len(told["offlineLogDirs"]), told["cordonedLogDirs"]) == (1, [])


def test_producer_ids(talk: Conversation) -> None:
    blocks = [
        talk.asker.ask(
            talk.controller,
            "life",
            api_keys.ALLOCATE_PRODUCER_IDS,
            member_messages.ALLOCATE_PRODUCER_IDS_VERSION,
            member_messages.write_allocate_producer_ids(MEMBER, epoch),
            member_messages.read_allocate_producer_ids,
        )
        for epoch in (talk.broker_epoch, talk.broker_epoch, 4711)
    ]
    assert blocks[1] == (0, blocks[0].first + 1000, 1000)
    assert blocks[2].error_code == ErrorCode.STALE_BROKER_EPOCH


def test_the_replicas_in_sync_are_changed(talk: Conversation) -> None:
    topic_id = talk.create_topic("led", [[MEMBER, KAFKA], [MEMBER, KAFKA], [KAFKA, MEMBER]])
    places = [TopicIdPartition(topic_id, index) for index in range(3)]
    alone = [BrokerState(MEMBER, talk.broker_epoch)]
    answer = talk.alter(
        {
            places[0]: AlterPartitionChange(0, 0, alone),
            places[1]: AlterPartitionChange(0, 0, [*alone, BrokerState(9, -1)]),
            places[2]: AlterPartitionChange(0, 0, alone),
            TopicIdPartition(uuid4(), 0): AlterPartitionChange(0, 0, alone),
        }
    )
    assert answer.error_code == 0
    assert len(answer.partitions) == 4
    assert answer.partitions[places[0]] == (0, 0, (MEMBER,), 1)
    codes = {each.error_code for place, each in answer.partitions.items() if place != places[0]}
    assert codes == {ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_ID}
    late = talk.alter({places[0]: AlterPartitionChange(0, 0, alone)})
    assert late.partitions[places[0]].error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_replicas_are_assigned_to_a_directory(talk: Conversation) -> None:
    here, elsewhere = talk.create_topic("placed", [[MEMBER]]), talk.create_topic("placed-elsewhere", [[KAFKA]])
    places = [TopicIdPartition(here, 0), TopicIdPartition(elsewhere, 0)]
    error_code, codes = talk.asker.ask(
        talk.controller,
        "life",
        api_keys.ASSIGN_REPLICAS_TO_DIRS,
        member_messages.ASSIGN_REPLICAS_TO_DIRS_VERSION,
        member_messages.write_assign_replicas_to_dirs(MEMBER, talk.broker_epoch, DIRECTORY, places),
        member_messages.read_assign_replicas_to_dirs,
    )
    assert error_code == 0
    assert codes == {places[0]: 0, places[1]: ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_a_replica_fetches_from_a_broker(talk: Conversation) -> None:
    topic_id = talk.create_topic("followed", [[KAFKA, MEMBER], [KAFKA, MEMBER]])
    place, other = TopicIdPartition(topic_id, 0), TopicIdPartition(topic_id, 1)
    batch = build(BatchSpec(records=[RecordSpec(timestamp_ms=1, key=b"k", value=b"v")]))
    for partition in (0, 1):
        while (told := produce(talk.broker.port, "followed", partition, batch, acks=1)).code:
            assert told.code in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}

    def fetch(request: FetchRequest) -> Any:
        body = replica_fetch.write_replica_fetch(
            request, 18, broker_id=MEMBER, broker_epoch=talk.broker_epoch, limits=LIMITS
        )

        def read(data: memoryview) -> Any:
            answer = replica_fetch.read_replica_fetch(data)
            copied = {key: each._replace(records=bytes(each.records)) for key, each in answer.partitions.items()}
            return answer._replace(partitions=copied)

        return talk.asker.ask(talk.broker, "fetch", api_keys.FETCH, 18, body, read)

    first = fetch(FetchRequest(0, 0, {place: FetchPartition(0, 0, -1, 0), other: FetchPartition(0, 5, 0, 0)}))
    assert first.error_code == 0
    assert first.session_id
    fetched = first.partitions[place]
    assert (fetched.error_code, fetched.high_watermark, fetched.log_start_offset) == (0, 0, 0)
    assert len(fetched.records) == len(batch)
    assert first.partitions[other].diverging_epoch == EpochEndOffset(0, 1)
    again = fetch(FetchRequest(first.session_id, 1, {place: FetchPartition(0, 1, 0, 0)}, [other]))
    session_epoch = 1
    while not again.partitions:  # the answer has what has changed, such as the high watermark
        session_epoch += 1
        again = fetch(FetchRequest(first.session_id, session_epoch, {}))
    assert (again.error_code, again.session_id, list(again.partitions)) == (0, first.session_id, [place])
    assert again.partitions[place].high_watermark == 1

    request = ListOffsetsRequest(
        {place: ListOffsetsPartition(0, LATEST), other: ListOffsetsPartition(0, EARLIEST_LOCAL)}
    )
    version = member_messages.list_offsets_version(30)
    offsets = talk.asker.ask(
        talk.broker,
        "fetch",
        api_keys.LIST_OFFSETS,
        version,
        member_messages.write_list_offsets(request, version, broker_id=MEMBER, name_of=lambda _: "followed"),
        lambda data: member_messages.read_list_offsets(data, version, id_of={"followed": topic_id}.get),
    )
    assert offsets == {place: (0, 1), other: (0, 0)}


def test_the_metadata_log(talk: Conversation) -> None:
    unknown = talk.fetch_metadata(MetadataFetchRequest(0, 0, 0, -1))
    assert unknown.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert unknown.node_endpoints == {FIRST_CONTROLLER: talk.controller}
    leader_id, epoch = unknown.current_leader
    assert leader_id == FIRST_CONTROLLER
    found = talk.fetch_metadata(MetadataFetchRequest(epoch, 1, epoch, -1))
    assert found.error_code == 0
    assert found.high_watermark > 1
    assert found.records
    beyond = talk.fetch_metadata(MetadataFetchRequest(epoch, 1 << 40, epoch, -1))
    assert beyond.diverging_epoch is not None
    assert beyond.diverging_epoch.epoch == epoch
    assert not beyond.records


def test_a_snapshot_of_the_metadata(talk: Conversation) -> None:
    epoch = talk.fetch_metadata(MetadataFetchRequest(0, 0, 0, -1)).current_leader.leader_epoch
    number = 0
    while (snapshot_id := talk.fetch_metadata(MetadataFetchRequest(epoch, 0, 0, -1)).snapshot_id) is None:
        talk.create_topic(f"many-{number}", [[KAFKA]] * 50)  # more records than the controller leaves without one
        number += 1

    def fetch(snapshot_id: SnapshotId, position: int) -> Any:
        request = FetchSnapshotRequest(epoch, snapshot_id, position)
        return talk.asker.ask(
            talk.controller,
            "metadata",
            api_keys.FETCH_SNAPSHOT,
            member_messages.FETCH_SNAPSHOT_VERSION,
            member_messages.write_fetch_snapshot(
                request, cluster_id=CLUSTER_ID, broker_id=MEMBER, directory_id=DIRECTORY
            ),
            member_messages.read_fetch_snapshot,
        )

    answer = fetch(snapshot_id, 0)
    assert (answer.top_error_code, answer.error_code, answer.snapshot_id, answer.position) == (0, 0, snapshot_id, 0)
    assert answer.size == len(answer.unaligned_records)
    rest = fetch(snapshot_id, 100)
    assert rest.unaligned_records == answer.unaligned_records[100:]
    assert fetch(SnapshotId(3, 99), 0).top_error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka cannot write the answer

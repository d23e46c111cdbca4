"""Requests that a member has the active controller answer, and what it answers of other brokers' coordinators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.broker.member.controller import RETRY_MS
from octavo.broker.member.elsewhere import CoordinatorsElsewhere
from octavo.broker.member.forwarding import FORWARDED, TIMEOUT_MS
from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.frames import RequestHeader, read_header, response_header
from octavo.broker.wire.member_messages import read_allocate_producer_ids
from octavo.broker.wire.messages import read_request, write_response
from octavo.errors import ConnectionRefused, ErrorCode
from octavo.log.metadata.image import Image
from octavo.schemas.metadata.nodes import FeatureLevelRecord
from octavo.schemas.metadata.topics import ConfigRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.unit.broker.member.asked import Client, Member
from tests.unit.broker.member.recorded_peers import Sent
from tests.unit.broker.test_cluster_image import partition, registered

ANONYMOUS = bytes.fromhex("0000 05 55736572 0a 414e4f4e594d4f5553 00 00")
QUORUM = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
METADATA = {
    "topics": [{"topic_id": bytes(16), "name": "new"}],
    "allow_auto_topic_creation": True,
    "include_topic_authorized_operations": False,
}


def cluster() -> Image:
    image = Image()
    for record in (
        FeatureLevelRecord(name="group.version", feature_level=1),
        registered(1),
        registered(2),
        TopicRecord(name="t", topic_id=UUID(int=7)),
        partition(7, 0, (2, 1)),
    ):
        image.replay(record)
    return image


def with_topic(image: Image, name: str, topic_id: int, *leaders: int) -> Image:
    image.replay(TopicRecord(name=name, topic_id=UUID(int=topic_id)))
    for number, leader in enumerate(leaders):
        record: PartitionRecord = partition(topic_id, number, (leader,))
        image.replay(record)
    return image


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    member = Member(tmp_path / "data", cluster())
    assert member.broker.node_id == 1
    yield member
    member.directory.close()


def opened(sent: Sent) -> tuple[RequestHeader, Any, Any]:
    """Return the Envelope, with the header and the content of the request in it."""
    assert sent.api_key == keys.ENVELOPE
    envelope = read_request(keys.ENVELOPE, sent.version, sent.body)
    inner = memoryview(envelope.request_data)
    header = read_header(inner, keys.MEMBER_APIS)
    return header, read_request(header.api_key, header.version, inner[header.body_at :]), envelope


def answer(sent: Sent, code: int, content: dict[str, Any] | None = None) -> None:
    """Answer an Envelope, as a controller does."""
    data = None
    if content is not None:
        header, _, _ = opened(sent)
        data = response_header(header) + write_response(header.api_key, header.version, content)
    body = write_response(keys.ENVELOPE, sent.version, {"error_code": code, "response_data": data})
    sent.answered(memoryview(body))


def test_the_controller_gets_the_request_as_it_is_and_the_client_its_answer(member: Member) -> None:
    delete = {"topics": [{"name": "t", "topic_id": bytes(16)}], "timeout_ms": 5}
    request = member.request(keys.DELETE_TOPICS, 6, delete, Client(peer="::ffff:10.1.2.3"))
    [sent] = member.sent
    header, _, envelope = opened(sent)
    assert envelope.request_data == request.frame
    assert envelope.request_principal == ANONYMOUS
    assert envelope.client_host_address == bytes([10, 1, 2, 3])
    assert header.client_id == "me"
    assert request.waits
    result = {"name": "t", "topic_id": bytes(16), "error_code": 44, "error_message": "no"}
    answer(sent, 0, {"throttle_time_ms": 0, "responses": [result]})
    assert request.is_answered
    [found] = request.answer().responses
    assert (found.name, found.error_code, found.error_message) == ("t", 44, "no")


def test_every_forwarded_api_has_an_answer_for_a_time_out(member: Member) -> None:
    for api_key in sorted(FORWARDED):
        request = member.request(api_key, keys.MEMBER_APIS[api_key].last, {})
        assert member.sent[-1].api_key == keys.ENVELOPE
        member.sent[-1].failed("the connection was lost")
        member.wait(TIMEOUT_MS)
        assert request.is_answered
        assert getattr(request.answer(), "error_code", 7) == ErrorCode.REQUEST_TIMED_OUT


def test_another_controller_is_asked_if_the_first_is_not_active_any_more(member: Member) -> None:
    request = member.request(keys.DESCRIBE_QUORUM, 2, QUORUM)
    answer(member.sent[0], ErrorCode.NOT_CONTROLLER)
    assert request.waits
    member.wait(RETRY_MS)
    assert member.sent[1].body == member.sent[0].body
    answer(member.sent[1], 0, {"error_code": 3, "error_message": None, "topics": [], "nodes": []})
    assert request.answer().error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_is_wrong_with_an_envelope_is_not_told_to_the_client(member: Member) -> None:
    request = member.request(keys.DESCRIBE_QUORUM, 2, QUORUM)
    answer(member.sent[0], ErrorCode.INVALID_REQUEST)
    assert request.answer().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    request = member.request(keys.DESCRIBE_QUORUM, 2, QUORUM)
    body = write_response(keys.ENVELOPE, 0, {"error_code": 0, "response_data": b"\0\0\0\1\0"})
    member.sent[1].answered(memoryview(body))
    assert request.answer().error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_connection_is_closed_if_the_controller_does_not_know_the_version(member: Member) -> None:
    request = member.request(keys.DESCRIBE_QUORUM, 2, QUORUM)
    answer(member.sent[0], ErrorCode.UNSUPPORTED_VERSION)
    with pytest.raises(ConnectionRefused, match="does not serve version 2 of DescribeQuorum"):
        request.answer()


def test_settings_of_brokers_are_checked_here_and_kept_by_the_controller(member: Member) -> None:
    def resource(kind: int, name: str, key: str, value: str) -> dict[str, Any]:
        config = {"name": key, "config_operation": 0, "value": value}
        return {"resource_type": kind, "resource_name": name, "configs": [config]}

    asked = [
        resource(4, "2", "log.cleaner.threads", "2"),
        resource(4, "1", "log.retention.ms", "5000"),
        resource(2, "t", "retention.ms", "x"),
        resource(4, "", "node.id", "7"),
    ]
    request = member.request(keys.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": asked, "validate_only": False})
    _, content, _ = opened(member.sent[0])
    assert [(each.resource_type, each.resource_name) for each in content.resources] == [(4, "1"), (2, "t")]
    assert content.resources[0].configs[0].value == "5000"
    given = [
        {"error_code": 0, "error_message": None, "resource_type": 4, "resource_name": "1"},
        {"error_code": 40, "error_message": "no number", "resource_type": 2, "resource_name": "t"},
    ]
    answer(member.sent[0], 0, {"throttle_time_ms": 0, "responses": given})
    found = request.answer().responses
    assert [(each.resource_name, each.error_code) for each in found] == [("2", 42), ("1", 0), ("t", 40), ("", 42)]
    assert found[0].error_message == "Unexpected broker id, expected 1, but received 2"
    only_local = member.request(keys.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": asked[:1], "validate_only": False})
    assert only_local.answer().responses[0].error_code == ErrorCode.INVALID_REQUEST
    assert len(member.sent) == 1


def test_a_missing_topic_is_created_once_in_the_name_of_the_client(member: Member) -> None:
    for _ in range(2):
        request = member.request(keys.METADATA, 12, METADATA)
        [topic] = request.answer().topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    [sent] = member.sent
    header, content, envelope = opened(sent)
    assert header.api_key == keys.CREATE_TOPICS
    assert header.client_id == "me"
    assert envelope.request_principal == ANONYMOUS
    [topic] = content.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("new", -1, -1)
    failed = {
        "name": "new",
        "topic_id": bytes(16),
        "error_code": 38,
        "error_message": "too few brokers",
        "configs": None,
    }
    answer(sent, 0, {"throttle_time_ms": 0, "topics": [failed]})
    assert member.said == ["topic new could not be created: too few brokers"]
    member.request(keys.METADATA, 12, METADATA)
    assert len(member.sent) == 2


def test_the_broker_says_how_large_topics_are_if_its_settings_do(tmp_path: Path) -> None:
    member = Member(tmp_path / "data", cluster(), {"num.partitions": "3", "default.replication.factor": "2"})
    member.request(keys.METADATA, 12, METADATA)
    [topic] = opened(member.sent[0])[1].topics
    assert (topic.num_partitions, topic.replication_factor) == (3, 2)
    member.directory.close()


def test_internal_topics_are_created_when_a_coordinator_is_looked_for(member: Member) -> None:
    for key_type, name in ((0, "__consumer_offsets"), (1, "__transaction_state"), (1, "__transaction_state")):
        request = member.request(keys.FIND_COORDINATOR, 4, {"key_type": key_type, "coordinator_keys": ["g"]})
        assert request.answer().coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert member.sent[-1].api_key == keys.CREATE_TOPICS
        [topic] = read_request(keys.CREATE_TOPICS, member.sent[-1].version, member.sent[-1].body).topics
        assert (topic.name, topic.num_partitions, topic.replication_factor) == (name, 50, 3)
    assert len(member.sent) == 2
    assert {each.name: each.value for each in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


SHARE_KEYS = ["g:AAAAAAAAAAAAAAAAAAAAFA:0", "a:b:AAAAAAAAAAAAAAAAAAAAFA:+1", "g", " :AAAAAAAAAAAAAAAAAAAAFA:0", "g:x:0"]


def test_the_topic_of_share_groups_is_created_when_their_coordinator_is_looked_for(member: Member) -> None:
    def ask(version: int, *keys_: str) -> list[int]:
        request = member.request(keys.FIND_COORDINATOR, version, {"key_type": 2, "coordinator_keys": list(keys_)})
        return [each.error_code for each in request.answer().coordinators]

    unavailable, invalid = ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST
    assert ask(5, *SHARE_KEYS[:1]) == [invalid]
    assert ask(6, "g", "g:AAAAAAAAAAAAAAAAAAAAFA:x", "g:AAAAAAAAAAAAAAAAAAAAFA:2147483648") == [invalid] * 3
    assert not member.sent
    assert ask(6, *SHARE_KEYS) == [unavailable, unavailable, invalid, invalid, invalid]
    [topic] = read_request(keys.CREATE_TOPICS, member.sent[-1].version, member.sent[-1].body).topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("__share_group_state", 50, 3)
    assert {each.name: each.value for each in topic.configs} == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }


def test_coordinators_of_share_groups_are_told_by_the_key_as_kafka_writes_it(tmp_path: Path) -> None:
    member = Member(tmp_path / "data", with_topic(cluster(), "__share_group_state", 20, 1, 2, 9))
    written = "a:b:AAAAAAAAAAAAAAAAAAAAFA:1"
    request = member.request(keys.FIND_COORDINATOR, 6, {"key_type": 2, "coordinator_keys": [written, SHARE_KEYS[1]]})
    first, second = request.answer().coordinators
    assert (first.node_id, first.host) == (second.node_id, second.host) == (1, "plaintext-1")
    member.directory.close()


def test_coordinators_are_where_the_partitions_of_internal_topics_are_led(tmp_path: Path) -> None:
    image = with_topic(cluster(), "__consumer_offsets", 20, 1, 2, 9)
    member = Member(tmp_path / "data", image)
    groups = ["a", "b", "c"]  # Java's hashes are 97, 98 and 99
    request = member.request(keys.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": groups})
    found = request.answer().coordinators
    assert [(each.node_id, each.host, each.error_code) for each in found] == [
        (2, "plaintext-2", 0),
        (-1, "", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (1, "plaintext-1", 0),
    ]
    codes = [
        member.request(keys.HEARTBEAT, 4, {"group_id": each, "generation_id": 1, "member_id": "m"}).answer().error_code
        for each in groups
    ]
    assert codes == [16, 16, 15]  # not here, not here, and not yet
    assert member.said == [
        "clients wait for a coordinator: this broker leads partitions of __consumer_offsets: "
        "it coordinates nothing yet; have brokers of Apache Kafka lead them"
    ]
    assert not member.sent
    assert member.request(keys.LIST_GROUPS, 5, {}).answer().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert member.request(keys.LIST_TRANSACTIONS, 2, {}).answer().error_code == ErrorCode.NONE
    member.directory.close()


def test_a_broker_says_at_once_that_it_was_given_partitions_of_coordinators(tmp_path: Path) -> None:
    """Mend 2.6: it said so when the first client asked, and clients only hang."""
    image = with_topic(cluster(), "__consumer_offsets", 20, 1, 2, 9)
    member = Member(tmp_path / "data", image)
    coordinators = member.broker.coordinators
    assert isinstance(coordinators, CoordinatorsElsewhere)
    topic_id = UUID(int=20)
    for _ in range(2):
        coordinators.look_at(image, [topic_id, UUID(int=50), UUID(int=999)])
    image.replay(PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2))
    for _ in range(2):
        coordinators.look_at(image, [topic_id])
    assert member.said == [
        "clients wait for a coordinator: this broker leads partitions of __consumer_offsets: "
        "it coordinates nothing yet; have brokers of Apache Kafka lead them",
        "this broker leads no partitions of __consumer_offsets any more",
    ]
    member.directory.close()


def test_group_and_transaction_apis_send_clients_elsewhere(member: Member) -> None:
    def code(api_key: int, version: int, content: dict[str, Any], *path: str) -> int:
        found = member.request(api_key, version, content).answer()
        for name in path:
            [found] = getattr(found, name)
        return int(found.error_code)

    offsets = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 3, "committed_metadata": ""}]}]
    txn = {"transactional_id": "x", "producer_id": 5, "producer_epoch": 0}
    join = {"group_id": "g", "session_timeout_ms": 10_000, "protocol_type": "consumer"}
    assert {
        code(keys.JOIN_GROUP, 9, {**join, "protocols": [{"name": "range", "metadata": b""}]}),
        code(keys.SYNC_GROUP, 4, {"group_id": "g", "generation_id": 1, "member_id": "m"}),
        code(keys.LEAVE_GROUP, 5, {"group_id": "g"}),
        code(keys.OFFSET_COMMIT, 9, {"group_id": "g", "topics": offsets}, "topics", "partitions"),
        code(keys.OFFSET_FETCH, 9, {"groups": [{"group_id": "g", "topics": None}]}, "groups"),
        code(keys.OFFSET_DELETE, 0, {"group_id": "g"}),
        code(keys.DESCRIBE_GROUPS, 6, {"groups": ["g"]}, "groups"),
        code(keys.DELETE_GROUPS, 2, {"groups_names": ["g"]}, "results"),
        code(keys.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ["g"]}, "groups"),
        code(keys.INIT_PRODUCER_ID, 5, {"transactional_id": "x", "transaction_timeout_ms": 1000}),
        code(keys.ADD_OFFSETS_TO_TXN, 4, {**txn, "group_id": "g"}),
        code(keys.END_TXN, 5, {**txn, "committed": True}),
        code(keys.TXN_OFFSET_COMMIT, 4, {**txn, "group_id": "g", "topics": offsets}, "topics", "partitions"),
        code(keys.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["x"]}, "transaction_states"),
    } == {ErrorCode.NOT_COORDINATOR}
    assert not member.sent


def test_producer_ids_come_in_blocks_of_which_the_next_is_asked_for_in_time(member: Member) -> None:
    def take() -> tuple[int, int]:
        content = {"transactional_id": None, "transaction_timeout_ms": 1, "producer_id": -1, "producer_epoch": -1}
        given = member.request(keys.INIT_PRODUCER_ID, 4, content).answer()
        return given.error_code, given.producer_id

    def give(first: int, length: int, code: int = 0) -> None:
        content = {"throttle_time_ms": 0, "error_code": code, "producer_id_start": first, "producer_id_len": length}
        member.sent[-1].answered(memoryview(write_response(keys.ALLOCATE_PRODUCER_IDS, 0, content)))

    loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert [take(), take()] == [loading, loading]
    [sent] = member.sent
    asked = read_request(keys.ALLOCATE_PRODUCER_IDS, 0, sent.body)
    assert (asked.broker_id, asked.broker_epoch) == (1, 42)
    give(1000, 10)
    assert [take()[1] for _ in range(9)] == list(range(1000, 1009))
    assert len(member.sent) == 1
    assert take() == (0, 1009)
    assert len(member.sent) == 2
    assert take() == loading
    give(1005, 10)  # it overlaps with what was handed out
    assert "below 1010" in member.said[-1]
    assert take() == loading
    assert len(member.sent) == 2  # not at once
    member.wait(50)
    assert take() == loading
    give(-1, 0, ErrorCode.STALE_BROKER_EPOCH)
    member.wait(50)
    take()
    give(2000, 10)
    assert take() == (0, 2000)


def test_what_the_answer_to_a_request_for_ids_has(member: Member) -> None:
    content = {"throttle_time_ms": 0, "error_code": 77, "producer_id_start": -1, "producer_id_len": 0}
    body = memoryview(write_response(keys.ALLOCATE_PRODUCER_IDS, 0, content))
    assert read_allocate_producer_ids(body).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_metadata_name_the_leaders_and_what_is_offline(tmp_path: Path) -> None:
    image = with_topic(cluster(), "gone", 30, 9)
    image.replay(ConfigRecord(resource_type=2, resource_name="gone", name="retention.ms", value="1"))
    member = Member(tmp_path / "data", image)
    found = member.request(keys.METADATA, 12, {**METADATA, "topics": None}).answer()
    assert [(each.node_id, each.host, each.port) for each in found.brokers] == [
        (1, "plaintext-1", 9001),
        (2, "plaintext-2", 9002),
    ]
    assert found.controller_id in (1, 2)
    gone, topic = found.topics
    assert (gone.partitions[0].leader_id, gone.partitions[0].error_code) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)
    assert gone.partitions[0].offline_replicas == (9,)
    assert (topic.partitions[0].leader_id, topic.partitions[0].error_code) == (2, 0)
    old = member.request(keys.METADATA, 0, {"topics": [{"name": "gone"}]}).answer().topics[0].partitions[0]
    assert (old.error_code, old.replica_nodes) == (ErrorCode.LEADER_NOT_AVAILABLE, ())
    member.directory.close()


def test_clients_that_come_by_a_listener_that_a_leader_lacks_are_told_so(tmp_path: Path) -> None:
    image = Image()
    for record in (registered(1, listeners=("PLAINTEXT", "INSIDE")), registered(2)):
        image.replay(record)
    with_topic(image, "t", 7, 2)
    member = Member(tmp_path / "data", image)
    inside = Client(listener_name="INSIDE")
    for version, code in ((5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)):
        found = member.request(keys.METADATA, version, {**METADATA, "topics": None}, inside).answer()
        assert [each.host for each in found.brokers] == ["inside-1"]
        assert found.topics[0].partitions[0].error_code == code
    member.directory.close()


MYSELF = {"client_software_name": "me", "client_software_version": "1"}


def test_what_the_controller_answers_it_serves_too(member: Member) -> None:
    def listed() -> dict[int, tuple[int, int]]:
        found = member.request(keys.API_VERSIONS, 4, MYSELF).answer().api_keys
        return {each.api_key: (each.min_version, each.max_version) for each in found}

    assert listed()[keys.CREATE_TOPICS] == (2, 7)
    member.served = {**listed(), keys.CREATE_TOPICS: (3, 9), keys.DELETE_TOPICS: (7, 8), keys.FETCH: (9, 9)}
    assert listed()[keys.CREATE_TOPICS] == (3, 7)
    assert keys.DELETE_TOPICS not in listed()
    assert listed()[keys.FETCH] == (4, 18)


def test_members_serve_three_apis_more(member: Member) -> None:
    found = member.request(keys.API_VERSIONS, 4, MYSELF).answer()
    assert {keys.UNREGISTER_BROKER, keys.ADD_RAFT_VOTER, keys.REMOVE_RAFT_VOTER} <= {
        each.api_key for each in found.api_keys
    }
    assert "kraft.version" in {each.name for each in found.supported_features}

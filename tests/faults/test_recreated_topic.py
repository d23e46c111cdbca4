"""A topic is deleted and created again under clients that hold the old id: the right error, no old records, no hang."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from octavo.broker.wire.api_keys import APIS, CREATE_TOPICS, DELETE_TOPICS, FETCH, LIST_OFFSETS, METADATA, PRODUCE
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import ErrorCode
from octavo.records import read_batches
from octavo.server.serving import Server, serve
from tests.server.conversation import Conversation
from tests.server.questions import batch
from tests.server.raw import RawClient, header
from tests.server.test_life_wakeups import until_waiting

IDS = 13  # the first version of Produce and of Fetch that names topics by their ids
FETCH_VERSIONS = (APIS[FETCH].first, 7, 12, IDS, APIS[FETCH].last)
FAR_MS = 600_000  # a client gives up long before


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(config={"auto.create.topics.enable": "false"}) as server:
        yield server


@pytest.fixture
def address(server: Server) -> str:
    return server.bootstrap_servers


class Topic:
    """A topic with one partition, as a client knows it."""

    def __init__(self, address: str, name: str | None = None) -> None:
        self.name = f"again-{uuid.uuid4()}" if name is None else name
        self.talk = Conversation(address)
        self.id = b""
        self.create()

    def create(self) -> None:
        new = {"name": self.name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        content = {"topics": [new], "timeout_ms": 5000, "validate_only": False}
        (created,) = self.talk.raw_answer(CREATE_TOPICS, 7, content).topics
        assert created.error_code == 0
        self.id = created.topic_id

    def delete(self) -> None:
        content = {"topics": [{"name": self.name, "topic_id": bytes(16)}], "timeout_ms": 5000}
        (deleted,) = self.talk.raw_answer(DELETE_TOPICS, 6, content).responses
        assert deleted.error_code == 0

    def names(self, version: int, topic_id: bytes | None = None) -> dict[str, Any]:
        if version >= IDS:
            return {"topic_id": self.id if topic_id is None else topic_id}
        return {"name": self.name, "topic": self.name}

    def produce(self, *values: bytes, version: int = 9, topic_id: bytes | None = None) -> int:
        """Return the error code."""
        part = {"index": 0, "records": batch(*values)}
        topic = {**self.names(version, topic_id), "partition_data": [part]}
        content = {"transactional_id": None, "acks": 1, "timeout_ms": 1000, "topic_data": [topic]}
        (answered,) = self.talk.raw_answer(PRODUCE, version, content).responses
        return int(answered.partition_responses[0].error_code)


def fetch_request(
    topic: Topic, version: int, offset: int, *, session: tuple[int, int] = (0, -1), wait_ms: int = 0
) -> bytes:
    wanted = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topics = [{**topic.names(version), "partitions": [wanted]}] if session[1] <= 0 else []
    content = {
        "replica_id": -1,
        "max_wait_ms": wait_ms,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": session[0],
        "session_epoch": session[1],
        "topics": topics,
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    flexible = version >= APIS[FETCH].flexible
    return header(FETCH, version, flexible=flexible) + write_request(FETCH, version, content)


def read_fetched(version: int, answer: bytes | None) -> SimpleNamespace:
    assert answer is not None
    begin = 5 if version >= APIS[FETCH].flexible else 4
    return read_response(FETCH, version, memoryview(answer)[begin:])


def only(fetched: SimpleNamespace) -> SimpleNamespace:
    """The only partition of an answer."""
    (topic,) = fetched.responses
    (partition,) = topic.partitions
    assert isinstance(partition, SimpleNamespace)
    return partition


def values(partition: SimpleNamespace) -> list[bytes | None]:
    return [record.value for each in read_batches(bytes(partition.records or b"")) for record in each]


def gone(version: int) -> set[int]:
    """The errors by which a client learns that its topic is not there any more."""
    return {ErrorCode.UNKNOWN_TOPIC_ID} if version >= IDS else {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_gets_nothing_of_the_old_topic(address: str, version: int) -> None:
    topic = Topic(address)
    assert topic.produce(b"old 0", b"old 1", b"old 2") == 0
    old = fetch_request(topic, version, 1)
    with RawClient(address) as client:
        assert values(only(read_fetched(version, client.ask(old)))) == [b"old 0", b"old 1", b"old 2"]
        topic.delete()
        deleted = only(read_fetched(version, client.ask(old)))
        topic.create()
        assert topic.produce(b"new 0", b"new 1") == 0
        again = only(read_fetched(version, client.ask(old)))
    assert deleted.error_code in gone(version)
    if version >= IDS:
        assert again.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert values(again) == []
    else:
        assert values(again) == [b"new 0", b"new 1"]


@pytest.mark.parametrize("version", [each for each in FETCH_VERSIONS if each >= 7])
def test_a_fetch_session_gets_nothing_of_the_old_topic(address: str, version: int) -> None:
    topic = Topic(address)
    assert topic.produce(b"old 0", b"old 1", b"old 2") == 0
    with RawClient(address) as client:
        first = read_fetched(version, client.ask(fetch_request(topic, version, 3, session=(0, 0))))
        assert first.session_id > 0
        topic.delete()
        deleted = read_fetched(version, client.ask(fetch_request(topic, version, 3, session=(first.session_id, 1))))
        topic.create()
        assert topic.produce(b"new 0") == 0
        again = read_fetched(version, client.ask(fetch_request(topic, version, 3, session=(first.session_id, 2))))
    assert only(deleted).error_code in gone(version)
    assert only(again).error_code == (
        ErrorCode.UNKNOWN_TOPIC_ID if version >= IDS else ErrorCode.OFFSET_OUT_OF_RANGE  # by its name it is the new one
    )


@pytest.mark.parametrize("is_created_again", [False, True])
@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_that_waits_is_answered(address: str, version: int, is_created_again: bool) -> None:
    topic = Topic(address)
    with RawClient(address) as client:
        client.send(fetch_request(topic, version, 0, wait_ms=FAR_MS))
        topic.delete()
        if is_created_again:
            topic.create()
            assert topic.produce(b"new") == 0
        answer = only(read_fetched(version, client.receive()))
    if is_created_again and version < IDS and not answer.error_code:
        assert values(answer) in ([], [b"new"])  # it may have been read when the new topic was there already
    else:
        assert answer.error_code in gone(version)


def test_a_fetch_that_waits_is_answered_if_a_new_topic_is_there_at_once(server: Server) -> None:
    """The thread that answers never sees that there was no topic of this name."""
    topic = Topic(server.bootstrap_servers)

    def replace() -> None:
        server.directory.delete_topic(topic.name)
        server.directory.create_topic(topic.name)

    with RawClient(server.bootstrap_servers) as client:
        client.send(fetch_request(topic, 12, 0, wait_ms=FAR_MS))
        until_waiting(server, 1)
        server._reactor.call(replace)
        answer = only(read_fetched(12, client.receive()))
    assert (answer.error_code, values(answer)) == (0, [])


@pytest.mark.parametrize("version", [APIS[PRODUCE].first, IDS - 1, IDS])
def test_a_producer_writes_to_the_topic_that_it_means(address: str, version: int) -> None:
    topic = Topic(address)
    old_id = topic.id
    assert topic.produce(b"old", version=version) == 0
    topic.delete()
    assert topic.produce(b"nowhere", version=version) in gone(version)
    topic.create()
    error = topic.produce(b"late", version=version, topic_id=old_id)
    assert error == (ErrorCode.UNKNOWN_TOPIC_ID if version >= IDS else 0)
    with RawClient(address) as client:
        there = values(only(read_fetched(12, client.ask(fetch_request(topic, 12, 0)))))
    assert there == ([] if version >= IDS else [b"late"])


def test_an_old_id_is_unknown(address: str) -> None:
    topic = Topic(address)
    old_id = topic.id
    topic.delete()
    topic.create()
    asked = {"topics": [{"topic_id": old_id, "name": None}], "allow_auto_topic_creation": False}
    (found,) = topic.talk.raw_answer(METADATA, 12, {**asked, "include_topic_authorized_operations": False}).topics
    assert (found.error_code, found.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, old_id)
    part = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    wanted = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic.name, "partitions": [part]}]}
    (listed,) = topic.talk.raw_answer(LIST_OFFSETS, 8, {**wanted, "timeout_ms": 1000}).topics
    assert listed.partitions[0].offset == 0


def test_generations_of_a_topic_never_mix(address: str) -> None:
    """Producers and consumers by id, while the topic is deleted and created again all the time."""
    topic = Topic(address, "generations")
    stop = threading.Event()
    trouble: list[object] = []
    expected = {0, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    def run() -> None:
        try:
            mine = Topic.__new__(Topic)
            mine.name, mine.talk = topic.name, Conversation(address)
            with RawClient(address) as client:
                while not stop.is_set():
                    mine.id = topic.id
                    error = mine.produce(mine.id, version=IDS)
                    found = only(read_fetched(IDS, client.ask(fetch_request(mine, IDS, 0, wait_ms=50))))
                    bad = {value for value in values(found) if value != mine.id}
                    if bad or not {error, found.error_code} <= expected:
                        trouble.append((error, found.error_code, bad))
        except Exception as error:  # it would be lost in the thread
            trouble.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        topic.delete()
        topic.create()
    stop.set()
    for thread in threads:
        thread.join()
    assert not trouble

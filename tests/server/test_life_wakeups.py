"""Fetches that wait are answered when something changes, whoever changes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from octavo.broker.wire.api_keys import DELETE_TOPICS, FETCH
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import ErrorCode
from octavo.log.producer import Producer
from octavo.server.serving import Server
from tests.server.conversation import Conversation
from tests.server.raw import PATIENCE_S, RawClient, header

_VERSION = 12
_FAR_MS = 600_000  # nobody waits so long: the fetch is answered before, or the client gives up


class Waiting:
    """A fetch that waits for records of `events`."""

    def __init__(self, server: Server, *, offset: int = 0, isolation_level: int = 0, **partition: Any) -> None:
        wanted = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        content = {
            "replica_id": -1,
            "max_wait_ms": _FAR_MS,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "isolation_level": isolation_level,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": "events", "partitions": [wanted | partition]}],
            "forgotten_topics_data": [],
            "rack_id": "",
        }
        self._client = RawClient(server.bootstrap_servers)
        self._client.send(header(FETCH, _VERSION, flexible=True) + write_request(FETCH, _VERSION, content))
        until_waiting(server, 1)

    def answer(self) -> SimpleNamespace:
        """The answer of the partition."""
        with self._client as client:
            answer = client.receive()
        assert answer is not None
        (topic,) = read_response(FETCH, _VERSION, memoryview(answer)[5:]).responses
        (partition,) = topic.partitions
        assert isinstance(partition, SimpleNamespace)
        return partition

    def is_over(self) -> bool:
        """Whether the connection was closed instead."""
        with self._client as client:
            return client.receive() is None

    def is_answered(self) -> bool:
        """Whether there is something to read."""
        self._client.socket.setblocking(False)
        try:
            return bool(self._client.socket.recv(1))
        except BlockingIOError:
            return False
        finally:
            self._client.socket.settimeout(PATIENCE_S)


def until_waiting(server: Server, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while server.statistics().waiting != count:
        assert time.monotonic() < deadline


@pytest.fixture
def server(served: Server) -> Iterator[Server]:
    served.directory.create_topic("events")
    yield served
    if "events" in served.directory.topics:
        served.directory.delete_topic("events")


def test_an_append_by_a_producer_in_the_process_wakes_a_fetch(server: Server) -> None:
    waiting = Waiting(server)
    with Producer(server.directory) as producer:
        producer.send("events", b"one").result(PATIENCE_S)
    assert waiting.answer().high_watermark == 1


def test_a_marker_wakes_a_fetch_of_committed_records_and_its_records_do_not(server: Server) -> None:
    with Producer(server.directory, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("events", b"one").result(PATIENCE_S)
        waiting = Waiting(server, isolation_level=1)
        producer.send("events", b"two").result(PATIENCE_S)
        # The thread that answers has seen the append when it has answered something else that came after it.
        Conversation(server.bootstrap_servers).raw_answer(18, 0, {})
        assert not waiting.is_answered()
        producer.commit_transaction()
    assert waiting.answer().last_stable_offset == 3


def test_a_start_offset_that_passes_a_fetch_wakes_it(server: Server) -> None:
    log = server.directory.log("events", 0)
    with Producer(server.directory, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("events", b"one").result(PATIENCE_S)
        waiting = Waiting(server, isolation_level=1)
        log.delete_records_before(1)
        assert waiting.answer().error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        producer.abort_transaction()


def test_a_new_leader_epoch_wakes_a_fetch_that_believes_in_the_old_one(server: Server) -> None:
    log = server.directory.log("events", 0)
    waiting = Waiting(server, current_leader_epoch=log.leader_epoch)
    log.become_leader(log.leader_epoch + 1)
    assert waiting.answer().error_code == ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("by_request", [True, False])
def test_the_deletion_of_the_topic_wakes_a_fetch(server: Server, by_request: bool) -> None:
    waiting = Waiting(server)
    if by_request:
        content = {"timeout_ms": 1000, "topic_names": ["events"]}
        Conversation(server.bootstrap_servers).raw_answer(DELETE_TOPICS, 4, content)
    else:
        server.directory.delete_topic("events")
    assert waiting.answer().error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_that_others_create_and_change_are_seen(server: Server) -> None:
    server.directory.create_topic("others", 2)
    server.directory.add_partitions("others", 3)
    server.directory.set_config("others", {"retention.ms": "5"})
    image = server.broker.image.topics["others"]
    assert (len(image.partitions), image.config["retention.ms"]) == (3, "5")
    server.directory.delete_topic("others")
    assert "others" not in server.broker.image.topics

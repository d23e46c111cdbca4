"""Topics that are created because somebody asks for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octavo.broker.wire.api_keys import METADATA
from octavo.broker.wire.messages import read_response
from octavo.errors import ErrorCode
from octavo.server.serving import Server, serve
from tests.server.conversation import Conversation
from tests.server.raw import PATIENCE_S, RawClient
from tests.server.requests import ask_for, create, delete, frame


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(config={"num.partitions": "3"}, say=lambda _: None) as server:
        yield server


def asked(talk: Conversation, name: str) -> tuple[int, int]:
    """Ask for a topic. Returns the error, and the number of partitions."""
    (topic,) = talk.raw_answer(*ask_for(name)).topics
    return topic.error_code, len(topic.partitions)


def await_topic(talk: Conversation, name: str) -> tuple[int, int]:
    until = time.monotonic() + PATIENCE_S
    while (answer := asked(talk, name))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        assert time.monotonic() < until
    return answer


def test_whoever_asks_is_told_that_there_is_no_such_topic_and_finds_it_a_moment_later(server: Server) -> None:
    """Mend 1.1 of clients: the topic was in the first answer, unlike Kafka's; clients' own tests depend on it."""
    with Conversation(server.bootstrap_servers) as talk:
        assert asked(talk, "events") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
        assert await_topic(talk, "events") == (0, 3)


def test_a_deleted_topic_is_gone_for_whoever_asks_next(server: Server) -> None:
    with Conversation(server.bootstrap_servers) as talk:
        talk.ask(*create("events"))
        assert asked(talk, "events") == (0, 3)
        talk.ask(*delete("events"))
        assert asked(talk, "events") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)


def test_a_topic_of_coordinators_has_its_own_settings_whoever_asks_for_it(server: Server) -> None:
    with Conversation(server.bootstrap_servers) as talk:
        assert await_topic(talk, "__consumer_offsets") == (0, 1)
        assert asked(talk, "__cluster_metadata") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert server.directory.topics["__consumer_offsets"].config["cleanup.policy"] == "compact"


def test_a_topic_that_several_ask_for_at_once_is_there_for_all_of_them(tmp_path: Path) -> None:
    said: list[str] = []
    with serve(tmp_path / "data", say=said.append) as server:
        clients = [RawClient(server.bootstrap_servers) for _ in range(10)]
        until = time.monotonic() + PATIENCE_S
        waiting = list(clients)
        while waiting:
            assert time.monotonic() < until
            for each in waiting:
                each.send(frame(ask_for("wanted-by-all")))
            waiting = [each for each in waiting if received(each).error_code]
        for each in clients:
            each.socket.close()
    assert said == []


def received(client: RawClient) -> Any:
    answer = client.receive()
    assert answer is not None
    (topic,) = read_response(METADATA, 4, memoryview(answer)[4:]).topics
    return topic

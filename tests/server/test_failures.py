"""Handlers that fail: the client gets an answer in the form of its API, and the connection stays."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from typing import Any

import pytest

from octavo.broker.answers import Later, Wait
from octavo.broker.handlers import HANDLERS
from octavo.broker.wire import api_keys as keys
from octavo.errors import DirectoryLocked, ErrorCode, UnknownPartition
from octavo.log.log import Log
from octavo.records import BatchBuilder
from octavo.server.serving import Server, serve
from tests.server.conversation import CLOSED, Conversation
from tests.server.questions import batch

TOPICS = {"topics": [{"name": "t", "topic_id": bytes(16)}], "allow_auto_topic_creation": False}
METADATA = (keys.METADATA, 9, TOPICS)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def server(said: list[str]) -> Iterator[Server]:
    with serve(say=said.append) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Conversation]:
    with Conversation(server.bootstrap_servers) as client:
        yield client


def fails_with(error: Exception) -> Any:
    """A handler that raises an exception."""

    def handler(*_: Any, **__: Any) -> None:
        raise error

    return handler


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("a mistake"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (UnknownPartition("gone"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DirectoryLocked("here", 1), ErrorCode.KAFKA_STORAGE_ERROR),
        (OSError(errno.EIO, "broken disk"), ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_the_answer_has_the_code_of_the_exception(
    client: Conversation, said: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception, code: ErrorCode
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(HANDLERS, keys.METADATA, fails_with(error))
        answer = client.ask(*METADATA)
    assert [(each["name"], each["error_code"]) for each in answer["topics"]] == [("t", code)]
    assert any("a Metadata request from 127.0.0.1 failed" in line for line in said)
    assert client.ask(*METADATA)["topics"][0]["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_work_in_another_thread_may_fail(client: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HANDLERS, keys.METADATA, lambda *_: Later(fails_with(RuntimeError("a mistake"))))
    assert client.ask(*METADATA)["topics"][0]["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_wait_may_fail(client: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = fails_with(OSError(errno.EIO, "broken disk"))
    monkeypatch.setitem(HANDLERS, keys.METADATA, lambda *_: Wait(time.monotonic(), (), wait))
    assert client.ask(*METADATA)["topics"][0]["error_code"] == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("acks", [0, 1])
def test_a_produce_that_fails_is_answered_unless_it_wants_no_answer(
    client: Conversation, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    monkeypatch.setitem(HANDLERS, keys.PRODUCE, fails_with(RuntimeError("a mistake")))
    data = [{"name": "t", "partition_data": [{"index": 4, "records": batch(b"x")}]}]
    answer = client.ask(
        keys.PRODUCE, 9, {"transactional_id": None, "acks": acks, "timeout_ms": 1000, "topic_data": data}
    )
    if acks == 0:
        assert answer == CLOSED
        return
    (partition,) = answer["responses"][0]["partition_responses"]
    assert (partition["index"], partition["error_code"], partition["base_offset"]) == (4, -1, -1)


def test_changes_of_the_cluster_that_cannot_be_written_are_errors_of_the_disk(
    server: Server, client: Conversation, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.broker, "change_cluster", fails_with(OSError(errno.ENOSPC, "the disk is full")))
    user = {"name": "u", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p"}
    quota = {"key": "producer_byte_rate", "value": 1.0, "remove": False}
    entry = {"entity": [{"entity_type": "user", "entity_name": "u"}], "ops": [quota]}
    for api_key, version, content, results in (
        (keys.ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": [], "upsertions": [user]}, "results"),
        (keys.ALTER_CLIENT_QUOTAS, 1, {"entries": [entry], "validate_only": False}, "entries"),
    ):
        for _ in range(2):
            (answer,) = client.ask(api_key, version, content)[results]
            assert (answer["error_code"], answer["error_message"]) == (
                ErrorCode.KAFKA_STORAGE_ERROR,
                "the disk is full",
            )
    assert said == [
        "credentials could not be changed: the disk is full",
        "quotas could not be changed: the disk is full",
    ]


def test_batches_after_one_that_the_disk_had_no_room_for_are_not_out_of_order(
    server: Server, client: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a producer takes another epoch, and writes twice what waits for its answer in another partition."""
    server.directory.create_topic("t")

    def produce(sequence: int) -> int:
        builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=sequence)
        builder.append(None, b"x", timestamp_ms=1)
        data = [{"name": "t", "partition_data": [{"index": 0, "records": bytes(builder.build())}]}]
        content = {"transactional_id": None, "acks": -1, "timeout_ms": 1000, "topic_data": data}
        (partition,) = client.ask(keys.PRODUCE, 9, content)["responses"][0]["partition_responses"]
        return int(partition["error_code"])

    assert produce(0) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Log, "append", fails_with(OSError(errno.ENOSPC, "the disk is full")))
        assert produce(1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(2) == ErrorCode.KAFKA_STORAGE_ERROR
    assert [produce(1), produce(2)] == [0, 0]
    assert produce(4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

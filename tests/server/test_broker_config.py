"""Settings of a broker that are changed while it runs: kept, honoured, and found again after a restart."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from octavo.errors import ErrorCode
from octavo.server.serving import Server, serve
from tests.server.conversation import Conversation
from tests.server.questions_configs import BROKER, DELETE, SET, alter, describe

PATIENCE_S = 60


def change(server: Server, name: str, setting: str, value: str | None) -> int:
    """Set a setting of a broker, or of all by the name ""; None deletes it. Returns the error."""
    question = alter(BROKER, name, (setting, DELETE if value is None else SET, value))
    with Conversation(server.bootstrap_servers) as conversation:
        error: int = conversation.ask(*question)["responses"][0]["error_code"]
        return error


def described(server: Server, name: str) -> dict[str, Any]:
    with Conversation(server.bootstrap_servers) as conversation:
        settings = conversation.ask(*describe(BROKER, name))["results"][0]["configs"]
    return {each["name"]: each for each in settings}


def produced(server: Server, topic: str, size: int) -> Any:
    """Return the error of a record of this size; None if there is none."""
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "message.max.bytes": 10_000_000})
    errors: list[Any] = []
    producer.produce(topic, b"x" * size, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    return errors[0]


def test_topics_inherit_at_once_what_they_have_no_setting_for(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server:
        server.broker.create_topic("plain", 1, {})
        server.broker.create_topic("own", 1, {"max.message.bytes": "50000"})
        assert produced(server, "plain", 5000) is None
        change(server, "", "message.max.bytes", "1000")
        assert produced(server, "plain", 5000).code() == ErrorCode.MESSAGE_TOO_LARGE
        assert produced(server, "own", 5000) is None
        change(server, "1", "message.max.bytes", "20000")  # for this broker; goes before that for all
        assert produced(server, "plain", 5000) is None
        change(server, "1", "message.max.bytes", None)
        assert produced(server, "plain", 5000).code() == ErrorCode.MESSAGE_TOO_LARGE
    with serve(tmp_path / "data") as server:
        assert server.directory.log("plain", 0).config.max_message_bytes == 1000
        assert described(server, "")["message.max.bytes"]["value"] == "1000"


def test_retention_of_all_topics_follows(tmp_path: Path) -> None:
    with serve(tmp_path / "data", config={"log.retention.hours": "2"}) as server:
        server.broker.create_topic("t", 1, {})
        assert server.directory.log("t", 0).config.retention_ms == 2 * 3600 * 1000
        change(server, "1", "log.retention.ms", "7000")
        assert server.directory.log("t", 0).config.retention_ms == 7000
        server.broker.create_topic("later", 1, {})
        assert server.directory.log("later", 0).config.retention_ms == 7000
        change(server, "1", "log.retention.ms", None)
        assert server.directory.log("later", 0).config.retention_ms == 2 * 3600 * 1000


def test_a_limit_of_connections_follows(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server:
        change(server, "1", "max.connections.per.ip", "1")
        host, _, port = server.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as first:
            while True:  # those of the client above may be there yet
                with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as second:
                    try:
                        if second.recv(1) == b"":
                            break
                    except ConnectionResetError:
                        break
            first.sendall(b"")
        assert server.broker.config.max_connections_per_ip == 1
    with serve(tmp_path / "data") as server:
        assert server.broker.config.max_connections_per_ip == 1


def test_a_setting_that_cannot_be_changed_is_refused(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server:
        for name, value in (("num.partitions", "7"), ("log.retention.ms", "x"), ("ssl.keystore.location", "x")):
            assert change(server, "1", name, value) == ErrorCode.INVALID_REQUEST
        assert dict(server.broker.image.configs) == {}


def test_a_malformed_value_of_a_setting_that_is_only_kept_is_refused(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server:
        for name, value in (
            ("num.io.threads", "x"),
            ("num.io.threads", "0"),
            ("log.cleaner.io.buffer.load.factor", "much"),
            ("transaction.partition.verification.enable", "maybe"),
        ):
            assert change(server, "1", name, value) == ErrorCode.INVALID_REQUEST
        assert dict(server.broker.image.configs) == {}
        assert change(server, "1", "num.io.threads", "4") == ErrorCode.NONE
        assert change(server, "1", "log.cleaner.io.buffer.load.factor", "1.5") == ErrorCode.NONE


def test_settings_of_groups_and_transactions_that_change_while_the_broker_runs(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server:
        assert change(server, "1", "group.consumer.assignment.interval.ms", "7") == ErrorCode.NONE
        assert change(server, "", "transaction.partition.verification.enable", "false") == ErrorCode.NONE
        assert server.broker.coordinators.group_config.group_consumer_assignment_interval_ms == 7
        assert not server.broker.config.transaction_partition_verification_enable
        assert change(server, "1", "group.max.size", "7") == ErrorCode.INVALID_REQUEST
        assert change(server, "", "group.consumer.assignment.interval.ms", "90000") == ErrorCode.NONE
    with serve(tmp_path / "data") as server:
        assert server.broker.coordinators.group_config.group_consumer_assignment_interval_ms == 7


def test_where_a_value_comes_from(tmp_path: Path) -> None:
    with serve(tmp_path / "data", config={"message.max.bytes": "3000", "num.partitions": "4"}) as server:
        change(server, "", "message.max.bytes", "2000")
        change(server, "1", "message.max.bytes", "1000")
        found = described(server, "1")
        setting = found["message.max.bytes"]
        assert (setting["value"], setting["read_only"]) == ("1000", False)
        assert [(each["value"], each["source"]) for each in setting["synonyms"]] == [
            ("1000", 2),
            ("2000", 3),
            ("3000", 4),
            ("1048588", 5),
        ]
        assert (found["num.partitions"]["value"], found["num.partitions"]["read_only"]) == ("4", True)
        assert found["log.dirs"]["value"] == str(tmp_path / "data")
        assert list(described(server, "")) == ["message.max.bytes"]


def test_a_setting_of_another_program_does_not_keep_the_broker_from_starting(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server:
        server.directory.set_broker_config("", {"max.connections": "many"})
    said: list[str] = []
    with serve(tmp_path / "data", say=said.append) as server:
        assert server.broker.config.max_connections > 1
    assert any("max.connections" in each for each in said)

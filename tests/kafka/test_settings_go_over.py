"""Quotas, credentials and settings that Octavo's broker keeps are those of the Kafka that takes over, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from octavo.broker.wire import api_keys as keys
from octavo.log.metadata import handover
from octavo.server.serving import serve
from tests.kafka.conftest import NewBroker
from tests.server.conversation import Conversation, differences
from tests.server.question import Question
from tests.server.questions_configs import BROKER, DELETE, GROUP, SET, TOPIC, alter, describe

PASSWORD = {"name": "u", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32}
LEVEL = {"feature": "metadata.version", "max_version_level": 30, "upgrade_type": 1}


def quota(key: str, value: float | None) -> Question:
    entity = [{"entity_type": "user", "entity_name": "u"}, {"entity_type": "client-id", "entity_name": None}]
    operation = {"key": key, "value": value or 0.0, "remove": value is None}
    entry = {"entity": entity, "ops": [operation]}
    return Question(keys.ALTER_CLIENT_QUOTAS, 1, {"entries": [entry], "validate_only": False})


CHANGES = (
    quota("producer_byte_rate", 1024.0),
    quota("consumer_byte_rate", 2048.0),
    Question(keys.ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": [], "upsertions": [PASSWORD]}),
    Question(keys.UPDATE_FEATURES, 1, {"timeout_ms": 5000, "feature_updates": [LEVEL], "validate_only": False}),
    alter(BROKER, "", ("log.retention.ms", SET, "123456789")),
    alter(BROKER, "1", ("message.max.bytes", SET, "77777")),
    alter(TOPIC, "t", ("segment.ms", SET, "98765")),
    alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
)
CHANGES_BY_KAFKA = (
    quota("consumer_byte_rate", None),
    alter(BROKER, "1", ("message.max.bytes", DELETE, None), ("max.connections", SET, "500")),
)
QUESTIONS = (
    Question(keys.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [], "strict": False}),
    Question(keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None}),
    describe(BROKER, "", ["log.retention.ms"]),
    describe(BROKER, "1", ["log.retention.ms", "message.max.bytes", "max.connections"]),
    describe(TOPIC, "t", ["retention.ms", "segment.ms", "max.message.bytes"]),
    describe(GROUP, "g", ["consumer.session.timeout.ms"]),
)


def told(address: str) -> list[Any]:
    with Conversation(address) as conversation:
        return [conversation.ask(*question) for question in QUESTIONS]


def change(address: str, changes: tuple[Question, ...]) -> None:
    with Conversation(address) as conversation:
        for question in changes:
            assert "'error_code': 0" in str(conversation.ask(*question)), question


def test_settings_are_kept_over_a_hand_over_and_back(tmp_path: Path, new_broker: NewBroker) -> None:
    folder = tmp_path / "data"
    with serve(folder) as server:
        server.broker.create_topic("t", 1, {})
        change(server.bootstrap_servers, CHANGES)
        before = told(server.bootstrap_servers)
    handover([folder])
    kafka = new_broker(folder)
    kafka.start()
    assert differences(before, told(kafka.address)) == []
    change(kafka.address, CHANGES_BY_KAFKA)
    kafka.stop()
    with serve(folder) as server:
        found = told(server.bootstrap_servers)
        assert server.broker.config.max_connections == 500
        assert server.directory.log("t", 0).config.retention_ms == 123456789
    assert len(differences(before, found)) > 0
    assert [each["value"] for each in found[3]["results"][0]["configs"]].count("500") == 1
    assert found[0]["entries"][0]["values"] == [{"key": "producer_byte_rate", "value": 1024.0}]
    assert differences(before[1:2] + before[5:], found[1:2] + found[5:]) == []

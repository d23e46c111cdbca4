"""Quotas, credentials, features and folders: what is changed is kept, and found again after a restart."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from octavo.server.serving import serve
from tests.server.conversation import Conversation
from tests.server.questions_configs import BROKER, GROUP, METRICS, SET, alter

QUOTA = {
    "entity": [{"entity_type": "user", "entity_name": "u"}, {"entity_type": "client-id", "entity_name": None}],
    "ops": [{"key": "producer_byte_rate", "value": 1024.0, "remove": False}],
}
PASSWORD = {"name": "u", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32}
EVERY_QUOTA = {"components": [], "strict": False}


def ask(address: str, api_key: int, version: int, content: dict[str, Any]) -> Any:
    with Conversation(address) as conversation:
        return conversation.ask(api_key, version, content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_quotas_are_found_again(folder: Path) -> None:
    with serve(folder) as server:
        content = {"entries": [QUOTA], "validate_only": False}
        ask(server.bootstrap_servers, keys.ALTER_CLIENT_QUOTAS, 1, content)
        before = ask(server.bootstrap_servers, keys.DESCRIBE_CLIENT_QUOTAS, 1, EVERY_QUOTA)
    assert before["entries"][0]["values"] == [{"key": "producer_byte_rate", "value": 1024.0}]
    with serve(folder) as server:
        assert ask(server.bootstrap_servers, keys.DESCRIBE_CLIENT_QUOTAS, 1, EVERY_QUOTA) == before


def test_a_quota_that_is_only_validated_is_not_kept(folder: Path) -> None:
    with serve(folder) as server:
        ask(server.bootstrap_servers, keys.ALTER_CLIENT_QUOTAS, 1, {"entries": [QUOTA], "validate_only": True})
        assert ask(server.bootstrap_servers, keys.DESCRIBE_CLIENT_QUOTAS, 1, EVERY_QUOTA)["entries"] == []


def test_credentials_are_kept_as_scram_wants_them(folder: Path) -> None:
    with serve(folder) as server:
        content = {"deletions": [], "upsertions": [PASSWORD]}
        ask(server.bootstrap_servers, keys.ALTER_USER_SCRAM_CREDENTIALS, 0, content)
    with serve(folder) as server:
        kept = server.directory.cluster.credentials["u", 1]
        client_key = hmac.digest(b"p" * 32, b"Client Key", "sha256")  # RFC 5802
        assert kept.stored_key == hashlib.sha256(client_key).digest()
        assert kept.server_key == hmac.digest(b"p" * 32, b"Server Key", "sha256")
        assert (kept.salt, kept.iterations) == (b"salt", 4096)


def test_a_feature_is_raised_for_good(folder: Path) -> None:
    update = {"feature": "metadata.version", "max_version_level": 30, "upgrade_type": 1}
    content = {"timeout_ms": 1000, "feature_updates": [update], "validate_only": True}
    with serve(folder) as server:
        before = server.directory.features["metadata.version"]
        assert before < 30
        ask(server.bootstrap_servers, keys.UPDATE_FEATURES, 2, content)
        assert server.directory.features["metadata.version"] == before
        ask(server.bootstrap_servers, keys.UPDATE_FEATURES, 2, content | {"validate_only": False})
    with serve(folder) as server:
        assert server.directory.features["metadata.version"] == 30


def test_a_replica_stays_in_its_folder(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    with serve(config={"log.dirs": ",".join(map(str, folders))}) as server:
        server.broker.create_topic("t", 1, {})
        own = server.directory.log("t", 0).folder.parent
        other = next(folder for folder in folders if folder != own)
        topics = [{"name": "t", "partitions": [0]}]
        errors = []
        for path in (own, other):
            content = {"dirs": [{"path": str(path), "topics": topics}]}
            answer = ask(server.bootstrap_servers, keys.ALTER_REPLICA_LOG_DIRS, 2, content)
            errors.append(answer["results"][0]["partitions"][0]["error_code"])
        assert errors == [0, ErrorCode.POLICY_VIOLATION]


def test_the_quorum_is_this_node(folder: Path) -> None:
    wanted = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    with serve(folder) as server, Conversation(server.bootstrap_servers) as conversation:
        before = conversation.raw_answer(keys.DESCRIBE_QUORUM, 2, {"topics": wanted}).topics[0].partitions[0]
        server.broker.create_topic("t", 1, {})
        after = conversation.raw_answer(keys.DESCRIBE_QUORUM, 2, {"topics": wanted}).topics[0].partitions[0]
        assert [voter.replica_id for voter in after.current_voters] == [server.broker.node_id] == [after.leader_id]
        assert after.current_voters[0].log_end_offset == after.high_watermark > before.high_watermark


def test_too_many_partitions_for_one_request_are_refused_at_once(folder: Path) -> None:
    with serve(folder) as server:
        server.broker.create_topic("t", 1, {})
        wanted = {"name": "t", "count": 2**31 - 1, "assignments": None}
        content = {"topics": [wanted], "timeout_ms": 5000, "validate_only": False}
        answer = ask(server.bootstrap_servers, keys.CREATE_PARTITIONS, 3, content)
        assert answer["results"][0]["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
        assert len(server.broker.image.topics["t"].partitions) == 1


def test_what_is_kept_and_has_no_effect_is_said_once_when_it_is_set(folder: Path) -> None:
    """Mend 1.3 of clients: quotas and users were accepted without a word, and nothing was enforced."""
    said: list[str] = []
    with serve(folder, say=said.append) as server:
        address = server.bootstrap_servers
        for rate in (1024.0, 2048.0):
            quota = QUOTA | {"ops": [{"key": "producer_byte_rate", "value": rate, "remove": False}]}
            ask(address, keys.ALTER_CLIENT_QUOTAS, 1, {"entries": [quota], "validate_only": False})
        ask(address, keys.ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": [], "upsertions": [PASSWORD]})
        for question in (
            alter(METRICS, "m", ("interval.ms", SET, "1000")),
            alter(GROUP, "g", ("share.session.timeout.ms", SET, "50000")),
            alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
            alter(BROKER, "1", ("num.replica.fetchers", SET, "2")),
            alter(BROKER, "", ("max.connections", SET, "1000")),
        ):
            ask(address, *question)
    assert said == [
        "quotas were set; they are kept, but this broker does not enforce them",
        "users of SCRAM were set; they are kept, but this broker asks nobody for a password",
        "a subscription to client metrics was set; it is kept, but this broker asks no client for metrics",
        "settings of share or streams groups were set; they are kept, but this broker has no such groups",
        "num.replica.fetchers was set; it is kept, but has no effect on this broker",
    ]


def test_a_broker_that_is_alone_knows_of_no_other_and_stays(folder: Path) -> None:
    """Mend 1.2 of clients: UnregisterBroker was not offered."""
    with serve(folder) as server:
        codes = [
            ask(server.bootstrap_servers, keys.UNREGISTER_BROKER, 0, {"broker_id": number})["error_code"]
            for number in (2, 1)
        ]
        assert codes == [ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.INVALID_REQUEST]

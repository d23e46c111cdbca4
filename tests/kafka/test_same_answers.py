"""The broker and Apache Kafka are asked the same, and give the same answers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from octavo.server.serving import serve
from tests.kafka.conftest import NewBroker
from tests.retention import KEPT_FOR_NOW
from tests.server.conversation import Conversation, differences
from tests.server.question import Question
from tests.server.questions import questions

# A fresh cluster of Kafka has a default of its own for this setting, as a record in its metadata.
_OF_KAFKA_ALONE = "min.insync.replicas"
# Fewer features are told, and there is no listener for controllers.
_DIFFERENT = {"supported_features", "finalized_features", "listeners"}
# What depends on the time, and on what else was written there.
_OF_THE_METADATA_LOG = {"leader_epoch", "high_watermark", "current_voters"}

# Kafka answers these from what the broker has read of the metadata, which is a little behind the controller.
_APPLIED_LATER = {
    keys.METADATA,
    keys.DESCRIBE_TOPIC_PARTITIONS,
    keys.DESCRIBE_CONFIGS,
    keys.DESCRIBE_CLIENT_QUOTAS,
    keys.DESCRIBE_USER_SCRAM_CREDENTIALS,
    keys.LIST_CONFIG_RESOURCES,
}
_PATIENCE_S = 60


def without_what_is_meant(answer: Any) -> Any:
    """An answer without what differs on purpose."""
    if isinstance(answer, dict):
        if answer.get("name") == _OF_KAFKA_ALONE:
            return {"name": _OF_KAFKA_ALONE}
        return {
            key: without_what_is_meant(each)
            for key, each in answer.items()
            if key not in _DIFFERENT and not ("current_voters" in answer and key in _OF_THE_METADATA_LOG)
        }
    return [without_what_is_meant(each) for each in answer] if isinstance(answer, list) else answer


def test_all_questions_are_answered_as_kafka_answers_them(new_broker: NewBroker, tmp_path: Path) -> None:
    kafka = new_broker(tmp_path / "kafka", settings={"auto.create.topics.enable": "false"})
    kafka.format()
    kafka.start()
    config = {
        **KEPT_FOR_NOW,
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
    }  # as `kafka`
    asked = list(questions())
    assert len(asked) > 500
    found: list[str] = []
    with (
        serve(tmp_path / "ours", config=config) as server,
        Conversation(kafka.address) as theirs,
        Conversation(server.bootstrap_servers) as ours,
    ):
        for question in asked:
            answer = without_what_is_meant(ours.ask(*question))
            expected = patient(theirs, question, answer)
            if question.api_key == keys.API_VERSIONS and answer["api_keys"]:
                assert all(each in expected["api_keys"] for each in answer["api_keys"])
                continue
            found += [f"{question}{line}" for line in differences(answer, expected)]
    assert not found, "\n".join([f"{len(found)} differences:", *found[:30]])


def patient(kafka: Conversation, question: Question, ours: Any) -> Any:
    """What Kafka answers when it is ready to give out producer ids, and has applied what was changed before."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        answer = without_what_is_meant(kafka.ask(*question))
        is_loading = (
            question.api_key == keys.INIT_PRODUCER_ID and answer["error_code"] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
        is_behind = question.api_key in _APPLIED_LATER and time.monotonic() < deadline and differences(ours, answer)
        if not (is_loading or is_behind):
            return answer

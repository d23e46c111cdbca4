"""Answers to requests that failed as a whole."""

from __future__ import annotations

import random
from typing import Any

import pytest

from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.api_keys import APIS
from octavo.broker.wire.error_forms import error_content
from octavo.broker.wire.messages import read_request, read_response, write_request, write_response
from octavo.errors import ErrorCode
from tests.server.generated.maker import Maker
from tests.server.generated.symbols import Known, resolved

CODE = ErrorCode.UNKNOWN_SERVER_ERROR


def failed(api_key: int, version: int, content: dict[str, Any], message: str | None = None) -> Any:
    """The answer to a request, as a client reads it."""
    body = write_request(api_key, version, content)
    request = read_request(api_key, version, memoryview(body))
    answer = write_response(api_key, version, error_content(api_key, version, request, CODE, message))
    return read_response(api_key, version, memoryview(answer))


@pytest.mark.parametrize("api_key", APIS)
def test_every_version_of_every_api_has_a_form(api_key: int) -> None:
    for version in range(APIS[api_key].first, APIS[api_key].last + 1):
        for seed in range(20):
            maker = Maker(random.Random(seed), 1, 0.1)
            maker.own = ["t"]
            failed(api_key, version, resolved(maker.request(api_key, version), Known()), "why")


def test_a_produce_tells_the_error_of_each_partition_once() -> None:
    data = [{"index": 3, "records": b""}, {"index": 4, "records": None}, {"index": 3, "records": b""}]
    topics = [{"name": "t", "partition_data": data}, {"name": "t", "partition_data": data[:1]}]
    content = {"transactional_id": None, "acks": 1, "timeout_ms": 0, "topic_data": topics}
    answer = failed(keys.PRODUCE, 8, content, "why")
    (topic,) = answer.responses
    assert topic.name == "t"
    assert [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses] == [
        (3, CODE, -1),
        (4, CODE, -1),
    ]
    assert {each.error_message for each in topic.partition_responses} == {"why"}


@pytest.mark.parametrize(("version", "named"), [(12, 1), (13, 0)])
def test_a_fetch_names_partitions_only_before_version_13(version: int, named: int) -> None:
    wanted = {"partition": 5, "fetch_offset": 0, "partition_max_bytes": 1, "log_start_offset": 0}
    wanted |= {"current_leader_epoch": -1, "last_fetched_epoch": -1}
    topics = [{"topic": "t", "topic_id": bytes(16), "partitions": [wanted]}]
    sizes = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "isolation_level": 0, "replica_id": -1}
    content = {**sizes, "session_id": 0, "session_epoch": 0, "topics": topics, "forgotten_topics_data": []}
    answer = failed(keys.FETCH, version, {**content, "rack_id": ""})
    assert answer.error_code == CODE
    assert len(answer.responses) == named
    assert all(each.partitions[0].partition_index == 5 for each in answer.responses)
    assert all(each.partitions[0].error_code == CODE for each in answer.responses)


def test_names_that_stand_alone_are_repeated() -> None:
    answer = failed(keys.DELETE_TOPICS, 1, {"topic_names": ["a", "b"], "timeout_ms": 0})
    assert [(each.name, each.error_code) for each in answer.responses] == [("a", CODE), ("b", CODE)]


def test_partitions_that_are_numbers_are_repeated() -> None:
    topics = [{"topic": "t", "partitions": [7]}]
    answer = failed(keys.ELECT_LEADERS, 1, {"election_type": 0, "topic_partitions": topics, "timeout_ms": 0}, "why")
    (result,) = answer.replica_election_results
    (partition,) = result.partition_result
    assert (answer.error_code, partition.partition_id, partition.error_message) == (CODE, 7, "why")


def test_what_is_no_answer_to_a_name_stays_empty() -> None:
    answer = failed(keys.DESCRIBE_LOG_DIRS, 4, {"topics": [{"topic": "t", "partitions": [0]}]})
    assert (answer.error_code, answer.results) == (CODE, ())
    assert failed(keys.METADATA, 12, {"topics": [], "allow_auto_topic_creation": False}).brokers == ()

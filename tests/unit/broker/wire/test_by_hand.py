"""Produce and Fetch, which are read and written by hand, agree with kio in every version."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from octavo.broker.wire.api_keys import APIS, FETCH, PRODUCE
from octavo.broker.wire.fetch import NO_HIGH_WATERMARK, read_fetch
from octavo.broker.wire.fetched import FetchedPartition, write_fetch
from octavo.broker.wire.leader_tags import NO_LEADER, CurrentLeader, NodeEndpoint
from octavo.broker.wire.messages import write_request, write_response
from octavo.broker.wire.produce import PartitionResult, ProduceRequest, _read_any, read_produce, write_produce
from octavo.errors import MalformedRequest, RecordError
from tests.unit.broker.wire.entities import declared, plain, random_message, written

SEEDS = range(20)
_NO_EPOCH = -1
# What our answers never have.
FIXED = {
    "throttle_time": timedelta(),
    "epoch": -1,
    "end_offset": -1,
}


def versions(api_key: int) -> range:
    return range(APIS[api_key].first, APIS[api_key].last + 1)


def topic_key(topic: dict[str, Any]) -> str | bytes:
    for name in ("topic_id", "name", "topic"):
        if name in topic:
            key: str | bytes = topic[name]
            return key
    raise AssertionError(topic)


@pytest.mark.parametrize("version", versions(PRODUCE))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_produce_request_is_read_as_kio_wrote_it(version: int, seed: int) -> None:
    message = random_message(declared(PRODUCE, version), Random(seed), {})
    expected = plain(message)
    found = read_produce(memoryview(written(message)), version)
    assert (found.transactional_id, found.acks, found.timeout_ms) == (
        expected["transactional_id"],
        expected["acks"],
        expected["timeout_ms"],
    )
    assert [(each.topic, each.partition, each.records) for each in found.partitions] == [
        (topic_key(topic), partition["index"], partition["records"])
        for topic in expected["topic_data"]
        for partition in topic["partition_data"]
    ]


@pytest.mark.parametrize("version", versions(PRODUCE))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_produce_response_is_written_as_kio_writes_it(version: int, seed: int) -> None:
    fixed = FIXED | {"error_code": ErrorCode.invalid_record if seed % 2 else ErrorCode.none}
    if seed % 2 == 0:  # there is nothing to say of records that were appended
        fixed |= {"record_errors": (), "error_message": None}
        fixed |= {"leader_id": -1, "leader_epoch": -1, "node_endpoints": ()}
    message = random_message(declared(PRODUCE, version, response=True), Random(seed), fixed)
    topics = [
        (
            topic_key(topic),
            [
                PartitionResult(
                    each["index"],
                    each["error_code"],
                    each["base_offset"],
                    each["log_append_time_ms"],
                    each.get("log_start_offset", -1),
                    [RecordError(*error.values()) for error in each.get("record_errors", ())],
                    each.get("error_message"),
                    leader(each),
                )
                for each in topic["partition_responses"]
            ],
        )
        for topic in plain(message)["responses"]
    ]
    assert write_produce(version, topics, endpoints(plain(message))) == written(message)


def leader(partition: dict[str, Any]) -> CurrentLeader:
    return CurrentLeader(*partition["current_leader"].values()) if "current_leader" in partition else NO_LEADER


def endpoints(answer: dict[str, Any]) -> list[NodeEndpoint]:
    return [NodeEndpoint(*each.values()) for each in answer.get("node_endpoints", ())]


@pytest.mark.parametrize("version", versions(FETCH))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fetch_request_is_read_as_kio_wrote_it(version: int, seed: int) -> None:
    message = random_message(declared(FETCH, version), Random(seed), {})
    expected = plain(message)
    found = read_fetch(memoryview(written(message)), version)
    replica = expected.get("replica_state") or {"replica_id": expected.get("replica_id", -1), "replica_epoch": -1}
    assert found.rack == expected.get("rack_id", "")
    assert (found.replica_id, found.replica_epoch) == (replica["replica_id"], replica["replica_epoch"])
    for name in ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch"):
        assert getattr(found, name) == expected.get(name, {"session_id": 0, "session_epoch": -1}.get(name))
    assert [tuple(each) for each in found.partitions] == [
        (
            topic_key(topic),
            each["partition"],
            each.get("current_leader_epoch", _NO_EPOCH),
            each["fetch_offset"],
            each.get("last_fetched_epoch", _NO_EPOCH),
            each.get("log_start_offset", -1),
            each["partition_max_bytes"],
            each.get("high_watermark", NO_HIGH_WATERMARK),
        )
        for topic in expected["topics"]
        for each in topic["partitions"]
    ]
    assert found.forgotten == [
        (topic_key(topic), each) for topic in expected.get("forgotten_topics_data", ()) for each in topic["partitions"]
    ]


class Slice:
    """Stands for a slice of a file: records of this size, which come as they are."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)


@pytest.mark.parametrize("version", versions(FETCH))
def test_a_fetch_response_is_written_as_kio_writes_it(version: int) -> None:
    random, checked = Random(1), 0
    while checked < len(SEEDS):
        message = random_message(declared(FETCH, version, response=True), random, FIXED)
        content = plain(message)
        topics = content["responses"]
        if all(map(can_be_ours, topics)) and len({topic_key(topic) for topic in topics}) == len(topics):
            assert ours(version, content) == written(message)
            checked += 1


def can_be_ours(topic: dict[str, Any]) -> bool:
    """Whether a topic has partitions, and none of them has null for its records."""
    return bool(topic["partitions"]) and all(each["records"] is not None for each in topic["partitions"])


def ours(version: int, content: dict[str, Any]) -> bytes:
    partitions = []
    for topic in content["responses"]:
        for each in topic["partitions"]:
            aborted = each["aborted_transactions"]
            partitions.append(
                FetchedPartition(
                    topic_key(topic),
                    each["partition_index"],
                    each["error_code"],
                    each["high_watermark"],
                    each["last_stable_offset"],
                    each.get("log_start_offset", -1),
                    None if aborted is None else [(one["producer_id"], one["first_offset"]) for one in aborted],
                    Slice(each["records"]) if each["records"] else None,  # type: ignore[arg-type] # all that is used
                    None,
                    leader(each),
                    each.get("preferred_read_replica", -1),
                )
            )
    error_code, session_id = content.get("error_code", 0), content.get("session_id", 0)
    nodes = endpoints(content)
    parts: list[Any] = list(
        write_fetch(version, partitions, error_code=error_code, session_id=session_id, endpoints=nodes)
    )
    return b"".join(part.data if isinstance(part, Slice) else part for part in parts)


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_produce_request_that_is_cut_is_malformed(version: int) -> None:
    head = (b"\x00" if version >= 9 else b"\xff\xff") + b"\x00\x01" + b"\x00\x00\x00\x01"
    for body in (b"", head, head + b"\x7f\xff\xff\xff", head + b"\xff\xff\xff\xff\x07"):
        with pytest.raises(MalformedRequest):
            read_produce(memoryview(body), version)


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_a_fetch_request_that_is_cut_is_malformed(version: int) -> None:
    for body in (b"", b"\x00" * 10, b"\xff" * 21, b"\x00" * 20 + b"\x7f\xff\xff\xff"):
        with pytest.raises(MalformedRequest):
            read_fetch(memoryview(body), version)


def usual_request(version: int, name: str = "orders", records: bytes | None = b"records") -> bytes:
    """A request as nearly all are: one partition, no transaction."""
    topic = {"name": name, "topic_id": bytes(range(16)), "partition_data": [{"index": 5, "records": records}]}
    return write_request(PRODUCE, version, {"acks": 1, "timeout_ms": 1500, "topic_data": [topic]})


def outcome(read: Callable[[memoryview, int], ProduceRequest], body: bytes, version: int) -> ProduceRequest | str:
    try:
        return read(memoryview(body), version)
    except MalformedRequest as error:
        return str(error)


@pytest.mark.parametrize("version", versions(PRODUCE))
def test_the_usual_produce_request_is_read_as_any_other(version: int) -> None:
    for body in (
        usual_request(version),
        usual_request(version) + b"behind",
        usual_request(version, records=bytes(300)),
    ):
        found = read_produce(memoryview(body), version)
        assert found == _read_any(memoryview(body), version)
        assert [(each.partition, each.topic) for each in found.partitions] == [
            (5, "orders" if version < 13 else bytes(range(16)))
        ]


@pytest.mark.parametrize("version", versions(PRODUCE))
def test_whatever_is_changed_in_the_usual_produce_request_it_is_read_as_any_other(version: int) -> None:
    whole = usual_request(version)
    unusual = [usual_request(version, records=None), usual_request(version, "x" * 200), usual_request(version, "")]
    changed = [
        whole[:at] + bytes((byte,)) + whole[at + 1 :] for at in range(len(whole)) for byte in (0, 1, 2, 9, 0x80, 0xFF)
    ]
    for body in (*unusual, *changed, *(whole[:end] for end in range(len(whole)))):
        assert outcome(read_produce, body, version) == outcome(_read_any, body, version), body


@pytest.mark.parametrize("version", versions(PRODUCE))
def test_the_answer_to_the_usual_produce_request_is_written_as_kio_writes_it(version: int) -> None:
    topic = "orders" if version < 13 else bytes(range(16))
    result = PartitionResult(5, 0, 70, 1_700_000_000_000, 60)
    response = {
        "responses": [
            {
                "name": topic,
                "topic_id": topic,
                "partition_responses": [
                    {
                        "index": 5,
                        "error_code": 0,
                        "base_offset": 70,
                        "log_append_time_ms": 1_700_000_000_000,
                        "log_start_offset": 60,
                        "record_errors": (),
                        "error_message": None,
                    }
                ],
            }
        ],
        "throttle_time_ms": 0,
    }
    assert write_produce(version, [(topic, [result])]) == write_response(PRODUCE, version, response)

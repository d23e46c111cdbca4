"""Fetch requests and answers of a member that are written and read by hand, and kio's declarations of them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.broker.wire.api_keys import FETCH
from octavo.broker.wire.messages import write_request, write_response
from octavo.broker.wire.replica_fetch import (
    METADATA_TOPIC_ID,
    FetchLimits,
    fetch_version,
    read_metadata_fetch,
    read_replica_fetch,
    write_metadata_fetch,
    write_replica_fetch,
)
from octavo.cluster.messages import (
    CurrentLeader,
    Endpoint,
    EpochEndOffset,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    MetadataFetchRequest,
    SnapshotId,
    TopicIdPartition,
)
from octavo.errors import MalformedRequest

LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
TOPIC = st.uuids(version=4)
PLACE = st.builds(TopicIdPartition, TOPIC, INT)
ASKED = st.builds(FetchPartition, INT, LONG, INT, LONG)
LIMITS = FetchLimits()


def _topics(request: FetchRequest) -> list[dict[str, Any]]:
    topics: dict[UUID, list[dict[str, Any]]] = {}
    for (topic_id, partition), asked in request.partitions.items():
        wanted = {"partition": partition, "partition_max_bytes": LIMITS.partition_max_bytes, **asked._asdict()}
        topics.setdefault(topic_id, []).append(wanted)
    return [{"topic_id": topic_id.bytes, "partitions": several} for topic_id, several in topics.items()]


def _forgotten(request: FetchRequest) -> list[dict[str, Any]]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, partition in request.forgotten:
        topics.setdefault(topic_id, []).append(partition)
    return [{"topic_id": topic_id.bytes, "partitions": several} for topic_id, several in topics.items()]


@given(
    version=st.integers(13, 18),
    broker_id=INT,
    broker_epoch=LONG,
    request=st.builds(
        FetchRequest, INT, INT, st.dictionaries(PLACE, ASKED, max_size=5), st.lists(PLACE, max_size=4, unique=True)
    ),
)
def test_requests_of_replicas(version: int, broker_id: int, broker_epoch: int, request: FetchRequest) -> None:
    content = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 10 << 20,
        "session_id": request.session_id,
        "session_epoch": request.session_epoch,
        "topics": _topics(request),
        "forgotten_topics_data": _forgotten(request),
    }
    replica: dict[str, Any] = {"replica_id": broker_id}
    if version >= 15:
        replica = {"replica_state": {"replica_id": broker_id, "replica_epoch": broker_epoch}}
    written = write_replica_fetch(request, version, broker_id=broker_id, broker_epoch=broker_epoch, limits=LIMITS)
    if version < 15 or (broker_id, broker_epoch) != (-1, -1):
        assert written == write_request(FETCH, version, content | replica)


@given(request=st.builds(MetadataFetchRequest, INT, LONG, INT, LONG), directory_id=TOPIC, version=st.integers(17, 18))
def test_requests_for_the_metadata_log(request: MetadataFetchRequest, directory_id: UUID, version: int) -> None:
    partition = {
        "partition": 0,
        "current_leader_epoch": request.current_leader_epoch,
        "fetch_offset": request.fetch_offset,
        "last_fetched_epoch": request.last_fetched_epoch,
        "log_start_offset": -1,
        "partition_max_bytes": 0,
        "replica_directory_id": directory_id.bytes,
        "high_watermark": request.high_watermark,
    }
    content = {
        "cluster_id": "a cluster",
        "replica_state": {"replica_id": 3, "replica_epoch": -1},
        "max_wait_ms": 500,
        "max_bytes": 1 << 20,
        "topics": [{"topic_id": METADATA_TOPIC_ID.bytes, "partitions": [partition]}],
    }
    written = write_metadata_fetch(
        request, cluster_id="a cluster", broker_id=3, directory_id=directory_id, version=version
    )
    assert written == write_request(FETCH, version, content)


FETCHED = st.builds(
    FetchedPartition,
    st.integers(-1, 130),
    LONG,
    LONG,
    st.binary(max_size=300),
    st.none() | st.builds(EpochEndOffset, st.integers(0, 9), LONG),
)


def _result(partition: int, fetched: FetchedPartition, **more: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "partition_index": partition,
        "error_code": fetched.error_code,
        "high_watermark": fetched.high_watermark,
        "log_start_offset": fetched.log_start_offset,
        "aborted_transactions": [{"producer_id": 1, "first_offset": 2}] if partition % 2 else None,
        "records": bytes(fetched.records) or None,
    }
    if fetched.diverging_epoch is not None:
        content["diverging_epoch"] = fetched.diverging_epoch._asdict()
    return content | more


def _answer(topics: dict[UUID, list[dict[str, Any]]], **more: Any) -> bytes:
    responses = [{"topic_id": topic_id.bytes, "partitions": several} for topic_id, several in topics.items()]
    return write_response(FETCH, 18, {"throttle_time_ms": 0, "error_code": 0, "responses": responses} | more)


@given(partitions=st.dictionaries(PLACE, FETCHED, max_size=5), error_code=st.integers(-1, 130), session_id=INT)
def test_answers_to_replicas(
    partitions: dict[TopicIdPartition, FetchedPartition], error_code: int, session_id: int
) -> None:
    topics: dict[UUID, list[dict[str, Any]]] = {}
    for (topic_id, partition), fetched in partitions.items():
        topics.setdefault(topic_id, []).append(_result(partition, fetched))
    body = _answer(topics, error_code=error_code, session_id=session_id)
    assert read_replica_fetch(memoryview(body)) == (error_code, session_id, partitions)


def test_answers_with_the_metadata_log() -> None:
    fetched = FetchedPartition(6, 12, 3, b"records")
    result = _result(
        0,
        fetched,
        current_leader={"leader_id": 102, "leader_epoch": 7},
        snapshot_id={"end_offset": 100, "epoch": 5},
    )
    endpoints = [
        {"node_id": 102, "host": "there", "port": 70000, "rack": None},
        {"node_id": 3, "host": "", "port": 1, "rack": "r"},
    ]
    body = _answer({METADATA_TOPIC_ID: [result]}, node_endpoints=endpoints)
    answer = read_metadata_fetch(memoryview(body))
    assert answer.error_code == 6
    assert answer.current_leader == CurrentLeader(102, 7)
    assert answer.node_endpoints == {102: Endpoint("there", 70000), 3: Endpoint("", 1)}
    assert (answer.high_watermark, answer.log_start_offset, bytes(answer.records)) == (12, 3, b"records")
    assert answer.snapshot_id == SnapshotId(100, 5)
    assert answer.diverging_epoch is None


@pytest.mark.parametrize(
    "topics", [{}, {UUID(int=9): [0]}, {METADATA_TOPIC_ID: [1]}, {METADATA_TOPIC_ID: [0, 1]}], ids=str
)
def test_other_partitions_than_the_metadata_log_are_refused(topics: dict[UUID, list[int]]) -> None:
    results = {topic: [_result(each, FetchedPartition()) for each in several] for topic, several in topics.items()}
    with pytest.raises(MalformedRequest):
        read_metadata_fetch(memoryview(_answer(results)))


def test_an_error_of_the_whole_answer() -> None:
    assert read_metadata_fetch(memoryview(_answer({}, error_code=104))).top_error_code == 104


@given(st.data())
def test_damaged_answers(data: st.DataObject) -> None:
    fetched = FetchedPartition(0, 12, 3, b"records", EpochEndOffset(1, 2))
    endpoints = [{"node_id": 102, "host": "there", "port": 70000, "rack": None}]
    whole = bytearray(_answer({METADATA_TOPIC_ID: [_result(0, fetched)]}, node_endpoints=endpoints))
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=3)):
        whole[at] = data.draw(st.integers(0, 255))
    damaged = memoryview(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    for read in (read_metadata_fetch, read_replica_fetch):
        with suppress(MalformedRequest):  # and nothing else
            read(damaged)


def test_versions_follow_metadata_version() -> None:
    assert [fetch_version(level) for level in (7, 9, 10, 19, 21, 26, 27, 30)] == [13, 14, 15, 16, 17, 17, 18, 18]

"""OffsetCommit, which is read and written by hand, agrees with kio in every version."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from octavo.broker.wire.api_keys import APIS, OFFSET_COMMIT
from octavo.broker.wire.messages import read_request, write_request, write_response
from octavo.broker.wire.offset_commit import read_offset_commit, write_offset_commit
from octavo.errors import MalformedRequest
from tests.unit.broker.wire.entities import declared, plain, random_message, written

VERSIONS = range(APIS[OFFSET_COMMIT].first, APIS[OFFSET_COMMIT].last + 1)
BY_ID = 10
FLEXIBLE = 8


def topic_key(topic: dict[str, Any]) -> str | bytes:
    key: str | bytes = topic["topic_id"] if "topic_id" in topic else topic["name"]
    return key


def check(body: bytes, version: int) -> None:
    """Compare what is read by hand with what the codec for all messages reads."""
    found = read_offset_commit(memoryview(body), version)
    asked = read_request(OFFSET_COMMIT, version, memoryview(body))
    for name in ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id"):
        assert getattr(found, name) == getattr(asked, name)
    assert found.retention_time_ms == getattr(asked, "retention_time_ms", -1)
    assert found.topics == [
        (
            topic.topic_id if version >= BY_ID else topic.name,
            [
                (each.partition_index, each.committed_offset, each.committed_leader_epoch, each.committed_metadata)
                for each in topic.partitions
            ],
        )
        for topic in asked.topics
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(20))
def test_a_request_is_read_as_kio_wrote_it(version: int, seed: int) -> None:
    check(written(random_message(declared(OFFSET_COMMIT, version), Random(seed), {})), version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("metadata", [[None], [""], [None, ""], ["", "x"], ["long" * 50, None]])
def test_very_many_partitions_are_read_alike_with_and_without_metadata(
    version: int, metadata: list[str | None]
) -> None:
    partitions = [
        {
            "partition_index": index,
            "committed_offset": 1 << index,
            "committed_leader_epoch": index - 1,
            "committed_metadata": metadata[index % len(metadata)],
        }
        for index in range(50)
    ]
    topics = [{"name": name, "topic_id": name.encode() * 16, "partitions": partitions} for name in ("a", "b")]
    content = {"group_id": "g", "member_id": "m", "topics": [*topics, {"name": "", "partitions": []}]}
    check(write_request(OFFSET_COMMIT, version, content), version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(20))
def test_a_response_is_written_as_kio_writes_it(version: int, seed: int) -> None:
    message = random_message(declared(OFFSET_COMMIT, version, response=True), Random(seed), {})
    content = plain(message) | {"throttle_time_ms": 0}
    topics = [
        (topic_key(topic), [(each["partition_index"], each["error_code"]) for each in topic["partitions"]])
        for topic in content["topics"]
    ]
    assert write_offset_commit(version, topics) == write_response(OFFSET_COMMIT, version, content)


@pytest.mark.parametrize("version", range(FLEXIBLE, VERSIONS.stop))
def test_tagged_fields_are_skipped_wherever_they_are(version: int) -> None:
    row = bytes(16) + b"\1"
    tag = b"\1\7\2xy"  # one tagged field with the number 7
    key = bytes(16) if version >= BY_ID else b"\2t"
    start = b"\2g" + bytes(4) + b"\1\0"
    for tags in (
        (tag, b"\0", b"\0", b"\0"),
        (b"\0", tag, b"\0", b"\0"),
        (b"\0", b"\0", tag, b"\0"),
        (b"\0",) * 3 + (tag,),
    ):
        first, second, of_topic, of_request = tags
        check(start + b"\2" + key + b"\3" + row + first + row + second + of_topic + of_request, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_ends_early_is_refused_wherever_it_ends(version: int) -> None:
    partitions = [{"partition_index": index, "committed_metadata": "x" * index} for index in range(3)]
    content = {"group_id": "g", "topics": [{"name": "t", "topic_id": bytes(16), "partitions": partitions}]}
    body = write_request(OFFSET_COMMIT, version, content)
    for end in range(len(body)):
        try:
            expected = read_request(OFFSET_COMMIT, version, memoryview(body[:end]))
        except MalformedRequest:
            with pytest.raises(MalformedRequest):
                read_offset_commit(memoryview(body[:end]), version)
        else:
            raise AssertionError(expected)

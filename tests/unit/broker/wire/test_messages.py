"""The codec for all messages reads and writes what kio does, and what kio does not."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from octavo.broker.wire import api_keys
from octavo.broker.wire.api_keys import APIS, FETCH_SNAPSHOT, METADATA
from octavo.broker.wire.messages import read_request, read_response, write_response
from octavo.errors import MalformedRequest
from tests.unit.broker.wire.entities import declared, plain, random_message, written

VERSIONS = [(key, version) for key, api in sorted(APIS.items()) for version in range(api.first, api.last + 1)]
SEEDS = range(5)


def unpacked(value: Any) -> Any:
    if isinstance(value, SimpleNamespace):
        return {name: unpacked(each) for name, each in vars(value).items()}
    return [unpacked(each) for each in value] if isinstance(value, tuple) else value


def has(found: Any, expected: Any) -> bool:
    """Whether all that is expected is there; fields of newer versions may come on top."""
    if isinstance(expected, dict):
        return all(has(found[name], each) for name, each in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(has(*pair) for pair in zip(found, expected, strict=True))
    return bool(found == expected)


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_requests_are_read_as_kio_wrote_them(api_key: int, version: int) -> None:
    for seed in SEEDS:
        message = random_message(declared(api_key, version), Random(seed), {})
        found = unpacked(read_request(api_key, version, memoryview(written(message))))
        assert has(found, plain(message))


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_responses_are_written_as_kio_writes_them(api_key: int, version: int) -> None:
    for seed in SEEDS:
        message = random_message(declared(api_key, version, response=True), Random(seed), {})
        assert write_response(api_key, version, plain(message)) == written(message)


def test_unknown_tagged_fields_and_bytes_behind_the_message_are_ignored() -> None:
    # topics: null, three booleans of version 9, then one tagged field with tag 77 and two bytes, and three bytes more
    body = memoryview(b"\x00" + b"\x01\x00\x02" + b"\x01\x4d\x02ab" + b"xyz")
    request = read_request(METADATA, 9, body)
    assert request.topics is None
    assert request.allow_auto_topic_creation is True
    assert request.include_topic_authorized_operations is True  # any byte but 0 is true


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x7f\xff\xff\xff",  # more topics than there are bytes
        b"\x00\x00\x00\x01\x00\x05abc",  # a name that is longer than the message
        b"\x00\x00\x00\x01\xff\xff\x00",  # a name that is null
    ],
)
def test_a_request_that_lies_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read_request(METADATA, 4, memoryview(body))


def test_a_field_that_the_version_lacks_has_the_default_of_the_newest() -> None:
    request = read_request(api_keys.LIST_OFFSETS, 1, memoryview(b"\xff\xff\xff\xff\x00\x00\x00\x00"))
    assert (request.isolation_level, request.topics) == (0, ())


def test_a_tagged_structure_that_is_left_out_is_none() -> None:
    partition = {
        "index": 0,
        "error_code": 0,
        "snapshot_id": {"end_offset": 5, "epoch": 1},
        "size": 1,
        "position": 0,
        "unaligned_records": b"x",
    }
    topics = [{"name": "__cluster_metadata", "partitions": [partition]}]
    body = write_response(FETCH_SNAPSHOT, 1, {"throttle_time_ms": 0, "error_code": 0, "topics": topics})
    answer = read_response(FETCH_SNAPSHOT, 1, memoryview(body))
    assert answer.topics[0].partitions[0].current_leader is None

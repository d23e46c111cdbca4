"""Frames that are cut, wrong, many at once, or never read: the broker does what Kafka does, and serves the others."""

from __future__ import annotations

import contextlib
import struct

import pytest

from octavo.broker.wire.api_keys import API_VERSIONS, FETCH, METADATA, PRODUCE
from octavo.server.serving import Server
from tests.server.raw import RawClient, header

VERSIONS = header(API_VERSIONS, 2, flexible=False)
_MANY = 1 << 30
NO_TOPICS = header(METADATA, 1, flexible=False) + b"\0\0\0\0"


def correlation_id(answer: bytes | None) -> int:
    assert answer is not None
    number: int = struct.unpack(">i", answer[:4])[0]
    return number


@pytest.fixture
def client(served: Server) -> RawClient:
    return RawClient(served.bootstrap_servers)


def test_requests_are_answered_in_their_order(client: RawClient) -> None:
    frames = [header(API_VERSIONS, 2, number, flexible=False) for number in range(100)]
    client.socket.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
    assert [correlation_id(client.receive()) for _ in frames] == list(range(100))


def test_a_request_may_come_byte_by_byte(client: RawClient) -> None:
    whole = struct.pack(">i", len(NO_TOPICS)) + NO_TOPICS
    for number in range(3):
        for position in range(len(whole)):
            client.socket.send(whole[position : position + 1])
        assert correlation_id(client.receive()) == 7, number


def test_a_version_of_api_versions_that_is_not_known_is_answered_in_version_0(client: RawClient) -> None:
    for version in (99, -1, 5):
        answer = client.ask(header(API_VERSIONS, version, flexible=True) + b"garbage")
        assert answer == struct.pack(">ihihhh", 7, 35, 1, API_VERSIONS, 0, 4)
    assert client.ask(VERSIONS) is not None  # the connection stays


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 104_857_601),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",  # how TLS begins
        struct.pack(">i", 3) + b"abc",  # shorter than a header
        struct.pack(">i", 10) + struct.pack(">hhih", 999, 0, 1, -1),  # no such API
        struct.pack(">i", 10) + struct.pack(">hhih", METADATA, 14, 1, -1),  # no such version
        struct.pack(">i", 10) + struct.pack(">hhih", PRODUCE, 2, 1, -1),  # listed, and not served
        struct.pack(">i", 10) + struct.pack(">hhih", METADATA, 1, 1, 77),  # a client id that is not there
        struct.pack(">i", 14) + struct.pack(">hhih", METADATA, 1, 1, -1) + b"\x7f\xff\xff\xff",  # as many topics
        struct.pack(">i", 10) + struct.pack(">hhih", FETCH, 4, 1, -1),  # no body
    ],
)
def test_a_bad_frame_ends_the_connection_and_no_other(client: RawClient, served: Server, data: bytes) -> None:
    with RawClient(served.bootstrap_servers) as other:
        client.socket.sendall(data)
        assert client.receive() is None
        assert other.ask(VERSIONS) is not None


def test_a_client_that_does_not_read_its_answers_hinders_nobody(client: RawClient, served: Server) -> None:
    client.socket.settimeout(0.2)
    frame = struct.pack(">i", len(VERSIONS)) + VERSIONS
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < _MANY:
            sent += client.socket.send(frame * 1000)
    assert sent < _MANY
    with RawClient(served.bootstrap_servers) as other:
        assert other.ask(VERSIONS) is not None

"""Answers are remembered as long as the image of the cluster is the same, and not without limits."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from octavo.broker.answer_cache import AnswerCache
from octavo.broker.cluster_image import ClusterImage, member_image
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import METADATA
from octavo.broker.wire.frames import RequestHeader
from octavo.log.metadata.image import Image


class Asking(NamedTuple):
    listener: tuple[str, int]
    listener_name: str = "PLAINTEXT"
    peer: str = "127.0.0.1"


def image() -> ClusterImage:
    return member_image(Image(), "cluster", None)


def request(body: bytes, *, version: int = 12, correlation_id: int = 1, port: int = 9092) -> Request:
    header = RequestHeader(METADATA, version, correlation_id, "me", 0)
    return Request(header, memoryview(body), Asking(("localhost", port)))


def test_the_same_request_gets_the_same_answer() -> None:
    answers, cluster = AnswerCache(), image()
    assert answers.find(cluster, request(b"a")) is None
    answers.keep(cluster, request(b"a"), [b"answer"])
    assert answers.find(cluster, request(b"a", correlation_id=2)) == b"answer"


@pytest.mark.parametrize("other", [request(b"b"), request(b"a", version=11), request(b"a", port=9093)])
def test_another_request_does_not(other: Request) -> None:
    answers, cluster = AnswerCache(), image()
    answers.keep(cluster, request(b"a"), [b"answer"])
    assert answers.find(cluster, other) is None


def test_nothing_is_known_of_another_image() -> None:
    answers, cluster, later = AnswerCache(), image(), image()
    answers.keep(cluster, request(b"a"), [b"answer"])
    assert answers.find(later, request(b"a")) is None
    answers.keep(later, request(b"b"), [b"other"])
    assert answers.find(cluster, request(b"a")) is None
    assert answers.find(later, request(b"a")) is None


def test_what_is_kept_is_bounded() -> None:
    answers, cluster = AnswerCache(), image()
    answers.keep(cluster, request(bytes(2000)), [b"answer"])
    assert answers.find(cluster, request(bytes(2000))) is None
    answers.keep(cluster, request(b"large"), [bytes(2 << 20)])
    assert answers.find(cluster, request(b"large")) is None
    for number in range(3000):
        answers.keep(cluster, request(b"%d" % number), [bytes(10_000)])
    kept = [number for number in range(3000) if answers.find(cluster, request(b"%d" % number)) is not None]
    assert 0 < len(kept) <= 105
    assert kept[-1] == 2999

"""Fixtures that all tests share: Apache Kafka as the judge, and the two kinds of kernels.

A test that asks for one of Kafka's is marked `kafka`. Where Kafka cannot be had such tests are skipped with the
reason; where `CI` is set they fail, so that no green run ever went without its judge.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.kafka.judge import Judge
from tests.kafka.releases import KafkaUnavailable, Name

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

_JUDGES = {"kafka", "kafka_broker", "kafka39"}


@pytest.fixture(params=["interpreted", "compiled"])
def each_kind_of_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test twice: one source, and one meaning, whether it is compiled or not. Says which it is."""
    kind: str = request.param
    monkeypatch.setenv("OCTAVO_KERNELS", kind)
    return kind


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _JUDGES & set(getattr(item, "fixturenames", ())):
            item.add_marker("kafka")


def _judge(name: Name) -> Iterator[Judge]:
    missing = ""
    try:
        with Judge(name) as judge:
            yield judge
    except KafkaUnavailable as reason:
        missing = str(reason)
    if missing and os.environ.get("CI"):
        pytest.fail(missing, pytrace=False)
    elif missing:
        pytest.skip(missing)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Judge]:
    """The newest client library: reads and writes everything."""
    yield from _judge("newest")


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Judge]:
    """The newest release that comes with a broker: `validate` as well."""
    yield from _judge("broker")


@pytest.fixture(scope="session")
def kafka39() -> Iterator[Judge]:
    """Kafka 3.9: `validate` and `down_convert` as well."""
    yield from _judge("legacy")

"""The fixture that runs brokers of Apache Kafka."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.kafka.broker import Broker
from tests.kafka.releases import KafkaUnavailable

NewBroker = Callable[..., Broker]  # takes what Broker takes


@pytest.fixture
def new_broker() -> Iterator[NewBroker]:
    """Makes brokers, each on folders of its own, and ends all of them after the test."""
    with ExitStack() as brokers:

        def make(*arguments: object, **options: object) -> Broker:
            try:
                return brokers.enter_context(Broker(*arguments, **options))  # type: ignore[arg-type]
            except KafkaUnavailable as reason:
                if os.environ.get("CI"):
                    pytest.fail(str(reason), pytrace=False)
                pytest.skip(str(reason))

        yield make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "new_broker" in getattr(item, "fixturenames", ()):
            item.add_marker("kafka")

"""The fixture that runs brokers of Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.broker import Broker
from tests.kafka.releases import KafkaUnavailable, do_without

NewBroker = Callable[..., Broker]  # takes what Broker takes


@pytest.fixture
def new_broker(java: str) -> Iterator[NewBroker]:
    """Makes brokers, each on folders of its own, and ends all of them after the test."""
    with ExitStack() as brokers:

        def make(*folders: Path, **options: Any) -> Broker:
            try:
                return brokers.enter_context(Broker(*folders, **options))
            except KafkaUnavailable as reason:
                do_without(reason)

        yield make

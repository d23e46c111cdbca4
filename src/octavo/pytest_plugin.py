"""Fixtures for tests that need a Kafka broker. pytest finds them where Octavo is installed.

    def test_orders(octavo_broker):
        producer = Producer({"bootstrap.servers": octavo_broker.bootstrap_servers})

    octavo_broker           a broker for one test, on an empty temporary directory
    octavo_broker_session   a broker for all tests of the run
    octavo_broker_config    the settings of both, by Kafka's names: override it in your conftest.py, with
                            scope="session"

A broker is an `octavo.server.serving.Server`. It runs in threads of the test process, and is up in a fraction of a
second. This module imports nothing of Octavo, so that it costs nothing where it is not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from octavo.server.serving import Server


@pytest.fixture(scope="session")
def octavo_broker_config() -> dict[str, str]:
    """The settings of brokers, by Kafka's names. Override it to change them."""
    return {}


@pytest.fixture
def octavo_broker(octavo_broker_config: dict[str, str]) -> Iterator[Server]:
    """A Kafka broker for one test, without topics."""
    from octavo.server.serving import serve

    with serve(config=octavo_broker_config) as server:
        yield server


@pytest.fixture(scope="session")
def octavo_broker_session(octavo_broker_config: dict[str, str]) -> Iterator[Server]:
    """A Kafka broker for all tests of the run."""
    from octavo.server.serving import serve

    with serve(config=octavo_broker_config) as server:
        yield server

"""The brokers that clients are tried with.

Failed assertions of scenarios say what was different, as those of tests do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.clients.scenarios", "tests.clients.team")

from tests.clients.brokers import ApacheKafkaBroker, Brokers, OctavoBroker  # noqa: E402  # after that they are rewritten
from tests.clients.cells import Connections  # noqa: E402  # the same


@pytest.fixture(scope="package")
def octavo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connections]:
    with Brokers(OctavoBroker, tmp_path_factory.mktemp("octavo")) as brokers, Connections(brokers) as connections:
        yield connections


@pytest.fixture(scope="package")
def apache_kafka(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connections]:
    with Brokers(ApacheKafkaBroker, tmp_path_factory.mktemp("kafka")) as brokers, Connections(brokers) as connections:
        yield connections

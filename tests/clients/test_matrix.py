"""Each cell of the matrix of client and feature, against Octavo, and in the soak against Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.cells import CELLS, Cell, Connections
from tests.clients.clients import CLIENTS
from tests.clients.document import DOCUMENT, render
from tests.clients.driver import ClientUnavailable
from tests.clients.features import FEATURES
from tests.kafka.releases import KafkaUnavailable, do_without
from tests.selection import some


def few(cells: list[Cell]) -> list[Any]:
    """All cells; `make test` has librdkafka do everything, and the other clients a thing each, in turn."""
    others = {name: number for number, name in enumerate(name for name in CLIENTS if name != "confluent-kafka")}
    features = {name: number for number, name in enumerate(FEATURES)}
    return some(
        cells,
        where=lambda cell: (
            cell.client.name not in others or features[cell.feature.name] % len(others) == others[cell.client.name]
        ),
    )


def test_excuses_are_for_features_that_there_are() -> None:
    for client in CLIENTS.values():
        assert {*client.cannot, *client.not_yet, *client.not_on_kafka} <= FEATURES.keys()
        assert not client.cannot.keys() & client.not_yet.keys()


def test_the_document_has_the_matrix() -> None:
    assert DOCUMENT.read_text() == render(), "run python -m tests.clients"


@pytest.mark.parametrize("cell", few([cell for cell in CELLS if not cell.client.needs_java]), ids=str)
def test_client(cell: Cell, octavo: Connections) -> None:
    _run(cell, octavo, everything_is_built=False)


@pytest.mark.parametrize("cell", few([cell for cell in CELLS if cell.client.needs_java]), ids=str)
def test_client_in_java(cell: Cell, octavo: Connections, java: str) -> None:
    _run(cell, octavo, everything_is_built=False)


@pytest.mark.soak
@pytest.mark.parametrize("cell", [cell for cell in CELLS if not cell.fails_on_kafka], ids=str)
def test_the_same_is_true_of_apache_kafka(cell: Cell, apache_kafka: Connections) -> None:
    _run(cell, apache_kafka, everything_is_built=True)


def _run(cell: Cell, connections: Connections, *, everything_is_built: bool) -> None:
    try:
        connections.run(cell, everything_is_built=everything_is_built)
    except (KafkaUnavailable, ClientUnavailable) as reason:
        do_without(reason)

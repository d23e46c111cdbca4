"""The model of the controller does what a controller of Apache Kafka does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.kafka.cluster import StockCluster
from tests.simulation.replication.by_hand import ALONE, BY_HAND
from tests.simulation.replication.comparison import Comparison, TooSlow
from tests.simulation.replication.sequences import Sequence, from_seed
from tests.simulation.replication.stock import StockController
from tests.soak.plugin import Soak

SEEDS = 120
SESSION_MS = 4500
PATIENT_SESSION_MS = 15_000
NUMBERS = count()  # each sequence has brokers and a topic of its own


@contextmanager
def running(folder: Path, session_ms: int) -> Iterator[StockCluster]:
    patient = {"broker.heartbeat.interval.ms": "20000"}  # a heartbeat may wait half of it before it is handled
    with StockCluster(folder, settings={**patient, "broker.session.timeout.ms": str(session_ms)}) as cluster:
        cluster.start()
        yield cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, java: str) -> Iterator[StockCluster]:
    with running(tmp_path_factory.mktemp("cluster"), SESSION_MS) as cluster:
        yield cluster


def compare(cluster: StockCluster, sequences: list[tuple[str, Sequence]], session_ms: int = SESSION_MS) -> int:
    """Return how many steps were compared. Raises `TooSlow` on a machine that is too busy for heartbeats."""
    numbered = {next(NUMBERS): each for each in sequences}
    with StockController(cluster.bootstrap, len(sequences)) as stock:
        comparison = Comparison(stock, session_ms / 1000, numbered)
        comparison.run()
        return comparison.steps


def compare_patiently(cluster: StockCluster, sequences: list[tuple[str, Sequence]], folder: Path) -> int:
    """Like `compare`; on a machine that is too busy for heartbeats, with longer sessions."""
    try:
        return compare(cluster, sequences)
    except TooSlow:
        with running(folder, PATIENT_SESSION_MS) as patient:
            return compare(patient, sequences, PATIENT_SESSION_MS)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)  # patient sessions take long
def test_the_model_does_what_a_controller_does(cluster: StockCluster, tmp_path: Path) -> None:
    by_hand = [(each.__name__, each) for each in BY_HAND]
    seeds = [(f"seed {seed}", from_seed(seed)) for seed in range(SEEDS)]
    assert compare_patiently(cluster, [*by_hand, *seeds], tmp_path) > 20 * SEEDS


@pytest.mark.parametrize("sequence", ALONE)
def test_the_model_lets_brokers_go_when_a_controller_does(
    cluster: StockCluster, tmp_path: Path, sequence: Sequence
) -> None:
    assert compare_patiently(cluster, [("alone", sequence)], tmp_path)


@pytest.mark.soak(40)
def test_the_model_does_what_a_controller_does_in_many_sequences(tmp_path: Path, java: str, soak: Soak) -> None:
    with running(tmp_path, 2 * SESSION_MS) as cluster:
        for seed in soak.seeds():
            sequences = [(f"seed {each}", from_seed(each)) for each in range(40 * seed, 40 * seed + 40)]
            compare(cluster, sequences, 2 * SESSION_MS)


@pytest.mark.soak(40)
def test_the_model_does_what_the_next_controller_does(tmp_path: Path, java: str, soak: Soak) -> None:
    with running(tmp_path, 2 * SESSION_MS) as cluster:
        for seed in soak.seeds():
            compare_with_the_next(cluster, range(40 * seed, 40 * seed + 40))


def compare_with_the_next(cluster: StockCluster, seeds: range) -> None:
    """Kill the controller in the midst of each sequence."""
    sequences = {next(NUMBERS): (f"seed {seed}", from_seed(seed, fails_over=True)) for seed in seeds}
    with StockController(cluster.bootstrap, len(sequences)) as stock:

        def fail_over() -> None:
            (controller,) = cluster.controllers
            controller.kill()
            controller.launch()
            controller.await_ready()
            cluster.await_active()
            stock.connect_again()

        Comparison(stock, 2 * SESSION_MS / 1000, sequences, fail_over).run()

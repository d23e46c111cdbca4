"""Real brokers on simulated disks replicate partitions under faults: nothing that anybody relies on is lost."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path

import pytest

from octavo.broker.member.elsewhere import CoordinatorsElsewhere
from octavo.log import Log
from tests.selection import some
from tests.simulation.replication.memory_log import Entry
from tests.simulation.replication.planted import PLANTED, PLANTED_IN_REAL, PLOTTED_IN_REAL, RARE_IN_REAL
from tests.simulation.replication.real_replica import HOLE, RealReplica, batch_of
from tests.simulation.replication.real_world import run_real
from tests.simulation.replication.wire_log import TOPIC
from tests.soak.plugin import Soak

SEEDS = 32
PARTS = 4
FOUND_IN = 60  # runs, at most


def run_all(seeds: Iterable[int]) -> list[int]:
    """Return how many producers were told that all is well."""
    acknowledged = []
    for seed in seeds:
        acknowledged.append(run_real(seed).acknowledged)
        if not seed % 8:
            gc.collect()  # files that dead processes had open
    return acknowledged


@pytest.mark.parametrize("part", some(range(PARTS)))
def test_nothing_is_lost(part: int) -> None:
    size = SEEDS // PARTS
    assert sum(run_all(range(part * size, (part + 1) * size))) > 20 * size


@pytest.mark.soak
def test_nothing_is_lost_in_many_runs(soak: Soak) -> None:
    run_all(soak.seeds())


def test_whoever_looks_for_coordinators_is_told_of_every_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mend 2.6: the operator is told when a broker is given partitions of internal topics."""
    told: set[str | None] = set()
    monkeypatch.setattr(
        CoordinatorsElsewhere, "look_at", lambda _, image, changed: told.update(map(image.name_of, changed))
    )
    run_real(3)
    assert TOPIC in told


def test_a_seed_replays() -> None:
    once, again = run_real(11, trace=True), run_real(11, trace=True)
    assert once.trace == again.trace
    assert {each: checks.known for each, checks in once.checks.items()} == {
        each: checks.known for each, checks in again.checks.items()
    }


def test_a_log_that_was_cut_within_a_batch_ends_with_a_hole(tmp_path: Path) -> None:
    """The leader had deleted the records before the cut, and the follower had others there. So it is in Kafka."""
    with Log.open(tmp_path / "topic-0") as log:
        for values in ([1], [2, 3, 4]):
            log.append(batch_of(values))
        log.truncate_to(3)
        assert RealReplica(log).entries == [Entry(0, 1), HOLE, HOLE]


@pytest.mark.parametrize("planted", some(PLANTED_IN_REAL))
def test_a_planted_mistake_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[planted](monkeypatch)
    for seed in range(FOUND_IN):
        try:
            run_real(seed)
        except AssertionError:
            return
    pytest.fail(f"nothing was found in {FOUND_IN} runs")


@pytest.mark.soak
@pytest.mark.parametrize("planted", RARE_IN_REAL)
def test_a_rare_planted_mistake_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[planted](monkeypatch)
    for seed in range(10 * FOUND_IN):
        try:
            run_real(seed)
        except AssertionError:
            return
    pytest.fail(f"nothing was found in {10 * FOUND_IN} runs")


@pytest.mark.parametrize("planted", ["old_broker_epoch", pytest.param("late_answer", marks=pytest.mark.soak)])
def test_a_planted_mistake_is_found_in_a_plot(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[planted](monkeypatch)
    for seed in range(FOUND_IN):
        try:
            run_real(seed, plot=PLOTTED_IN_REAL[planted])
        except AssertionError:
            return
    pytest.fail(f"nothing was found in {FOUND_IN} runs")

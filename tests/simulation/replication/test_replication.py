"""Three brokers replicate partitions under faults: nothing that anybody relies on is lost."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from tests.selection import some
from tests.simulation.replication.checks import Broken
from tests.simulation.replication.planted import PLANTED
from tests.simulation.replication.world import World, run_seed
from tests.soak.plugin import Soak

SEEDS = 1600
PARTS = 8
FOUND_IN = 400  # runs, at most


@contextmanager
def rare_collections() -> Iterator[None]:
    """Have the interpreter look for cycles only when it is told to, which saves a fifth of the time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run_all(seeds: Iterable[int]) -> list[World]:
    worlds = []
    with rare_collections():
        for number, seed in enumerate(seeds):
            worlds.append(run_seed(seed))
            if not number % 50:
                worlds.clear()
                gc.collect()
    return worlds


@pytest.mark.parametrize("part", some(range(PARTS)))
def test_nothing_is_lost(part: int) -> None:
    size = SEEDS // PARTS
    acknowledged = [run_seed(seed).acknowledged for seed in range(part * size, (part + 1) * size)]
    assert sum(acknowledged) > 50 * size


@pytest.mark.soak
def test_nothing_is_lost_in_many_runs(soak: Soak) -> None:
    with rare_collections():
        for seed in soak.seeds():
            run_seed(seed)
            if not seed % 50:
                gc.collect()


def test_a_seed_replays() -> None:
    for seed in range(4):
        once, again = World(seed, trace=True), World(seed, trace=True)
        once.run()
        again.run()
        assert once.trace == again.trace
        assert once.controller.log.images == again.controller.log.images


@pytest.mark.parametrize("kind", [(), ("--real",)], ids=["in memory", "real brokers"])
def test_a_seed_replays_in_another_process(kind: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tests.simulation.replication", *kind, "--seed", "3", "--trace"]
    traces = [
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert traces[0] == traces[1]
    assert "0 of 1 failed" in traces[0]


@pytest.mark.parametrize("planted", some(PLANTED, 4))
def test_a_planted_mistake_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[planted](monkeypatch)
    for seed in range(FOUND_IN):
        try:
            World(seed).run()
        except Broken:
            return
    pytest.fail(f"nothing was found in {FOUND_IN} runs")

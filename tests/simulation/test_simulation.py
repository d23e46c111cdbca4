"""Groups and transactions do what they promise, whatever goes wrong: thousands of schedules, each from a seed."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.selection import some
from tests.simulation.schedule import Result, run_schedule
from tests.soak.plugin import Soak

SCHEDULES = 2_000
PARTS = 8


@contextmanager
def rare_collections() -> Iterator[None]:
    """Have the interpreter look for cycles only when it is told to, which saves a fifth of the time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run_all(seeds: range) -> list[Result]:
    results = []
    with rare_collections():
        for number, seed in enumerate(seeds):
            results.append(run_schedule(seed))
            if not number % 50:
                gc.collect()
    return results


@pytest.mark.parametrize("part", some(range(PARTS)))
def test_no_schedule_breaks_a_promise(part: int) -> None:
    size = SCHEDULES // PARTS
    results = run_all(range(part * size, (part + 1) * size))
    assert sum(result.requests for result in results) > 50 * size  # they do something
    assert sum(result.kills for result in results) > size // 10
    assert sum(result.committed for result in results) > size


@pytest.mark.soak
def test_no_schedule_breaks_a_promise_in_the_long_run(soak: Soak) -> None:
    with rare_collections():
        for seed in soak.seeds():
            run_schedule(seed)
            if not seed % 50:
                gc.collect()


def digest(seeds: range) -> str:
    traces = "\n".join(line for seed in seeds for line in run_schedule(seed, trace=True).trace)
    return hashlib.sha256(traces.encode()).hexdigest()


def test_a_seed_leads_to_the_same_schedule_every_time() -> None:
    seeds = range(6)
    here = digest(seeds)
    assert digest(seeds) == here
    program = "from tests.simulation.test_simulation import digest; print(digest(range(6)))"
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == here

"""Measure how soon a broker that is started answers a produce and a fetch."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.broker import requests
from benchmarks.broker.requests import Connections
from benchmarks.broker.served import octavo
from benchmarks.log.sets import scratch
from benchmarks.measure import Result, tell, within

_LIMIT_S: Final = 0.6
_PATIENCE_S: Final = 30


def measure(*, repeat: int) -> list[Result]:
    """Start `octavo serve` again and again, on a directory with one topic."""
    tell("cold start")
    with scratch() as folder:
        data = folder / "data"
        with octavo(data) as broker:
            broker.create("first")
        times = [_start(data) for _ in range(repeat + 1)][1:]
    return [within("cold start to a produce and a fetch answered", median(times), _LIMIT_S, "s")]


def _start(data: Path) -> float:
    """Return the seconds from the start of the process to the answer of a fetch."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "octavo.cli", "serve", "--data", str(data)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        with Connections(address, 1) as client:
            client.ask(requests.produce("first"))
            client.ask(requests.fetch("first"))
        return time.perf_counter() - begin
    finally:
        process.terminate()
        process.wait(_PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()

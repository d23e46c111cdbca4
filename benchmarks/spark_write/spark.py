"""Run the two programs of this benchmark, each in a Spark process of its own, and read what they print."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from benchmarks.warm_broker import WarmBroker
from tests.kafka.releases import KafkaUnavailable
from tests.spark import sessions

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True)
class Write:
    """A write of the cached rows: its name, what it writes to, and options of the sink."""

    name: str
    target: str
    options: Mapping[str, str] = field(default_factory=dict)
    times: int = 1  # how often the rows are written, in one query


class Passes(NamedTuple):
    """What the passes of each write took."""

    of: dict[str, list[dict[str, float]]]
    rows: int  # number of the cached rows

    def median(self, name: str, what: str = "seconds") -> float:
        """Return the median of all passes."""
        return median(each[what] for each in self.of[name])

    def best(self, name: str) -> float:
        """Return the seconds of the fastest pass."""
        return min(each["seconds"] for each in self.of[name])


def write(
    writes: Sequence[Write], *, rows: Path, folder: Path, broker: WarmBroker | None, repeat: int, warm: int
) -> Passes:
    """Write `rows`, a log, to each target in turns, after `warm` rounds in which JVMs compile their code."""
    settings = {**_SETTINGS, "spark.driver.memory": "3g"}  # the rows are cached in it
    if broker is not None:
        settings["spark.driver.extraClassPath"] = sessions.connector_path()
    asked = {
        "settings": settings,
        "input": str(rows),
        "folder": str(folder),
        "broker": None if broker is None else [broker.address, broker.pid],
        "writes": [asdict(each) for each in writes],
        "repeat": repeat,
        "warm": warm,
    }
    found = _ask("benchmarks.spark_write.program", asked)
    return Passes(found["passes"], found["count"])


def run_empty(sinks: Mapping[str, Mapping[str, str]], *, folder: Path, repeat: int, count: int) -> Passes:
    """Run `count` micro-batches without rows into each sink, `repeat` times in turns."""
    asked = {
        "settings": {**_SETTINGS, "spark.driver.memory": "1g"},
        "folder": str(folder),
        "sinks": [{"name": name, "options": dict(options)} for name, options in sinks.items()],
        "repeat": repeat,
        "warm": 10,
        "count": count,
    }
    return Passes(_ask("benchmarks.spark_write.empty", asked), 0)


def has_connector() -> bool:
    """Return whether Spark's Kafka connector is there."""
    try:
        sessions.connector_path()
    except KafkaUnavailable:
        return False
    return True


def _ask(program: str, asked: Mapping[str, object]) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", program],
        input=json.dumps({"master": "local[2]", **asked}),
        env=sessions.environment(),
        cwd=sessions.ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError("Spark did not do it: what it said stands above")
    return json.loads(done.stdout.splitlines()[-1])

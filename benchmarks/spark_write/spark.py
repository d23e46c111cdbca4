"""Run the two programs of this benchmark, each in a Spark process of its own, and read what they print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.spark_process import Session, run_program
from benchmarks.warm_broker import WarmBroker
from tests.kafka.releases import KafkaUnavailable
from tests.spark import sessions


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
    settings = {} if broker is None else {"spark.driver.extraClassPath": sessions.connector_path()}
    asked = {
        "input": str(rows),
        "folder": str(folder),
        "broker": None if broker is None else [broker.address, broker.pid],
        "writes": [asdict(each) for each in writes],
        "repeat": repeat,
        "warm": warm,
    }
    session = Session(memory="3g", settings=settings)  # the rows are cached in it
    found = run_program("benchmarks.spark_write.program", asked, session)
    return Passes(found["passes"], found["count"])


def run_empty(sinks: Mapping[str, Mapping[str, str]], *, folder: Path, repeat: int, count: int) -> Passes:
    """Run `count` micro-batches without rows into each sink, `repeat` times in turns."""
    asked = {
        "folder": str(folder),
        "sinks": [{"name": name, "options": dict(options)} for name, options in sinks.items()],
        "repeat": repeat,
        "warm": 10,
        "count": count,
    }
    return Passes(run_program("benchmarks.spark_write.empty", asked, Session()), 0)


def has_connector() -> bool:
    """Return whether Spark's Kafka connector is there."""
    try:
        sessions.connector_path()
    except KafkaUnavailable:
        return False
    return True

"""Run queries in a separate Spark process, on a given number of cores."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, NamedTuple

from tests.spark import sessions


@dataclass(frozen=True)
class Query:
    """A query: its name, format and options."""

    name: str
    options: Mapping[str, str]
    format: str = "octavo"
    anew: bool = False  # whether the query is planned again in each round


@dataclass(frozen=True)
class Session:
    """The settings of a Spark session."""

    cores: int = 2
    memory: str = "1g"
    settings: Mapping[str, str] = field(default_factory=dict)


class Answer(NamedTuple):
    """The measured times of all queries, and the memory of the workers."""

    times: dict[str, list[float]]
    worker_mib: float  # the peak memory of a worker

    def seconds(self, name: str) -> float:
        """Return the median time of a query."""
        return median(self.times[name])


def ask(queries: Sequence[Query], *, repeat: int, session: Session | None = None, warm: int = 3) -> Answer:
    """Run queries in turns in a new Spark process, after `warm` rounds in which the JVM compiles its code."""
    asked = {"repeat": repeat, "warm": warm, "queries": [asdict(each) for each in queries]}
    found = run_program("benchmarks.spark_read.program", asked, Session() if session is None else session)
    return Answer(found["times"], found["worker_mib"])


def run_program(module: str, asked: Mapping[str, Any], session: Session) -> Any:
    """Run a module that starts Spark, in a process of its own; return what it prints as JSON on its last line.

    It gets `asked` as JSON, and with it `master` and `settings` for the session.
    """
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": session.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        **session.settings,
    }
    command = [sys.executable, "-m", module]
    if session.cores == 1 and shutil.which("taskset"):
        command = ["taskset", "--cpu-list", "0", *command]
    done = subprocess.run(
        command,
        input=json.dumps({"master": "local[2]", "settings": settings, **asked}),
        env=sessions.environment(),
        cwd=sessions.ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError("Spark did not do it: what it said stands above")
    return json.loads(done.stdout.splitlines()[-1])

"""Run queries in a separate Spark process, on a given number of cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import NamedTuple

from benchmarks.measure import Result
from benchmarks.spark_process import Session, run_program


@dataclass(frozen=True)
class Query:
    """A query: its name, format and options."""

    name: str
    options: Mapping[str, str]
    format: str = "octavo"
    anew: bool = False  # whether the query is planned again in each round


class Answer(NamedTuple):
    """The measured times of all queries, and the memory of the workers."""

    times: dict[str, list[float]]
    worker_mib: float  # the peak memory of a worker

    def seconds(self, name: str) -> float:
        """Return the median time of a query."""
        return median(self.times[name])

    def ratio(self, name: str, ours: str, peer: str, count: int, target: float | None) -> Result:
        """Compare two queries of `count` records."""
        mine, other = self.seconds(ours), self.seconds(peer)
        return Result(
            name=name,
            ratio=other / mine,
            best_ratio=min(self.times[peer]) / min(self.times[ours]),
            ours=count / mine,
            peer=count / other,
            unit="records/s",
            target=target,
        )


def ask(queries: Sequence[Query], *, repeat: int, session: Session | None = None, warm: int = 3) -> Answer:
    """Run queries in turns in a new Spark process, after `warm` rounds in which the JVM compiles its code."""
    asked = {"repeat": repeat, "warm": warm, "queries": [asdict(each) for each in queries]}
    found = run_program("benchmarks.spark_read.program", asked, Session() if session is None else session)
    return Answer(found["times"], found["worker_mib"])

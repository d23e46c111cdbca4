"""Run exports in turns in a separate Spark process."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.data import FOLDER
from benchmarks.spark_process import Session, run_program
from benchmarks.spark_read.spark import Answer

CODEC = "snappy"  # of all Parquet files: the default of Spark and of exports


@dataclass(frozen=True)
class Export:
    """A way to write a table: its name, what does it, and its options."""

    name: str
    kind: str  # a function of `program`
    options: Mapping[str, str]


def run_exports(exports: Sequence[Export], *, count: int, repeat: int, session: Session, warm: int = 2) -> Answer:
    """Write `count` rows in each of these ways, in turns, after `warm` rounds in which the JVM compiles its code."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        found = run_program(
            "benchmarks.spark_export.program",
            {
                "repeat": repeat,
                "warm": warm,
                "count": count,
                "codec": CODEC,
                "folder": folder,
                "exports": [asdict(each) for each in exports],
            },
            session,
        )
    return Answer(found["times"], found["worker_mib"])

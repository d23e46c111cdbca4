"""A data set under the name of a segment, and Apache Kafka's own tool to look at it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.data import DataSet
from benchmarks.log.sets import scratch
from tests.kafka import releases

NAME: Final = "00000000000000000000.log"
_TOOL: Final = "org.apache.kafka.tools.DumpLogSegments"


@contextmanager
def as_segment(shape: DataSet) -> Iterator[Path]:
    """Give a data set, in the folder of a partition, the name of a segment."""
    with scratch() as folder:
        (folder / "topic-0").mkdir()
        path = folder / "topic-0" / NAME
        os.link(shape.path, path)
        yield path


def run_kafkas_tool(path: Path, option: str) -> float:
    """Run `kafka-dump-log` in a JVM of its own; return the seconds that it took. What it prints is discarded."""
    jars = ":".join(map(str, releases.find("broker").jars))
    return run_discarding([releases.java(), "-Xmx512m", "-cp", jars, _TOOL, option, "--files", str(path)])


def run_discarding(command: list[str]) -> float:
    """Run a command; return the seconds that it took. What it prints is discarded."""
    begin = perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return perf_counter() - begin

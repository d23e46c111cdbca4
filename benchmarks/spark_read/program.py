"""A Spark of its own that runs queries by turns, and tells how long each took.

    python -m benchmarks.spark_read.program < questions.json

A question is the path of a log or the address of a broker, a format and its options; the answer has seconds of each
round after the first, the rows of a batch, and the peak memory of the Python workers, which is read after all.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark_read.ready import ReadySource


def main() -> None:
    """Answers on the last line."""
    asked = json.load(sys.stdin)
    builder = SparkSession.builder.master(asked["master"]).appName("benchmark")
    for name, value in asked["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(ReadySource)
    frames = {query["name"]: load(spark, query) for query in asked["queries"]}
    times: dict[str, list[float]] = {name: [] for name in frames}
    for turn in range(asked["repeat"] + 1):
        for name, frame in frames.items():
            begin = perf_counter()
            frame.write.format("noop").mode("overwrite").save()  # all rows into the JVM, and no further
            taken = perf_counter() - begin
            print(f"    {name}: {taken:.2f} s", file=sys.stderr, flush=True)
            if turn or not asked["warm"]:
                times[name].append(taken)
    print(json.dumps({"times": times, "worker_mib": peak_of_workers(os.getpid())}), flush=True)
    spark.stop()


def load(spark: SparkSession, query: dict[str, Any]) -> DataFrame:
    """What is asked, as a user keeps it: Spark plans it once, in the round that does not count."""
    return spark.read.format(query["format"]).options(**query["options"]).load()


def peak_of_workers(root: int) -> float:
    """The most memory that a Python worker below this process ever had, in MiB."""
    peak = 0
    for process in descendants(root):
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue  # it has ended meanwhile
        if b"pyspark.daemon" in command:
            peak = max(peak, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")))
    return peak / 1024


def descendants(root: int) -> list[int]:
    """All processes below one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


if __name__ == "__main__":
    main()

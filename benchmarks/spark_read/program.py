"""Run queries in turns in a separate Spark process, and print how long each took.

    python -m benchmarks.spark_read.program < questions.json

Each query in the JSON has a name, a format and its options, such as the path of a log or the address of a broker. The
output has the seconds of each round after the warm-up rounds, and the peak memory of the Python workers.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark_process import answering
from benchmarks.spark_read.ready import ReadySource
from tests.spark.processes import workers


def main() -> None:
    """Run the queries, and print the measurements as JSON on the last line."""
    with answering() as (spark, asked):
        spark.dataSource.register(ReadySource)
        frames = {query["name"]: load(spark, query) for query in asked["queries"]}
        times: dict[str, list[float]] = {name: [] for name in frames}
        for turn in range(asked["warm"] + asked["repeat"]):
            for query in asked["queries"]:
                name = query["name"]
                begin = perf_counter()
                frame = load(spark, query) if query["anew"] else frames[name]
                frame.write.format("noop").mode("overwrite").save()  # all rows go into the JVM, which drops them
                taken = perf_counter() - begin
                print(f"    {name}: {taken:.2f} s", file=sys.stderr, flush=True)
                if turn >= asked["warm"]:
                    times[name].append(taken)
        print(json.dumps({"times": times, "worker_mib": peak_of_workers(os.getpid())}), flush=True)


def load(spark: SparkSession, query: dict[str, Any]) -> DataFrame:
    """Return the data frame of a query. It is kept as a user would keep it: Spark plans it once, when it first runs."""
    return spark.read.format(query["format"]).options(**query["options"]).load()


def peak_of_workers(root: int) -> float:
    """Return the highest peak memory of the Python workers below a process, in MiB."""
    peak = 0
    for process in workers(root):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        peak = max(peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM")))
    return peak / 1024


if __name__ == "__main__":
    main()

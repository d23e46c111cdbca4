"""Write the same cached rows to several sinks in turns, in a separate Spark process, and print how long each took.

    python -m benchmarks.spark_write.program < questions.json

Each write in the JSON has a name, a target and options of the sink. The output has the seconds of each round after the
warm-up rounds, and the CPU seconds of Spark, with its Python workers, and of the broker.
"""

from __future__ import annotations

import json
import os
import sys
from functools import reduce
from pathlib import Path
from time import perf_counter

from pyspark.sql import DataFrame

from benchmarks.spark_process import answering
from benchmarks.spark_write.dropping import DroppingSink
from benchmarks.spark_write.targets import Directory, Dropped, Served, Target
from tests.spark.processes import CpuMeter


def main() -> None:
    """Run the writes, and print the measurements as JSON on the last line."""
    with answering() as (spark, asked):
        spark.dataSource.register(DroppingSink)
        rows = spark.read.format("octavo").load(asked["input"]).select("key", "value").cache()
        count = rows.count()
        targets: dict[str, Target] = {name: Dropped(name) for name in ("noop", "dropping")}
        targets["octavo"] = Directory(Path(asked["folder"]))
        if asked["broker"]:
            targets["kafka"] = Served(*asked["broker"])
        cpu = CpuMeter(os.getpid())
        passes: dict[str, list[dict[str, float]]] = {write["name"]: [] for write in asked["writes"]}
        for turn in range(asked["warm"] + asked["repeat"]):
            for write in asked["writes"]:
                times = write["times"]
                frame = reduce(DataFrame.union, [rows] * times)
                taken = measure(frame, targets[write["target"]], write["options"], count * times, cpu)
                print(f"    {write['name']}: {taken}", file=sys.stderr, flush=True)
                if turn >= asked["warm"]:
                    passes[write["name"]].append(taken)
        print(json.dumps({"passes": passes, "count": count}), flush=True)


def measure(rows: DataFrame, target: Target, options: dict[str, str], count: int, cpu: CpuMeter) -> dict[str, float]:
    """Write all rows once; returns the seconds that it took. Raises `RuntimeError` if not all rows are there."""
    where = target.prepare()
    writer = rows.write.format(target.format).options(**where, **options)
    os.sync()  # what the pass before has left to be written to the disk does not slow this one
    spark_cpu, broker_cpu = cpu.seconds(), target.broker_cpu()
    begin = perf_counter()
    writer.mode("overwrite" if target.format == "noop" else "append").save()
    taken = {
        "seconds": perf_counter() - begin,
        "spark_cpu": cpu.seconds() - spark_cpu,
        "broker_cpu": target.broker_cpu() - broker_cpu,
    }
    written = target.count()
    if written not in (count, -1):
        raise RuntimeError(f"{target.format} has {written:,} records of {count:,}")
    target.clear()
    return {name: round(seconds, 3) for name, seconds in taken.items()}


if __name__ == "__main__":
    main()

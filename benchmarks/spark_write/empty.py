"""Run micro-batches without rows into several sinks in turns, in a separate Spark process, and print what they took.

    python -m benchmarks.spark_write.empty < questions.json

The source makes rows inside of the JVM, and a filter drops them all. The output has the seconds of each micro-batch, as
Spark reports them: of all of it, and of what the sink has a part in.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from benchmarks.spark_process import answering
from benchmarks.spark_write.dropping import DroppingSink

_ASK_AGAIN_S: Final = 0.05


def main() -> None:
    """Run the streams, and print the measurements as JSON on the last line."""
    with answering() as (spark, asked):
        spark.dataSource.register(DroppingSink)
        passes: dict[str, list[dict[str, float]]] = {sink["name"]: [] for sink in asked["sinks"]}
        for turn in range(asked["repeat"]):
            for sink in asked["sinks"]:
                checkpoints = Path(asked["folder"], f"{sink['name']}-{turn}")
                found = micro_batches(spark, sink["name"], sink["options"], checkpoints, asked["warm"], asked["count"])
                print(f"    {sink['name']}: {found[-1]}", file=sys.stderr, flush=True)
                passes[sink["name"]] += found
        print(json.dumps(passes), flush=True)


def micro_batches(
    spark: SparkSession, sink: str, options: Mapping[str, str], checkpoints: Path, warm: int, count: int
) -> list[dict[str, float]]:
    """Return what each of `count` micro-batches took, after `warm` others. Raises what the query raises."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    empty = rows.where("value < 0").selectExpr("CAST(value AS STRING) AS value")
    writer = empty.writeStream.format(sink).options(**options).option("checkpointLocation", str(checkpoints))
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        while len(query.recentProgress) < warm + count:
            if query.exception() is not None:
                raise query.exception()  # type: ignore[misc]  # it is not None
            time.sleep(_ASK_AGAIN_S)
        progress = [each.durationMs for each in query.recentProgress[warm : warm + count]]
    finally:
        query.stop()
    return [{"seconds": each["triggerExecution"] / 1000, "sink": each["addBatch"] / 1000} for each in progress]


if __name__ == "__main__":
    main()

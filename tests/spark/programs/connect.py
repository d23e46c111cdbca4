"""Reads and streams through Spark Connect: this process has no JVM of its own to talk to, only a server.

python -m tests.spark.programs.connect LOG WORK
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession

from tests.spark import sessions


def main(log: str, work: str) -> None:
    """Prints what it found as JSON, on the last line."""
    os.environ.update(sessions.environment())
    builder = SparkSession.builder.remote("local[2]")
    for name, value in sessions.settings({"spark.connect.grpc.binding.port": "0"}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    frame = spark.read.format("octavo").load(log)
    refused = ""
    try:
        spark.read.format("octavo").option("subscribe", "nothing").load(log).schema  # noqa: B018 - asks the server
    except Exception as error:
        refused = str(error)
    stream = spark.readStream.format("octavo").option("startingOffsets", "earliest").load(log)
    writer = stream.select("offset").writeStream.format("parquet").option("checkpointLocation", f"{work}/checkpoint")
    writer.trigger(availableNow=True).start(f"{work}/out").awaitTermination()
    found = {
        "kind": type(spark).__module__,
        "columns": frame.columns,
        "read": sorted(row.offset for row in frame.select("offset").collect()),
        "streamed": sorted(row.offset for row in spark.read.schema("offset long").parquet(f"{work}/out").collect()),
        "refused": refused,
    }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

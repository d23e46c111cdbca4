"""Reads, writes, streams, exports and imports on a cluster of other processes; some are killed on the way.

python -m tests.spark.programs.cluster LOG WORK
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tests.spark import sessions
from tests.spark.processes import has_open, workers
from tests.spark.programs.cluster_writes import SETTINGS, write_each_row_once
from tests.spark.programs.tables import ExecutorKiller, export_and_import, export_to_a_bucket
from tests.spark.programs.writes import Work
from tests.spark.standalone import cluster
from tests.unit.spark.topics import write_topic

_ATTEMPTS: Final = 5  # to find an executor that writes


def main(log: str, work: str) -> None:
    """Prints what it found as JSON, on the last line."""
    with cluster(Path(work)) as master:
        spark = sessions.start(master, SETTINGS)
        found = {**ask(spark, log, work), **write_each_row_once(spark, Work(Path(work))), **tables(spark, log, work)}
        spark.stop()
    print(json.dumps(found))


def ask(spark: SparkSession, log: str, work: str) -> dict[str, object]:
    """Read and stream."""
    executors = spark.sparkContext.range(8, numSlices=8).map(lambda _: os.getpid()).distinct().count()
    reader = spark.read.format("octavo")
    whole = reader.option("maxBytesPerPartition", str(1 << 30)).load(log)
    survived = offsets_though_a_reader_is_killed(whole, Path(work, "killed"))
    pieces = reader.option("maxBytesPerPartition", str(16 << 20)).load(log)
    stream = spark.readStream.format("octavo").option("startingOffsets", "earliest")
    stream = stream.option("maxOffsetsPerTrigger", "5000")
    writer = stream.load(log).select("offset").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", f"{work}/read").trigger(availableNow=True)
    query = writer.start(f"{work}/out")
    query.awaitTermination()
    streamed = spark.read.schema("offset long").parquet(f"{work}/out").collect()
    return {
        "workers": executors,
        "was killed": bool(Path(work, "killed").read_text()),
        "survived": sorted(survived),
        "tasks": pieces.rdd.getNumPartitions(),
        "read": sorted(row.offset for row in pieces.select("offset").collect()),
        "streamed": sorted(row.offset for row in streamed),
        "triggers": len([path for path in Path(work, "read", "commits").iterdir() if path.name.isdigit()]),
    }


def tables(spark: SparkSession, log: str, work: str) -> dict[str, object]:
    """Export and import, although an executor is killed, and export to a bucket."""
    for attempt in range(_ATTEMPTS):
        folder = Path(work, f"tables {attempt}")
        folder.mkdir()
        with ExecutorKiller() as killer:
            found = export_and_import(spark, log, str(folder), 16 << 20)
        if killer.killed:
            break
    write_topic(Path(work, "small"), partitions=2, batches=10)
    in_bucket = export_to_a_bucket(spark, f"{work}/small")
    return {**found, "an exporter was killed": killer.killed, "in bucket": in_bucket}


def offsets_though_a_reader_is_killed(frame: DataFrame, killed: Path) -> list[int]:
    """All offsets. Tasks take but one batch until a worker in the middle of a segment is killed, as one can be."""
    begun = killed.with_name("begun")

    def take_slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["offset"])
            begun.touch()
            while not killed.exists():
                time.sleep(0.05)

    killer = threading.Thread(target=kill_a_reader, args=(begun, killed))
    killer.start()
    rows = frame.mapInArrow(take_slowly, "offset long").collect()
    killer.join()
    return [row.offset for row in rows]


def kill_a_reader(begun: Path, killed: Path) -> None:
    """Kills, once tasks have begun, the first worker that has a segment open, and writes its id to `killed`: all go on.

    If there is none for two minutes, `killed` stays empty.
    """
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for process in workers(os.getpid()) if begun.exists() else ():
            if has_open(process, ".log"):
                os.kill(process, signal.SIGKILL)
                killed.write_text(str(process))
                return
        time.sleep(0.1)
    killed.touch()


if __name__ == "__main__":
    main(*sys.argv[1:])

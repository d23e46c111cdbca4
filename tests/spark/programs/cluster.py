"""Reads and streams on a cluster whose executors are other processes; a task is killed on the way.

python -m tests.spark.programs.cluster MASTER LOG WORK
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tests.spark import sessions


def main(master: str, log: str, work: str) -> None:
    """Prints what it found as JSON, on the last line."""
    more = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.executorEnv.PYTHONPATH": str(sessions.ROOT),
        "spark.task.maxFailures": "4",
        "spark.python.unix.domain.socket.enabled": "false",
    }
    spark = sessions.start(master, more)
    frame = spark.read.format("octavo").option("maxBytesPerPartition", "1000").load(log)
    executors = spark.sparkContext.range(8, numSlices=8).map(lambda _: os.getpid()).distinct().count()
    killed = str(Path(work) / "killed")

    def kill_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The first task that has read something is killed, as whole as a process can be."""
        for batch in batches:
            yield batch
            try:
                os.close(os.open(killed, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    survived = frame.select("offset").mapInArrow(kill_once, "offset long").collect()
    stream = spark.readStream.format("octavo").option("startingOffsets", "earliest")
    stream = stream.option("maxOffsetsPerTrigger", "100")
    writer = stream.load(log).select("offset").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    query = writer.start(f"{work}/out")
    query.awaitTermination()
    streamed = spark.read.schema("offset long").parquet(f"{work}/out").collect()
    found = {
        "tasks": frame.rdd.getNumPartitions(),
        "workers": executors,
        "was killed": Path(killed).exists(),
        "read": sorted(row.offset for row in survived),
        "streamed": sorted(row.offset for row in streamed),
        "triggers": len([path for path in Path(work, "checkpoint", "commits").iterdir() if path.name.isdigit()]),
    }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A driver that writes through the sink, one job after the other, and may die on the way: see tests.spark.dying.

python -m tests.spark.programs.writes MASTER WORK JOBS

WORK has the folders of `Work`. JOBS is a list of `Job` as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from octavo.log import DataDirectory
from tests.spark import sessions
from tests.spark.dying import DyingSource
from tests.unit.log.logs import make_batch

TOPIC: Final = "copy"
ROWS: Final = 400  # of a batch write
_MICRO_BATCH: Final = 40
_COPY: Final = {"topic": TOPIC, "partitions": "2"}


class Job(NamedTuple):
    """A batch write, with a name that its rows have; or, without a name, the stream, until it has all rows."""

    name: str | None
    options: Mapping[str, str]


class Work(NamedTuple):
    """The folders of a chain of drivers."""

    folder: Path

    @property
    def source(self) -> Path:
        """What the stream reads."""
        return self.folder / "source"

    @property
    def log(self) -> Path:
        """Where everything is written."""
        return self.folder / "log"

    @property
    def checkpoint(self) -> Path:
        """Of the stream."""
        return self.folder / "checkpoint"

    @property
    def next_micro_batch(self) -> int:
        """The number of the micro-batch that comes next, or is repeated."""
        commits = (self.checkpoint / "commits").glob("[0-9]*")
        return max((int(path.name) for path in commits), default=-1) + 1

    def fill_source(self, micro_batches: int) -> None:
        """Append rows for so many micro-batches."""
        with DataDirectory.open(self.source) as data:
            if "orders" not in data.topics:
                data.create_topic("orders", 2, {"retention.ms": "-1"})
            for log in data.logs:
                log.append(make_batch(micro_batches * _MICRO_BATCH // 2))

    def rows(self) -> list[str]:
        """The rows that the stream writes."""
        with DataDirectory.open(self.source) as data:
            return [f"{log.partition.partition} {offset}" for log in data.logs for offset in range(log.end_offset)]


def main(master: str, work: str, jobs: str) -> None:
    """Prints a line when it begins with a job, and one in the end."""
    spark = sessions.start(master)
    spark.dataSource.register(DyingSource)
    for job in json.loads(jobs):
        print("a job begins", flush=True)
        write(spark, Work(Path(work)), Job(*job))
    print("all is written", flush=True)
    spark.stop()


def write(spark: SparkSession, work: Work, job: Job) -> None:
    """Do a job, in two tasks, or in micro-batches of two tasks. Half of the rows go to either partition."""
    if job.name is not None:
        numbers = spark.range(0, ROWS, 1, 2)
        frame = numbers.selectExpr(f"concat('{job.name} ', id) AS value", "CAST(id % 2 AS INT) AS partition")
        frame.write.format("dying").options(**_COPY, **job.options).mode("append").save(str(work.log))
        return
    reader = spark.readStream.format("octavo").option("startingOffsets", "earliest")
    source = reader.option("maxOffsetsPerTrigger", str(_MICRO_BATCH)).load(str(work.source))
    frame = source.selectExpr("concat(partition, ' ', offset) AS value", "CAST(offset % 2 AS INT) AS partition")
    writer = frame.writeStream.format("dying").options(**_COPY, **job.options)
    writer = writer.option("checkpointLocation", str(work.checkpoint)).trigger(availableNow=True)
    writer.start(str(work.log)).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A driver that writes through the sink, one job after the other, and may die on the way: see tests.spark.dying.

python -m tests.spark.programs.writes MASTER WORK JOBS

WORK has the folders of `Work`. JOBS is a list of `Job` as JSON.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from octavo.log import DataDirectory
from tests.spark import sessions
from tests.spark.dying import DyingSource

TOPIC: Final = "copy"
ROWS: Final = 400  # of a batch write
_FILES: Final = 2  # of a micro-batch
_ROWS_OF_FILE: Final = 20
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
        """Add files of rows for so many micro-batches."""
        self.source.mkdir(exist_ok=True)
        first = len(list(self.source.iterdir()))
        for number in range(first, first + micro_batches * _FILES):
            rows = range(number * _ROWS_OF_FILE, (number + 1) * _ROWS_OF_FILE)
            (self.source / f"{number}.txt").write_text("".join(f"{row}\n" for row in rows))

    def rows(self) -> list[str]:
        """The rows that the stream writes."""
        return [row for path in self.source.iterdir() for row in path.read_text().split()]


def values(work: Work) -> Counter[str]:
    """What is in the log, after somebody has opened it, once no worker of a dead driver has it open any more."""
    with DataDirectory.open(work.log, lock_timeout=60) as data:
        return Counter(
            (record.value or b"").decode()
            for log in data.logs
            if log.partition.topic == TOPIC
            for record in log.reader().records()
        )


def of_batch(name: str) -> Counter[str]:
    """The rows of a batch write."""
    return Counter(f"{name} {number}" for number in range(ROWS))


def main(master: str, work: str, jobs: str) -> None:
    """Prints a line when it begins with a job, and one in the end."""
    spark = sessions.start(master)
    spark.dataSource.register(DyingSource)
    for job in json.loads(jobs):
        print("a job begins", flush=True)
        write(spark, Work(Path(work)), Job(*job))
    print("all is written", flush=True)
    spark.stop()


def write(
    spark: SparkSession, work: Work, job: Job, change: Callable[[DataFrame], DataFrame] = lambda frame: frame
) -> None:
    """Do a job, in four tasks, or in micro-batches of two tasks. Half of the rows go to either partition."""
    if job.name is not None:
        numbers = spark.range(0, ROWS, 1, 4)
        frame = numbers.selectExpr(f"concat('{job.name} ', id) AS value", "CAST(id % 2 AS INT) AS partition")
        frame = change(frame)
        frame.write.format("dying").options(**_COPY, **job.options).mode("append").save(str(work.log))
        return
    reader = spark.readStream.format("text").option("maxFilesPerTrigger", str(_FILES))
    frame = reader.load(str(work.source)).selectExpr("value", "CAST(value % 2 AS INT) AS partition")
    writer = change(frame).writeStream.format("dying").options(**_COPY, **job.options)
    writer = writer.option("checkpointLocation", str(work.checkpoint)).trigger(availableNow=True)
    writer.start(str(work.log)).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])

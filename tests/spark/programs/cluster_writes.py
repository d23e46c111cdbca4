"""Writes on a cluster, where tasks are slow, fail and are repeated, and executors are killed.

python -m tests.spark.programs.cluster_writes WORK SEED DEATHS

loses as many executors as it is told to.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from tests.spark import sessions
from tests.spark.dying import IN_TASKS, Death, DyingSource
from tests.spark.programs.writes import Job, Work, write
from tests.spark.standalone import cluster

SETTINGS: Final = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # no task before both executors are there
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.executorEnv.PYTHONPATH": str(sessions.ROOT),
    "spark.task.maxFailures": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",  # so that little is under way, and readers have to wait
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.01",
}
_LONGEST_S: Final = 120  # that a task waits for another attempt at it


def main(work: str, seed: str, deaths: str) -> None:
    """Prints on the last line how many executors were killed."""
    rng = random.Random(int(seed))
    with cluster(Path(work)) as master:
        spark = sessions.start(master, SETTINGS)
        spark.dataSource.register(DyingSource)
        killed = [lose_an_executor(spark, Work(Path(work)), rng.choice(IN_TASKS)) for _ in range(int(deaths))]
        spark.stop()
    print(json.dumps({"killed": sum(killed)}))


def write_each_row_once(spark: SparkSession, work: Work) -> dict[str, object]:
    """Write with tasks that are slow, and fail, at first; and then with executors that are killed."""
    spark.dataSource.register(DyingSource)
    speculated = {}
    for job in (Job("slow", {}), Job(None, {})):
        marker = work.folder / f"speculated {job.name}"
        if job.name is None:
            work.fill_source(1)
        write(spark, work, job, partial(have_tasks_repeated, marker))
        speculated[str(job.name)] = marker.exists()
    killed = [lose_an_executor(spark, work, step) for step in IN_TASKS]
    return {"speculated": speculated, "executors killed": sum(killed)}


def lose_an_executor(spark: SparkSession, work: Work, step: str) -> bool:
    """Write a batch, or as much of a stream, while an executor is killed; returns whether one was."""
    number = len(list(work.folder.glob("died *")))
    death = Death(step, "executor", str(work.folder / f"died {number}"))
    if number % 2:
        work.fill_source(1)
    write(spark, work, Job(None if number % 2 else f"write {number}", death.options))
    return Path(death.marker).exists()


def have_tasks_repeated(marker: Path, frame: DataFrame) -> DataFrame:
    """Have Spark make a second attempt at the first task, which is slow, and at the second, which fails."""
    return frame.mapInArrow(_slow_and_failing(marker), frame.schema)


def _slow_and_failing(marker: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            if context.attemptNumber():
                marker.touch()
            deadline = time.monotonic() + _LONGEST_S
            while not marker.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
        elif context.partitionId() == 1 and not context.attemptNumber():
            raise ValueError("the first attempt at this task fails")

    return pass_on


if __name__ == "__main__":
    main(*sys.argv[1:])

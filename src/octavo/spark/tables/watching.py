"""Run the tasks of a round on Spark, and tell meanwhile how far they have come."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from itertools import accumulate
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from octavo.spark.tables.on_workers import is_remote, run_on_workers
from octavo.spark.tables.written import WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("octavo.spark")

_GROUP: Final = "spark.jobGroup.id"
_EVERY_S: Final = 0.25


def cores_of(spark: SparkSession) -> int:
    """Return how many tasks Spark runs at once, as far as it tells."""
    if is_remote(spark):
        return max(1, int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or 2))
    return max(1, spark.sparkContext.defaultParallelism)


class Job(Protocol):
    """What the tasks of a round do."""

    def run(self, task: Any) -> list[WrittenFile]:
        """Do what a task has to do, on a worker."""


# Called with the number of bytes that are done, and of those that there are.
OnProgress = Callable[[int, int], None]


class Runner(Protocol):
    """Runs the tasks of a round."""

    cores: int  # the number of tasks that can run at once

    def run(
        self, job: Job, tasks: Sequence[Any], sizes: Sequence[int], *, done: int = 0, left: int = 0
    ) -> list[WrittenFile]:
        """Run the tasks; return the files that they wrote.

        sizes: how many bytes each of them reads
        done, left: how many bytes were read in earlier rounds, and will be in later ones
        """


class SparkRunner:
    """Runs the tasks of a round on Spark."""

    def __init__(self, spark: SparkSession, on_progress: OnProgress | None = None) -> None:
        self._spark: Final = spark
        self._on_progress: Final = on_progress
        self.cores = cores_of(spark)

    def run(
        self, job: Job, tasks: Sequence[Any], sizes: Sequence[int], *, done: int = 0, left: int = 0
    ) -> list[WrittenFile]:
        """Run the tasks; return the files that they wrote."""
        with Watch(self._spark, sizes, self._on_progress, done=done, left=left):
            return [file for files in run_on_workers(self._spark, job.run, tasks) for file in files]


class Watch:
    """Calls a function with the bytes that are done and those there are, while tasks run. A context manager.

    Spark tells how many tasks are over. They begin in their order, so these are taken to be the first ones. If an
    exception ends the block, the tasks are cancelled.
    """

    def __init__(
        self,
        spark: SparkSession,
        sizes: Sequence[int],
        on_progress: OnProgress | None,
        *,
        done: int = 0,
        left: int = 0,
    ) -> None:
        """`sizes`: bytes of each task. `done`, `left`: bytes of what comes before and after these tasks."""
        self._spark: Final = spark
        self._done: Final = list(accumulate(sizes, initial=done))  # bytes, by the number of tasks that are over
        self._total: Final = self._done[-1] + left
        self._on_progress: Final = on_progress
        self._group: Final = f"octavo-export-{uuid.uuid4().hex}"
        self._before: str | None = None
        self._over: Final = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if is_remote(self._spark):
            if self._on_progress is not None:
                self._spark.registerProgressHandler(self)  # type: ignore[arg-type] # any function will do
            return self
        context = self._spark.sparkContext
        self._before = context.getLocalProperty(_GROUP)
        context.setLocalProperty(_GROUP, self._group)
        if self._on_progress is not None:
            self._tell(0)
            self._thread = threading.Thread(target=self._poll, name="octavo-watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if is_remote(self._spark):
            if self._on_progress is not None:
                self._spark.removeProgressHandler(self)  # type: ignore[arg-type] # any function will do
        else:
            if error is not None:
                self._spark.sparkContext.cancelJobGroup(self._group)
            self._spark.sparkContext.setLocalProperty(_GROUP, self._before)  # type: ignore[arg-type] # None removes it
        if error is None and self._on_progress is not None:
            self._tell(len(self._done))

    def _tell(self, tasks: int) -> None:
        assert self._on_progress is not None
        self._on_progress(self._done[min(tasks, len(self._done) - 1)], self._total)

    def _poll(self) -> None:
        tracker = self._spark.sparkContext.statusTracker()
        while not self._over.wait(_EVERY_S):
            try:
                done = 0
                for job in tracker.getJobIdsForGroup(self._group):
                    info = tracker.getJobInfo(job)
                    for stage in info.stageIds if info else ():
                        details = tracker.getStageInfo(stage)
                        done += details.numCompletedTasks if details else 0
                self._tell(done)
            except Exception as error:  # nothing depends on it
                _log.debug("Spark does not tell how far it has come: %s", error)
                return

    def __call__(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """Take what Spark Connect tells."""
        self._tell(sum(stage.num_completed_tasks for stage in stages or ()))

"""Export logs to a table: `export_logs` and `Exporter`.

The driver plans a round, the tasks write its files, and the driver commits them together with how far the table has
come. So a round is in the table once or not at all, whatever dies, and the next export goes on from there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from octavo.errors import InvalidInput
from octavo.records import Codec
from octavo.records.fields import codec_of
from octavo.spark.options import Options, read_options
from octavo.spark.plan import plan_tasks
from octavo.spark.ranges import Logs, Sources
from octavo.spark.slices import Task
from octavo.spark.tables.catching_up import Plan, check_topics, plan_round
from octavo.spark.tables.formats import open_target
from octavo.spark.tables.notes import AS_BEFORE, ColumnChoice, agree
from octavo.spark.tables.sampling import sample_values
from octavo.spark.tables.target import Target
from octavo.spark.tables.tasks import ExportJob
from octavo.spark.tables.topic_configs import ConfigReader, with_configs
from octavo.spark.tables.watching import OnProgress, Runner, SparkRunner
from octavo.spark.tables.written import WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from octavo.values import ValueDecoder

_log = logging.getLogger("octavo.spark")

MAX_TASK_SIZE: Final = 256 << 20  # bytes of log. Slices of up to twice as much are not divided
MIN_TASK_SIZE: Final = 16 << 20
ROUND_SIZE: Final = 64 << 30  # bytes of log; what is more is exported in several rounds, each with a commit

# Whoever reads a table sees no offsets of open or aborted transactions. Other than in the source, that is the default.
_COMMITTED: Final = {"isolation.level": "read_committed"}
_NOT_FOR_TABLES: Final = ("columns", "includeheaders", "includebatchinfo", "includecontrolrecords")


@dataclass(kw_only=True)
class ExportSummary:
    """What an export has done."""

    format: str
    target: str
    rounds: int = 0
    row_count: int = 0
    rejected: int = 0  # number of rows whose value could not be parsed
    size_read: int = 0  # bytes of the logs
    size_written: int = 0  # bytes of the files
    file_count: int = 0
    merged: int = 0  # number of files that were merged into fewer
    rows_by_topic: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, files: Sequence[WrittenFile], size_read: int) -> None:
        """Add what a round has done."""
        self.rounds += 1
        self.size_read += size_read
        for file in files:
            self.row_count += file.row_count
            self.rejected += file.rejected
            self.size_written += file.size
            self.file_count += 1
            self.rows_by_topic[file.topic] = self.rows_by_topic.get(file.topic, 0) + file.row_count


class Exporter:
    """An export of some logs to a table that is open. Each `run` adds what is new. A context manager."""

    def __init__(
        self,
        runner: Runner,
        target: Target,
        source: Mapping[str, str],
        *,
        columns: ColumnChoice = AS_BEFORE,
        compression: Codec | str = Codec.SNAPPY,
        round_size: int = ROUND_SIZE,
    ) -> None:
        """Check the options, and add the columns that are missing if the table exists. Raises `InvalidInput`."""
        self.runner: Final = runner
        self.compression: Final = codec_of(compression).name.lower()
        self.target: Final = target
        self._options: Final = source_options(source)
        self._logs: Final = Logs(self._options, decides=True)
        self._columns, self._notes = agree(target, columns, lambda: sample_values(self._options, self._logs))
        self._configs: Final = ConfigReader()
        self._round_size: Final = round_size

    def run(self, summary: ExportSummary, *, must_be_there: bool = True, stop: threading.Event | None = None) -> None:
        """Export what is in the logs now and not in the table yet, in one round or several. Create the table first.

        If `stop` is set meanwhile, the round that is under way is the last.

        Raises `DataLoss` if offsets are missing and `failOnDataLoss` is set, and `ExportConflict` if another export
        has changed the table meanwhile, or a topic was created again.
        """
        done = 0
        is_last = False
        while not is_last:
            plan, tasks = self._logs.plan(self._plan, must_be_there=must_be_there)
            is_last = plan.is_last
            self._have_table(plan)
            if plan.after == plan.before:
                return
            files = self._export(plan, tasks, done)
            done += sum(task.size for task in tasks)
            summary.add(files, sum(task.size for task in tasks))
            if stop is not None and stop.is_set():
                return

    def run_timed(self, summary: ExportSummary) -> None:
        """Do what `run` does, and note how long it took."""
        began = time.monotonic()
        try:
            self.run(summary)
        finally:
            summary.seconds += time.monotonic() - began

    def _plan(self, sources: Sources) -> tuple[Plan, list[Task]]:
        before = self.target.progress()
        self._check_rows()
        plan = plan_round(self._options, sources, before, self._round_size)
        return plan, plan_tasks(self._options, plan.ranges, self._task_size)

    def _check_rows(self) -> None:
        """Check that rows of earlier exports are still in the table. Raises `BadTable` if `failOnDataLoss` is set."""
        problem = self.target.set_back()
        if problem is not None and self._options.fail_on_data_loss:
            raise problem
        if problem is not None:
            _log.warning("%s. Going on", problem)

    def _task_size(self, total: int) -> int:
        """Choose the size of tasks: large ones make large files, but all cores should have something to do."""
        if self._options.max_bytes_per_partition is not None:
            return self._options.max_bytes_per_partition
        return max(MIN_TASK_SIZE, min(MAX_TASK_SIZE, total // (2 * self.runner.cores)))

    def _have_table(self, plan: Plan) -> None:
        """Have the table and the configurations of the topics in its notes, before there are rows of them."""
        configs = self._configs.read(plan.ranges, plan.after)
        if self.target.schema() is None:
            self.target.create(self._columns.table, with_configs(self._notes, configs))
            return
        known = self.target.properties()
        notes = with_configs(known, configs)
        if notes != known:
            self.target.add_columns(self._columns.table, notes)

    def _export(self, plan: Plan, tasks: list[Task], done: int) -> list[WrittenFile]:
        place = self.target.begin(plan.before, plan.after)
        try:
            job = ExportJob(self._options, self._columns, replace(place, compression=self.compression))
            files = self.runner.run(job, tasks, [task.size for task in tasks], done=done, left=plan.left)
            check_topics(plan)
        except BaseException:
            self.target.abandon(place)
            raise
        self.target.commit(files, plan.before, plan.after)
        return files

    def close(self) -> None:
        """Close the logs. The table stays open."""
        self._logs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def export_logs(
    spark: SparkSession,
    source: str | Mapping[str, str],
    target: str,
    *,
    format: str = "parquet",  # noqa: A002 - as Spark names it
    raw: bool | None = None,
    batch_info: bool | None = None,
    decoder: ValueDecoder | None = None,
    infer: str | None = None,
    prefix: str | None = None,
    compression: Codec | str = Codec.SNAPPY,
    merge: bool = False,
    target_options: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    interval_s: float = 10.0,
) -> ExportSummary:
    """Export what is in the logs and not in the table yet; return what was done.

    source: the path of the logs, or the options of `spark.read.format("octavo")`
    target: where the table is, or will be
    format: parquet, delta or iceberg
    raw: whether the table has key and value as they are in the log (yes, unless told otherwise)
    batch_info: whether the table has the fields of the batches, so that `octavo import` can restore them
    decoder: makes typed columns of the values; `prefix` is put before their names
    infer: the format of the values, if a decoder is to be made by a look at some of them. It is kept for later exports
    compression: the codec of the files, or its word: none, gzip, snappy, lz4 or zstd
    merge: whether small files are merged afterwards
    target_options: options of the format (see `open_target`)
    on_progress: called with the number of bytes that are exported, and of those that will be
    stop: if given, new records are exported and small files merged again and again, until it is set
    interval_s: how long to wait between one export and the next, with `stop`

    What is not given is as it was in the last export for which it was. Raises `InvalidInput` if that cannot be changed,
    `DataLoss` if offsets are missing and `failOnDataLoss` is set, `ExportConflict` if another export has changed the
    table meanwhile, and `BadTable`, also if the table was set back and `failOnDataLoss` is set.
    """
    from octavo.spark.tables.following import follow
    from octavo.spark.tables.merging import merge_files

    options = {"path": source} if isinstance(source, str) else dict(source)
    summary = ExportSummary(format=format, target=target)
    columns = ColumnChoice(raw=raw, batch_info=batch_info, decoder=decoder, infer=infer, prefix=prefix)
    runner = SparkRunner(spark, on_progress)
    with (
        open_target(target, format, target_options or {}) as table,
        Exporter(runner, table, options, columns=columns, compression=compression) as exporter,
    ):
        if stop is None:
            exporter.run_timed(summary)
        else:
            follow(exporter, summary, stop=stop, interval_s=interval_s)
        if merge:
            summary.merged += merge_files(table, runner, compression=exporter.compression).removed
    return summary


def source_options(given: Mapping[str, str]) -> Options:
    """Read the options of the source. Raises `InvalidInput` for those that say which columns there are."""
    for name in given:
        if name.lower() in _NOT_FOR_TABLES:
            raise InvalidInput(f"the columns of a table are always the same: {name} has no meaning in an export")
    names = {name.lower() for name in given}
    isolation = {} if names & {"isolation.level", "kafka.isolation.level"} else _COMMITTED
    return read_options({**given, **isolation})

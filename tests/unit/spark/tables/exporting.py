"""Export logs in one process: what Spark does with the tasks of a round, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from octavo.log.storage import DISK, Storage
from octavo.spark.tables.export import Exporter, ExportSummary
from octavo.spark.tables.notes import AS_BEFORE, ColumnChoice
from octavo.spark.tables.parquet import ParquetTarget
from octavo.spark.tables.watching import Job
from octavo.spark.tables.written import WrittenFile

Rows = list[dict[str, Any]]


class InProcess:
    """Runs tasks one after the other, as copies that went through pickle."""

    def __init__(self, cores: int = 2, before_task: Callable[[Any], None] | None = None, pickled: bool = True) -> None:
        self.cores = cores
        self.tasks: list[Any] = []  # that were run
        self.told: list[tuple[int, int, int]] = []  # for each round, bytes before it, in it and after it
        self._before_task = before_task
        self._pickled = pickled

    def run(
        self, job: Job, tasks: Sequence[Any], sizes: Sequence[int], *, done: int = 0, left: int = 0
    ) -> list[WrittenFile]:
        written: list[WrittenFile] = []
        self.told.append((done, sum(sizes), left))
        for task in tasks:
            if self._before_task is not None:
                self._before_task(task)
            copies = pickle.loads(pickle.dumps((job, task))) if self._pickled else (job, task)
            written += copies[0].run(copies[1])
            self.tasks.append(task)
        return written


def export(
    logs: Path,
    table: Path,
    *,
    columns: ColumnChoice = AS_BEFORE,
    runner: InProcess | None = None,
    storage: Storage = DISK,
    round_size: int = 64 << 30,
    **options: str,
) -> ExportSummary:
    """Export to plain Parquet; names of options have `_` for a dot."""
    source = {"path": str(logs), **{name.replace("_", "."): value for name, value in options.items()}}
    summary = ExportSummary(format="parquet", target=str(table))
    with (
        ParquetTarget.open(str(table), storage=storage) as target,
        Exporter(
            runner or InProcess(pickled=storage is DISK), target, source, columns=columns, round_size=round_size
        ) as exporter,
    ):
        exporter.run(summary)
    return summary


def data_files(table: Path) -> list[Path]:
    """What a reader takes for data: files whose path has no part that begins with `_` or `.`."""
    return sorted(
        path
        for path in table.rglob("*")
        if path.is_file() and not any(part[0] in "_." for part in path.relative_to(table).parts)
    )


def rows(table: Path, columns: str = "*") -> Rows:
    """All rows, as DuckDB reads them, in the order of topics, partitions and offsets."""
    if not data_files(table):
        return []
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        found = database.execute(
            f"SELECT {columns} FROM read_parquet('{table}/topic=*/day=*/*.parquet', hive_partitioning = true, "
            "hive_types = {'topic': VARCHAR, 'day': DATE}, union_by_name = true) "
            'ORDER BY topic, partition, "offset"'
        )
        names = [each[0] for each in found.description or ()]
        return [dict(zip(names, values, strict=True)) for values in found.fetchall()]

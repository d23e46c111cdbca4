"""Exports and imports, for the programs that have started a cluster or a server of Spark Connect."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from octavo.log import DataDirectory
from octavo.spark.tables import export_logs, import_table
from octavo.spark.tables.delta import DeltaTarget
from octavo.spark.tables.place import UNFINISHED
from tests.spark.processes import ancestors, has_open, kill, workers
from tests.unit.spark.bucket import serving
from tests.unit.spark.tables.exporting import data_files, rows


def export_and_import(spark: SparkSession, log: str, work: str, task_size: int) -> dict[str, object]:
    """Make a table of logs, in several tasks, and logs of the table; tell what is in both."""
    table, restored = Path(work, "table"), Path(work, "restored")
    source = {"path": log, "maxBytesPerPartition": str(task_size)}
    told: list[tuple[int, int]] = []
    first = export_logs(spark, source, str(table), on_progress=lambda *each: told.append(each))
    again = export_logs(spark, source, str(table))
    imported = import_table(spark, table, restored)
    return {
        "rows": [first.row_count, again.row_count, imported.records],
        "files": len(data_files(table)),
        "exported": [row["offset"] for row in rows(table, '"offset"')],
        "told all": told[-1] == (first.size_read, first.size_read),
        "is restored": _records(Path(log)) == _records(restored),
    }


def _records(folder: Path) -> list[Any]:
    with DataDirectory.open(folder, read_only=True) as directory:
        return [
            (log.partition, record.offset, record.key, record.value, record.timestamp_ms, record.headers)
            for log in (directory.log(*partition) for partition in directory.partitions())
            for record in log.reader().records()
        ]


def export_to_a_bucket(spark: SparkSession, log: str) -> list[int]:
    """Make a Delta table in a bucket of the logs; return its offsets."""
    with serving() as bucket:
        export_logs(spark, log, bucket.address_with_keys("table"), format="delta")
        with DeltaTarget.open(bucket.address("table"), {}) as target:
            return sorted(target._existing.to_pyarrow_table(columns=["offset"])["offset"].to_pylist())


class ExecutorKiller(threading.Thread):
    """Kills the executor of the first task that writes a data file, with its Python workers."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.killed = False
        self._over = threading.Event()

    def run(self) -> None:
        while not self.killed and not self._over.wait(0.002):
            for worker in workers(os.getpid()):
                executor = _executor_of(worker) if has_open(worker, UNFINISHED) else None
                if executor is not None:
                    kill([executor, worker])
                    self.killed = True
                    break

    def __enter__(self) -> ExecutorKiller:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self.join()


def _executor_of(worker: int) -> int | None:
    """The process of a worker's executor; None if the worker has ended meanwhile."""
    for process in ancestors(worker):
        with suppress(OSError):
            if b"ExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes():
                return process
    return None

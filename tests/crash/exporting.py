"""Seeded exports to plain Parquet files, with merges, and what a crash may leave of them.

Between exports, records are appended and retention deletes what was exported. So after a crash and one more export,
each record that was ever appended is in the table once; and before that export none is there twice.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

import duckdb

from octavo.log import DataDirectory
from octavo.log.storage import Storage
from octavo.records import BatchBuilder
from octavo.spark.tables.export import Exporter, ExportSummary
from octavo.spark.tables.merging import merge_files
from octavo.spark.tables.parquet import ParquetTarget
from tests.crash.storage import CrashStorage
from tests.unit.spark.tables.exporting import InProcess, data_files

TABLE: Final = "table"
TIME_MS: Final = 1_700_000_000_000
DAY_MS: Final = 86_400_000
_TOPICS: Final = {"plain": 2, "packed": 1}
_CONFIG: Final = {"internal.segment.bytes": "600", "index.interval.bytes": "150", "retention.ms": "-1"}

Row = tuple[str, int, int]  # topic, partition and offset


@dataclass(frozen=True)
class Known:
    """What is known at a moment."""

    logs: Path  # a copy of the logs
    appended: frozenset[Row]  # ever
    exported: frozenset[Row]  # by exports that were acknowledged
    is_merging: bool = False  # and then rows may be missing, until the next export


class ExportWorkload:
    """One run over one table, by one process or by several, of which each goes on for a dead one."""

    def __init__(self, seed: int, folder: Path, logs: Path, storage: CrashStorage) -> None:
        self.random: Final = Random(seed)
        self.history: Final[list[tuple[int, Known]]] = []  # what is known from which operation on
        self._table: Final = folder / TABLE
        self._logs: Final = logs
        self._storage: Final = storage
        self._copies = 0
        self._appended: set[Row] = set()
        self._exported: frozenset[Row] = frozenset()
        logs.mkdir()
        with DataDirectory.open(logs / "now") as data:
            for topic, partitions in _TOPICS.items():
                data.create_topic(topic, partitions, _CONFIG)

    def run(self, steps: int) -> None:
        """Make so many exports, each with new records to export."""
        for _ in range(steps):
            self._change_logs()
            self._note(self._copied())
            self._export()
            if self.random.random() < 0.6:
                self._merge()

    def _change_logs(self) -> None:
        with DataDirectory.open(self._logs / "now") as data:
            for partition in data.partitions():
                log = data.log(*partition)
                safe = max((row[2] + 1 for row in self._exported if row[:2] == tuple(partition)), default=0)
                if self.random.random() < 0.3 and safe > log.start_offset:
                    log.delete_records_before(self.random.randint(log.start_offset, safe))
                for _ in range(self.random.choice((0, 1, 2))):
                    builder = BatchBuilder()
                    for _ in range(self.random.choice((1, 3))):
                        time_ms = self.random.choice((TIME_MS, TIME_MS, TIME_MS + DAY_MS, -1))
                        builder.append(b"key", bytes(self.random.randrange(60)), timestamp_ms=time_ms)
                    done = log.append(builder.build())
                    self._appended |= {(*partition, offset) for offset in range(done.base_offset, done.last_offset + 1)}

    def _export(self) -> None:
        export(self._logs / "now", self._table, self._storage)
        self._exported = frozenset(self._appended)
        self._note(self.history[-1][1].logs)

    def _merge(self) -> None:
        self._note(self.history[-1][1].logs, is_merging=True)
        with ParquetTarget.open(str(self._table), storage=self._storage) as target:
            merge_files(target, InProcess(pickled=False))
        self._note(self.history[-1][1].logs)

    def _copied(self) -> Path:
        self._copies += 1
        copy = self._logs / str(self._copies)
        shutil.copytree(self._logs / "now", copy)
        return copy

    def _note(self, logs: Path, *, is_merging: bool = False) -> None:
        known = Known(logs, frozenset(self._appended), self._exported, is_merging)
        self.history.append((len(self._storage.journal), known))


def export(logs: Path, table: Path, storage: Storage) -> ExportSummary:
    """Export everything that is new, in this process."""
    summary = ExportSummary(format="parquet", target=str(table))
    with (
        ParquetTarget.open(str(table), storage=storage) as target,
        Exporter(InProcess(pickled=False), target, {"path": str(logs), "maxBytesPerPartition": "500"}) as exporter,
    ):
        exporter.run(summary)
    return summary


def rows_in(table: Path) -> list[Row]:
    """All rows, as another reader finds them at this moment. Every file is whole, or this fails."""
    files = [str(path) for path in data_files(table)] if table.exists() else []
    if not files:
        return []
    query = 'SELECT topic, partition, "offset" FROM read_parquet(?, hive_partitioning = true)'
    found = _database().execute(query, [files]).fetchall()
    return [(str(topic), int(partition), int(offset)) for topic, partition, offset in found]


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def judge(folder: Path, known: Known, storage: Storage) -> None:
    """Look at what a crash has left, and export again."""
    table = folder / TABLE
    found = rows_in(table)
    assert len(found) == len(set(found)), "rows are there twice"
    assert set(found) <= known.appended, "nobody wrote these rows"
    if not known.is_merging:
        assert known.exported <= set(found), "rows are lost"
    export(known.logs, table, storage)
    found = rows_in(table)
    assert len(found) == len(set(found)), "rows are there twice after the next export"
    assert set(found) == known.appended, "rows are missing after the next export"
    assert not list((table / "_octavo" / "staging").rglob("*")), "something is left in the staging folder"
    assert export(known.logs, table, storage).row_count == 0

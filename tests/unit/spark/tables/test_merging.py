"""Small files are merged, rows stay the same; and logs are exported as they grow."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octavo.errors import DataLoss, ExportConflict
from octavo.log import DataDirectory
from octavo.log.names import TopicPartition
from octavo.records import Codec
from octavo.spark.tables import following, merging
from octavo.spark.tables.data_files import DataFiles
from octavo.spark.tables.export import Exporter, ExportSummary
from octavo.spark.tables.following import follow
from octavo.spark.tables.merging import Merged, merge_files, plan_merge
from octavo.spark.tables.notes import ColumnChoice
from octavo.spark.tables.parquet import ParquetTarget
from octavo.spark.tables.written import WrittenFile, new_path
from octavo.values import value_decoder
from tests.unit.spark.tables.exporting import InProcess, data_files, export, rows
from tests.unit.spark.tables.test_written import ORDERS
from tests.unit.spark.topics import batch, write_topic


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_topic(tmp_path / "logs", "events", partitions=2, batches=4)
    return tmp_path / "logs"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def append(logs: Path, partition: int = 0) -> None:
    with DataDirectory.open(logs) as data:
        log = data.log("events", partition)
        log.append(batch(log.end_offset))


def merge(table: Path, few: int = 1) -> Merged:
    with ParquetTarget.open(str(table)) as target:
        return merge_files(target, InProcess(), few=few)


def exported(logs: Path, table: Path, times: int) -> list[dict[str, Any]]:
    """Export that many times, with something new each time."""
    for _ in range(times):
        append(logs)
        export(logs, table)
    return rows(table)


def test_rows_are_the_same_after_a_merge(logs: Path, table: Path) -> None:
    before = exported(logs, table, 5)
    assert len(data_files(table)) == 6
    assert merge(table) == Merged(5, 1)
    assert len(data_files(table)) == 2
    assert rows(table) == before
    append(logs)
    assert export(logs, table).row_count == 5
    assert merge(table, few=3) == Merged()


def test_rows_of_a_merged_file_are_in_order(logs: Path, table: Path) -> None:
    exported(logs, table, 5)
    merge(table)
    for path in data_files(table):
        offsets = pq.read_table(path, partitioning=None).column("offset").to_pylist()
        assert offsets == sorted(offsets)


def test_large_rows_are_merged_a_few_at_a_time(tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "large"
    with DataDirectory.open(logs) as data:
        data.create_topic("events", 1, {"retention.ms": "-1"})
    for count in (50, 50):
        with DataDirectory.open(logs) as data:
            log = data.log("events", 0)
            log.append(batch(log.end_offset, count, codec=Codec.ZSTD, size=50_000))
        export(logs, table)
    before = rows(table)
    sizes: list[int] = []
    add = DataFiles.add

    def watched(self: DataFiles, partition: TopicPartition, day: int | None, batch: pa.RecordBatch) -> None:
        sizes.append(batch.nbytes)
        add(self, partition, day, batch)

    monkeypatch.setattr(DataFiles, "add", watched)
    monkeypatch.setattr(merging, "_BATCH_SIZE", 1 << 20)
    assert merge(table) == Merged(2, 1)
    assert rows(table) == before
    assert sum(sizes) > 8 << 20
    assert max(sizes) < 2 << 20


def test_columns_that_came_later_are_null_in_merged_rows(logs: Path, table: Path) -> None:
    exported(logs, table, 3)
    append(logs)
    export(logs, table, columns=ColumnChoice(decoder=value_decoder("string")))
    before = rows(table)
    assert merge(table).removed == 4
    assert rows(table) == before
    assert {row["text"] is None for row in rows(table)} == {True, False}


def file(first: int, last: int, size: int, day: int = 0) -> WrittenFile:
    return WrittenFile(new_path(ORDERS, day, first, last), *ORDERS, day, first, last, 1, size, None, None)


def test_only_files_of_one_day_that_follow_each_other_are_merged() -> None:
    files = [file(0, 9, 5), file(10, 19, 5), file(20, 29, 5, day=1), file(30, 39, 5), file(35, 45, 5), file(46, 50, 5)]
    planned = [[each.first_offset for each in group] for group in plan_merge(files, 1)]
    assert planned == [[0, 10, 30], [35, 46]]


def test_a_row_is_written_again_only_when_its_file_doubles() -> None:
    sizes: list[int] = []
    written = 0
    for _ in range(256):
        sizes.append(1)
        files = [file(number, number, size) for number, size in enumerate(sizes)]
        for group in plan_merge(files, few=1):
            first = group[0].first_offset
            sizes[first : first + len(group)] = [sum(each.size for each in group)]
            written += sizes[first]
    assert sum(sizes) == 256
    assert len(sizes) < 10
    assert written <= 256 * 8


def test_a_merged_file_does_not_get_too_large() -> None:
    files = [file(number, number, 100 << 20) for number in range(10)]
    assert [len(group) for group in plan_merge(files, 1)] == [3, 3, 3]


def test_a_merge_that_fails_leaves_the_table_as_it_was(logs: Path, table: Path) -> None:
    before = exported(logs, table, 4)

    def fail(_: object) -> None:
        raise OSError("the disk is full")

    with ParquetTarget.open(str(table)) as target, pytest.raises(OSError, match="full"):
        merge_files(target, InProcess(before_task=fail))
    assert rows(table) == before
    assert merge(table).removed == 4


# ----------------------------------------------------------------------------------------------------------- following


def follow_along(logs: Path, table: Path, rounds: int) -> ExportSummary:
    """Follow logs for some exports, with something new for each of them."""
    summary = ExportSummary(format="parquet", target=str(table))
    stop = threading.Event()
    done: list[int] = []

    def on_round(told: ExportSummary) -> None:
        done.append(told.row_count)
        append(logs)
        if len(done) == rounds:
            stop.set()

    with (
        ParquetTarget.open(str(table)) as target,
        Exporter(InProcess(), target, {"path": str(logs)}) as exporter,
    ):
        follow(exporter, summary, stop=stop, interval_s=0, on_round=on_round)
    assert done == [40 + 5 * number for number in range(rounds)]
    return summary


def test_logs_are_exported_as_they_grow_and_small_files_merged(
    logs: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MERGE_AFTER", 5)
    monkeypatch.setattr(following, "FEW", 2)
    summary = follow_along(logs, table, 12)
    assert summary.merged > 4
    assert len(data_files(table)) < 8
    offsets = [(row["partition"], row["offset"]) for row in rows(table, 'partition, "offset", topic')]
    assert offsets == [(0, offset) for offset in range(75)] + [(1, offset) for offset in range(20)]


def test_following_goes_on_after_a_conflict_and_ends_at_data_loss(
    logs: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Exporter.run
    calls = iter([ExportConflict(table, "another was faster"), None, DataLoss(ORDERS, 0, 1)])

    def watched(
        self: Exporter, summary: ExportSummary, *, must_be_there: bool = True, stop: threading.Event | None = None
    ) -> None:
        error = next(calls)
        if error is not None:
            raise error
        run(self, summary, must_be_there=must_be_there, stop=stop)

    monkeypatch.setattr(Exporter, "run", watched)
    summary = ExportSummary(format="parquet", target=str(table))
    with (
        ParquetTarget.open(str(table)) as target,
        Exporter(InProcess(), target, {"path": str(logs)}) as exporter,
        pytest.raises(DataLoss),
    ):
        follow(exporter, summary, stop=threading.Event(), interval_s=0)
    assert len(rows(table)) == 40


def test_following_stops_after_the_round_that_is_under_way(logs: Path, table: Path) -> None:
    summary = ExportSummary(format="parquet", target=str(table))
    stop = threading.Event()
    runner = InProcess(before_task=lambda _: stop.set())
    with (
        ParquetTarget.open(str(table)) as target,
        Exporter(runner, target, {"path": str(logs)}, round_size=1) as exporter,
    ):
        follow(exporter, summary, stop=stop, interval_s=0)
    assert summary.rounds == 1
    assert 0 < len(rows(table)) == summary.row_count < 40
    assert export(logs, table).row_count == 40 - summary.row_count

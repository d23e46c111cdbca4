"""Data files are divided by day and size, and few of them are open, whatever the timestamps."""

from __future__ import annotations

import gc
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from octavo.log.names import TopicPartition
from octavo.spark.files import Root
from octavo.spark.tables import data_files as writing
from octavo.spark.tables.columns import TableColumns, by_day, by_partition
from octavo.spark.tables.data_files import DataFiles
from octavo.spark.tables.place import FilePlace, LocalNewFile
from octavo.spark.tables.written import WrittenFile
from tests.unit.spark.tables.exporting import data_files, rows

EVENTS: Final = TopicPartition("events", 0)
OTHERS: Final = TopicPartition("others", 0)
DAY_US: Final = 86_400_000_000
COLUMNS: Final = TableColumns()


def row(
    offset: int, timestamp_us: int | None, value: bytes = b"", partition: TopicPartition = EVENTS
) -> pa.RecordBatch:
    values: dict[str, Any] = {"offset": offset, "timestamp": timestamp_us, "value": value, "timestampType": 0}
    values |= {"topic": partition.topic, "partition": partition.partition}
    batch = pa.RecordBatch.from_pylist([values], COLUMNS.source)
    return COLUMNS.rows(batch)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files were open, whenever one was opened."""
    counts: list[int] = []
    opened: set[int] = set()
    init, finish = LocalNewFile.__init__, LocalNewFile.finish

    def watched(self: LocalNewFile, place: FilePlace, path: str) -> None:
        init(self, place, path)
        opened.add(id(self))
        counts.append(len(opened))

    def watched_finish(self: LocalNewFile, path: str) -> str:
        opened.discard(id(self))
        return finish(self, path)

    monkeypatch.setattr(LocalNewFile, "__init__", watched)
    monkeypatch.setattr(LocalNewFile, "finish", watched_finish)
    return counts


def write(table: Path, days: list[int], value: bytes = b"") -> list[WrittenFile]:
    """Write a row for each of the days, in this order."""
    files = DataFiles(FilePlace(root=Root(str(table)), sync=False), COLUMNS.table, {EVENTS: len(days)})
    for offset, day in enumerate(days):
        files.add(EVENTS, day, row(offset, day * DAY_US, value))
    return files.finish()


def test_a_bounded_number_of_files_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int]) -> None:
    monkeypatch.setattr(writing, "MAX_OPEN", 4)
    monkeypatch.setattr(writing, "MAX_WAITING", 3000)
    days = [number * 7 % 50 for number in range(600)]
    written = write(tmp_path, days)
    found = rows(tmp_path, 'timestamp, day, "offset", partition, topic')
    assert [each["offset"] for each in found] == list(range(600))
    assert all(each["timestamp"].date() == each["day"] for each in found)
    assert sum(file.row_count for file in written) == 600
    assert len(opened) == len(data_files(tmp_path)) > 50
    assert max(opened) == 4


def test_memory_for_rows_that_wait_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_WAITING", 3000)
    files = DataFiles(FilePlace(root=Root(str(tmp_path)), sync=False), COLUMNS.table, {EVENTS: 300})
    most = 0
    for offset in range(300):
        files.add(EVENTS, offset % 100, row(offset, offset % 100 * DAY_US, b"x" * 100))
        most = max(most, files._waiting)
    assert 1000 < most < 3000
    files.finish()
    assert files._waiting == 0


def test_large_files_are_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP_SIZE", 1000)
    monkeypatch.setattr(writing, "FILE_SIZE", 20_000)
    written = write(tmp_path, [0] * 300, b"x" * 300)
    assert len(written) > 2
    assert all(file.size < 60_000 for file in written)
    assert [(file.first_offset, file.row_count) for file in written[1:]] == [
        (file.last_offset + 1, after.row_count) for file, after in pairwise(written)
    ]
    assert len(rows(tmp_path, '"offset", partition, topic')) == 300


def test_what_fails_leaves_no_files(tmp_path: Path) -> None:
    files = DataFiles(FilePlace(root=Root(str(tmp_path)), sync=False), COLUMNS.table, {EVENTS: 5, OTHERS: 5})
    files.add(EVENTS, 1, row(0, DAY_US))
    files.add(OTHERS, 1, row(0, DAY_US, partition=OTHERS))
    files.add(OTHERS, 2, row(1, 2 * DAY_US, partition=OTHERS))
    assert len(data_files(tmp_path)) == 1
    files.discard()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_fails_says_nothing_on_standard_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    monkeypatch.setattr(writing, "ROW_GROUP_SIZE", 1)
    files = DataFiles(FilePlace(root=Root(str(tmp_path)), sync=False), COLUMNS.table, {EVENTS: 5})
    files.add(EVENTS, 1, row(0, DAY_US, b"x"))
    assert [path for path in tmp_path.rglob("*.part") if path.stat().st_size]
    files.discard()
    del files
    gc.collect()
    assert said == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_rows_of_several_partitions_are_divided() -> None:
    places = [("a", 0), ("a", 1), ("a", 1), ("b", 1), ("c", 0), ("c", 0)]
    batches = [row(number, 0, partition=TopicPartition(*place)) for number, place in enumerate(places)]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    divided = [(tuple(partition), part.column("offset").to_pylist()) for partition, part in by_partition(batch)]
    assert divided == [(("a", 0), [0]), (("a", 1), [1, 2]), (("b", 1), [3]), (("c", 0), [4, 5])]


def test_rows_of_several_days_are_divided_and_stay_in_order() -> None:
    times = [None, DAY_US, 0, -1, DAY_US + 1, DAY_US - 1, 2**62, -DAY_US]
    batches = [row(number, time) for number, time in enumerate(times)]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    divided = {day: part.column("offset").to_pylist() for day, part in by_day(batch)}
    assert divided == {None: [0, 3, 6, 7], 0: [2, 5], 1: [1, 4]}
    assert [day for day, _ in by_day(batch.slice(0, 1))] == [None]


def test_rows_of_a_day_do_not_keep_those_of_other_days_in_memory() -> None:
    batches = [row(number, DAY_US if number == 50 else 0, b"x" * 1000) for number in range(100)]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    sizes = {day: part.get_total_buffer_size() for day, part in by_day(batch)}
    assert sizes[1] < 3000 < 90_000 < sizes[0]

"""Logs change between the plan of an export and its tasks: by appends, compaction, retention and new topics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.errors import DataLoss, ExportConflict
from octavo.log import DataDirectory
from octavo.records import BatchBuilder
from tests.unit.spark.tables.exporting import InProcess, data_files, export, rows
from tests.unit.spark.topics import SMALL

TASK_SIZE: Final = "1500"  # so that there are many tasks


class Once:
    """Changes the logs before the second task."""

    def __init__(self, change: Callable[[DataDirectory], None], logs: Path) -> None:
        self._calls = 0
        self._change, self._logs = change, logs

    def __call__(self, _: Any) -> None:
        self._calls += 1
        if self._calls == 2:
            with DataDirectory.open(self._logs) as data:
                self._change(data)


def write(logs: Path, count: int = 400, **config: str) -> None:
    """Records whose keys repeat; names of settings with `_` for a dot."""
    with DataDirectory.open(logs) as data:
        data.create_topic("events", 1, SMALL | {name.replace("_", "."): value for name, value in config.items()})
        append(data, count)


def append(data: DataDirectory, count: int) -> None:
    log = data.log("events", 0)
    for number in range(log.end_offset, log.end_offset + count):
        builder = BatchBuilder()
        builder.append(b"%d" % (number % 20), b"%d" % number * 10, timestamp_ms=1_700_000_000_000 + number)
        log.append(builder.build())


def offsets(table: Path) -> list[int]:
    return [row["offset"] for row in rows(table, '"offset", partition, topic')]


def test_what_is_appended_meanwhile_comes_with_the_next_export(tmp_path: Path) -> None:
    logs, table = tmp_path / "logs", tmp_path / "table"
    write(logs)
    runner = InProcess(before_task=Once(lambda data: append(data, 7), logs))
    export(logs, table, runner=runner, maxBytesPerPartition=TASK_SIZE)
    assert len(runner.tasks) > 5
    assert offsets(table) == list(range(400))
    assert export(logs, table).row_count == 7
    assert offsets(table) == list(range(407))


def test_compaction_meanwhile_leaves_no_row_twice(tmp_path: Path) -> None:
    logs, table = tmp_path / "logs", tmp_path / "table"
    write(logs, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    compacted: list[int] = []

    def compact(data: DataDirectory) -> None:
        log = data.log("events", 0)
        log.roll()
        log.compact()
        compacted.append(log.end_offset)

    runner = InProcess(before_task=Once(compact, logs))
    export(logs, table, runner=runner, maxBytesPerPartition=TASK_SIZE)
    assert compacted
    found = offsets(table)
    assert len(found) == len(set(found)) < 400
    assert found[-20:] == list(range(380, 400))  # the last of every key
    assert export(logs, table).row_count == 0


@pytest.mark.parametrize("go_on", [False, True])
def test_retention_meanwhile_is_noticed(tmp_path: Path, go_on: bool) -> None:
    logs, table = tmp_path / "logs", tmp_path / "table"
    write(logs)

    def expire(data: DataDirectory) -> None:
        log = data.log("events", 0)
        log.delete_records_before(300)
        assert log.apply_retention()

    runner = InProcess(before_task=Once(expire, logs))
    if not go_on:
        with pytest.raises(DataLoss):
            export(logs, table, runner=runner, maxBytesPerPartition=TASK_SIZE)
        assert not data_files(table)
        return
    export(logs, table, runner=runner, failOnDataLoss="false", maxBytesPerPartition=TASK_SIZE)
    found = offsets(table)
    assert len(found) == len(set(found)) < 400
    assert found[-100:] == list(range(300, 400))
    assert export(logs, table).row_count == 0


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_topic_that_is_created_again_meanwhile_is_not_taken_for_the_old_one(
    tmp_path: Path, fail_on_data_loss: str
) -> None:
    logs, table = tmp_path / "logs", tmp_path / "table"
    write(logs)

    def create_again(_: Any) -> None:
        with DataDirectory.open(logs) as data:
            data.delete_topic("events")
        write(logs)

    with pytest.raises(ExportConflict, match="events-0 was deleted and created again"):
        export(logs, table, runner=InProcess(before_task=create_again), failOnDataLoss=fail_on_data_loss)
    assert not data_files(table)
    assert export(logs, table).row_count == 400
    assert export(logs, table).row_count == 0

"""Logs are exported to Delta and Iceberg tables, each record once: in one process, without Spark."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.errors import BadTable, DataLoss, ExportConflict
from octavo.log import DataDirectory
from octavo.spark.tables.delta import DeltaTarget
from octavo.spark.tables.export import Exporter, ExportSummary
from octavo.spark.tables.formats import open_target
from octavo.spark.tables.merging import merge_files
from octavo.spark.tables.notes import AS_BEFORE, ColumnChoice
from octavo.spark.tables.topic_configs import from_notes
from octavo.values import value_decoder
from tests.unit.spark import queries
from tests.unit.spark.bucket import Bucket
from tests.unit.spark.tables.exporting import InProcess
from tests.unit.spark.tables.lakes import FORMATS, open_lake, read_table
from tests.unit.spark.topics import SMALL, batch, write_topic

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of boto and its like
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ORDER: Final = ("topic", "partition", "offset")


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    """The format."""
    return str(request.param)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A topic of two partitions with a hundred records each."""
    folder = tmp_path / "logs"
    write_topic(folder, "events", partitions=2, batches=20)
    return folder


def export(
    kind: str,
    logs: Path | str,
    table: Path | str,
    *,
    runner: InProcess | None = None,
    columns: ColumnChoice = AS_BEFORE,
    target_options: dict[str, str] | None = None,
    **options: str,
) -> ExportSummary:
    """Export what is new."""
    summary = ExportSummary(format=kind, target=str(table))
    source = {"path": str(logs), **options}
    with (
        open_target(str(table), kind, target_options or {}) as target,
        Exporter(runner or InProcess(), target, source, columns=columns) as exporter,
    ):
        exporter.run(summary)
    return summary


def rows(kind: str, table: Path | str, columns: Sequence[str] = (), **options: str) -> list[dict[str, Any]]:
    """All rows, in the order of the logs."""
    with open_lake(kind, table, **options) as target:
        found = read_table(target)
    ordered = found.sort_by([(name, "ascending") for name in ORDER])
    return list(ordered.select(columns or found.column_names).to_pylist())


def expected(logs: Path | str) -> list[dict[str, Any]]:
    """What the source gives, in the order of the logs."""
    found = queries.read(logs, includeHeaders="true")
    return sorted(found, key=lambda row: tuple(row[name] for name in ORDER))


def names(found: list[dict[str, Any]]) -> list[str]:
    return [name for name in found[0] if name != "day"]


def test_a_table_has_what_the_source_gives_and_later_what_is_new(kind: str, logs: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    assert export(kind, logs, table).row_count == 200
    with DataDirectory.open(logs) as data:
        data.log("events", 1).append(batch(100))
        data.create_topic("late", 1, SMALL)
        data.log("late", 0).append(batch(0))
    assert export(kind, logs, table).row_count == 10
    assert export(kind, logs, table).row_count == 0
    source = expected(logs)
    assert rows(kind, table, names(source)) == source


def test_a_topic_that_was_created_again_is_noticed(kind: str, logs: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    export(kind, logs, table)
    shutil.rmtree(logs)
    write_topic(logs, "events", partitions=2, batches=3)
    with pytest.raises(DataLoss, match="created again"):
        export(kind, logs, table)
    assert len(rows(kind, table)) == 200
    assert export(kind, logs, table, failOnDataLoss="false").row_count == 30
    assert len(rows(kind, table)) == 230
    assert export(kind, logs, table).row_count == 0


def set_back(kind: str, table: Path) -> None:
    """Take away what the last commit has added."""
    with open_lake(kind, table) as target:
        if isinstance(target, DeltaTarget):
            target._existing.restore(target._existing.version() - 1)
        else:
            snapshot = target._existing.current_snapshot()
            assert snapshot is not None
            assert snapshot.parent_snapshot_id is not None
            target._existing.manage_snapshots().rollback_to_snapshot(snapshot.parent_snapshot_id).commit()


def test_a_table_that_was_set_back_is_noticed(kind: str, logs: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    export(kind, logs, table)
    with DataDirectory.open(logs) as data:
        data.log("events", 1).append(batch(100))
    assert export(kind, logs, table).row_count == 5
    set_back(kind, table)
    assert len(rows(kind, table)) == 200
    with pytest.raises(BadTable, match=r"table: the table was set back to an earlier (version|snapshot) \(") as told:
        export(kind, logs, table)
    assert "\n" not in str(told.value)
    assert export(kind, logs, table, failOnDataLoss="false").row_count == 0
    with DataDirectory.open(logs) as data:
        data.log("events", 1).append(batch(105))
    assert export(kind, logs, table, failOnDataLoss="false").row_count == 5
    assert export(kind, logs, table).row_count == 0
    assert len(rows(kind, table)) == 205


def test_configurations_of_topics_are_noted(kind: str, logs: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    export(kind, logs, table)
    with DataDirectory.open(logs) as data:
        data.create_topic("late", 1, {"cleanup.policy": "delete"})
        data.log("late", 0).append(batch(0))
        data.set_config("events", {"retention.ms": "1000"})
    export(kind, logs, table, columns=ColumnChoice(batch_info=True))
    with open_lake(kind, table) as target:
        assert from_notes(target.properties()) == {"events": SMALL, "late": {"cleanup.policy": "delete"}}
    with DataDirectory.open(logs) as data:
        data.log("events", 1).append(batch(100))
    export(kind, logs, table)
    with open_lake(kind, table) as target:
        assert from_notes(target.properties())["events"] == {**SMALL, "retention.ms": "1000"}


def test_of_two_exports_at_once_one_fails_and_leaves_nothing(kind: str, logs: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    export(kind, logs, table, assign='{"events":[0]}')
    faster: list[int] = []

    def overtake(_: object) -> None:
        if not faster:
            faster.append(export(kind, logs, table).row_count)

    with pytest.raises(ExportConflict):
        export(kind, logs, table, runner=InProcess(before_task=overtake))
    assert faster == [100]
    source = expected(logs)
    assert rows(kind, table, names(source)) == source
    with open_lake(kind, table) as target:
        noted = {file.path for file in target.files()}
    there = {str(path.relative_to(table)) for path in table.glob("topic=*/*/*.parquet")}
    assert there == noted


def test_many_exporters_at_once_lose_and_double_nothing(kind: str, logs: Path, tmp_path: Path) -> None:
    """Each tries until there is nothing new; batches are appended meanwhile."""
    table, failures = tmp_path / "table", []
    export(kind, logs, table)
    appending = threading.Event()

    def go_on() -> None:
        while True:
            is_last = appending.is_set()
            try:
                if export(kind, logs, table).row_count == 0 and is_last:
                    return
            except ExportConflict:
                continue
            except BaseException as error:
                failures.append(error)
                raise

    threads = [threading.Thread(target=go_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(6):
        with DataDirectory.open(logs, lock_timeout=60) as data:
            data.log("events", number % 2).append(batch(100 + 5 * (number // 2)))
    appending.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert rows(kind, table, ORDER) == [
        {"topic": "events", "partition": partition, "offset": offset} for partition in (0, 1) for offset in range(115)
    ]


def test_small_files_are_merged(kind: str, logs: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    columns = ColumnChoice(batch_info=True, decoder=value_decoder("string"))
    for number in range(3):
        with DataDirectory.open(logs) as data:
            data.log("events", 0).append(batch(100 + 5 * number))
        export(kind, logs, table, columns=columns)
    before = rows(kind, table)
    with open_target(str(table), kind, {}) as target:
        merged = merge_files(target, InProcess())
        assert merged.removed > merged.added
        assert len(list(target.files())) == merged.added + 1  # nothing was added to the other partition
    assert rows(kind, table) == before
    with DataDirectory.open(logs) as data:
        data.log("events", 0).append(batch(115))
    assert export(kind, logs, table).row_count == 5
    assert [row["offset"] for row in rows(kind, table) if row["partition"] == 0] == list(range(120))


def test_logs_in_a_bucket_become_a_table_in_a_bucket(kind: str, logs: Path, tmp_path: Path, bucket: Bucket) -> None:
    bucket.put(logs, f"{kind}/logs")
    catalog = {"uri": f"sqlite:///{tmp_path}/catalog.db"} if kind == "iceberg" else {}
    source, table = bucket.address(f"{kind}/logs"), bucket.address(f"{kind}/table")
    for count in (200, 0):
        assert export(kind, source, table, target_options=catalog).row_count == count
    with open_lake(kind, table, **catalog) as target:
        assert sum(file.row_count for file in target.files()) == 200

"""Logs are exported to plain Parquet files, each record once, as other readers see them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import polars
import pyarrow.parquet as pq
import pytest

from octavo.errors import BadDirectory, BadTable, DataLoss, ExportConflict, InvalidInput, MissingPartitions
from octavo.log import DataDirectory
from octavo.records import BatchBuilder
from octavo.spark.tables import export as exports
from octavo.spark.tables.export import export_logs, source_options
from octavo.spark.tables.notes import ColumnChoice
from octavo.spark.tables.parquet import ParquetTarget
from octavo.spark.tables.written import NO_DAY, parse_path
from octavo.values import ValueDecoder, value_decoder
from tests.plugin import install
from tests.unit.spark import queries
from tests.unit.spark.tables.exporting import InProcess, data_files, export, rows
from tests.unit.spark.topics import SMALL, TIME_MS, batch, write_topic

DAY_MS: Final = 86_400_000


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    write_topic(folder, "events", partitions=2, batches=20)
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def expected(logs: Path, **options: str) -> list[dict[str, Any]]:
    """What the source gives, in the order of `rows`."""
    found = queries.read(logs, includeHeaders="true", **options)
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def without_day(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "day"} for row in found]


def append(logs: Path, times_ms: list[int], topic: str = "events") -> None:
    """Append a batch for each of these timestamps."""
    with DataDirectory.open(logs) as data:
        if topic not in data.topics:
            data.create_topic(topic, 1, SMALL | {"message.timestamp.after.max.ms": str(2**63 - 1)})
        for number, time_ms in enumerate(times_ms):
            builder = BatchBuilder()
            builder.append(b"%d" % number, b"value", timestamp_ms=time_ms)
            data.log(topic, 0).append(builder.build())


def test_a_table_has_what_the_source_gives(logs: Path, table: Path) -> None:
    summary = export(logs, table)
    assert without_day(rows(table)) == expected(logs)
    assert summary.row_count == 200
    assert summary.rows_by_topic == {"events": 200}
    assert summary.file_count == len(data_files(table)) == 2
    assert summary.size_written == sum(path.stat().st_size for path in data_files(table))


def test_polars_reads_it_too(logs: Path, table: Path) -> None:
    export(logs, table)
    found = polars.scan_parquet(f"{table}/topic=*/**/*.parquet", hive_partitioning=True).collect()
    found = found.sort("partition", "offset")
    assert without_day(found.select(*expected(logs)[0]).to_dicts()) == expected(logs)
    assert found["day"].to_list() == [date(2023, 11, 14)] * 200


def test_only_what_is_new_is_added(logs: Path, table: Path) -> None:
    export(logs, table)
    before = data_files(table)
    assert export(logs, table).row_count == 0
    assert data_files(table) == before
    with DataDirectory.open(logs) as data:
        data.log("events", 1).append(batch(100, 3))
    assert export(logs, table).row_count == 3
    assert set(before) < set(data_files(table))
    assert without_day(rows(table)) == expected(logs)


def test_topics_that_come_later_are_added(logs: Path, table: Path) -> None:
    export(logs, table, subscribe="events")
    write_topic(logs, "later", batches=3)
    assert export(logs, table).rows_by_topic == {"later": 15}
    assert without_day(rows(table)) == expected(logs)


def test_many_small_partitions_share_a_task(tmp_path: Path, table: Path) -> None:
    for topic in ("a", "b", "c"):
        write_topic(tmp_path / "logs", topic, partitions=3, batches=2)
    runner = InProcess()
    export(tmp_path / "logs", table, runner=runner)
    assert len(runner.tasks) == 1
    assert without_day(rows(table)) == expected(tmp_path / "logs")
    assert len(data_files(table)) == 9


def test_a_log_may_be_exported_in_several_rounds(logs: Path, table: Path) -> None:
    runner = InProcess()
    summary = export(logs, table, runner=runner, round_size=1500)
    assert summary.rounds > 3
    assert without_day(rows(table)) == expected(logs)
    done = [done for done, _, _ in runner.told]
    assert done == list(accumulate([size for _, size, _ in runner.told[:-1]], initial=0))
    assert [left for _, _, left in runner.told] == [
        sum(size for _, size, _ in runner.told[number:]) for number in range(1, summary.rounds + 1)
    ]


def test_names_tell_partition_day_and_offsets(logs: Path, table: Path) -> None:
    export(logs, table)
    told = [parse_path(str(path.relative_to(table))) for path in data_files(table)]
    assert told == [("events", 19_675, 0, 0, 99), ("events", 19_675, 1, 0, 99)]


def test_rows_are_divided_by_the_day_of_their_timestamp(tmp_path: Path, table: Path) -> None:
    midnight = TIME_MS - TIME_MS % DAY_MS
    append(tmp_path / "logs", [midnight - 1, midnight, midnight + DAY_MS - 1, midnight + DAY_MS, midnight])
    export(tmp_path / "logs", table)
    found = rows(table, "day, timestamp")
    assert [row["day"] for row in found] == [row["timestamp"].date() for row in found]
    assert [row["day"].day for row in found] == [13, 14, 14, 15, 14]
    assert len(data_files(table)) == 3


@pytest.mark.parametrize("time_ms", [-1, 253_402_300_800_000, 2**62])
def test_records_without_a_usable_time_have_a_partition_of_their_own(tmp_path: Path, table: Path, time_ms: int) -> None:
    append(tmp_path / "logs", [TIME_MS, time_ms, 253_402_300_799_999])
    export(tmp_path / "logs", table)
    assert [row["day"] for row in rows(table, "day")] == [date(2023, 11, 14), None, date(9999, 12, 31)]
    assert {path.parent.name for path in data_files(table)} == {"day=2023-11-14", f"day={NO_DAY}", "day=9999-12-31"}


def test_statistics_have_the_range_of_offsets_and_timestamps(logs: Path, table: Path) -> None:
    export(logs, table)
    footer = pq.read_metadata(data_files(table)[0])
    ranges = {}
    for number in range(footer.num_columns):
        column = footer.row_group(0).column(number)
        if column.path_in_schema in ("offset", "timestamp"):
            ranges[column.path_in_schema] = (column.statistics.min, column.statistics.max)
    assert ranges["offset"] == (0, 99)
    assert [time.timestamp() * 1000 for time in ranges["timestamp"]] == [TIME_MS, TIME_MS + 990]
    with ParquetTarget.open(str(table)) as target:
        files = list(target.files())
    assert [(file.first_offset, file.last_offset, file.row_count) for file in files] == [(0, 99, 100)] * 2
    assert files[0].min_timestamp_us == TIME_MS * 1000


def test_batch_information_is_exported_if_asked_for(logs: Path, table: Path) -> None:
    export(logs, table, columns=ColumnChoice(batch_info=True))
    assert without_day(rows(table)) == expected(logs, includeBatchInfo="true")
    with DataDirectory.open(logs) as data:
        data.log("events", 1).append(batch(100, 3))
    export(logs, table)  # as before
    assert without_day(rows(table)) == expected(logs, includeBatchInfo="true")


def test_values_become_columns(logs: Path, table: Path) -> None:
    decoder = value_decoder("string")
    export(logs, table, columns=ColumnChoice(decoder=decoder, prefix="v_", raw=False))
    found = rows(table)
    assert "value" not in found[0]
    assert [row["v_text"] for row in found] == [
        None if row["value"] is None else row["value"].decode() for row in expected(logs)
    ]
    assert {row["parse_error"] for row in found} == {None}
    with pytest.raises(InvalidInput, match="leave out"):
        export(logs, table, columns=ColumnChoice(prefix="w_"))
    with pytest.raises(InvalidInput, match="raw"):
        export(logs, table, columns=ColumnChoice(raw=True))


def test_columns_can_be_added_later(logs: Path, table: Path) -> None:
    export(logs, table)
    with DataDirectory.open(logs) as data:
        data.log("events", 1).append(batch(101, 3))
    export(logs, table, columns=ColumnChoice(decoder=value_decoder("string"), batch_info=True))
    found = rows(table)
    assert [row["text"] for row in found[-3:]] == [f"{number}" * 40 for number in (101, 102, 103)]
    assert [row["text"] is None for row in found] == [True] * 200 + [False] * 3
    assert [row["magic"] for row in found] == [None] * 200 + [2] * 3


def test_a_new_decoder_for_the_same_columns_is_used_from_then_on(tmp_path: Path, table: Path) -> None:
    def text(decoder: ValueDecoder | None) -> str:
        with DataDirectory.open(tmp_path / "logs") as data:
            if "events" not in data.topics:
                data.create_topic("events", 1, SMALL)
            builder = BatchBuilder()
            builder.append(None, b'{"text": "inside"}', timestamp_ms=TIME_MS)
            data.log("events", 0).append(builder.build())
        export(tmp_path / "logs", table, columns=ColumnChoice(decoder=decoder))
        return str(rows(table)[-1]["text"])

    assert text(value_decoder("string")) == '{"text": "inside"}'
    assert text(value_decoder("json", schema="text STRING")) == "inside"
    assert text(None) == "inside"


def test_without_raw_values_and_columns_nothing_would_be_left(logs: Path, table: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing would be exported"):
        export(logs, table, columns=ColumnChoice(raw=False))


@pytest.mark.parametrize("name", ["includeHeaders", "includeBatchInfo", "includeControlRecords"])
def test_options_that_choose_columns_are_refused(logs: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        source_options({"path": str(logs), name: "true"})


def test_a_missing_topic_leaves_no_table(logs: Path, table: Path) -> None:
    with pytest.raises(MissingPartitions):
        export(logs, table, subscribe="evnts")
    with pytest.raises(BadDirectory):
        export(logs / "nowhere", table)
    assert not table.exists()


def test_a_source_that_is_missing_leaves_no_folder(logs: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "SparkRunner", lambda *_: InProcess())
    no_spark: Any = None
    with pytest.raises(BadDirectory):
        export_logs(no_spark, str(logs / "nowhere"), str(table))
    with pytest.raises(MissingPartitions):
        export_logs(no_spark, {"path": str(logs), "subscribe": "evnts"}, str(table))
    assert not table.exists()


def test_logs_without_segments_leave_no_folder(logs: Path, table: Path) -> None:
    for path in logs.rglob("*.log"):
        if path.parent.name != "__cluster_metadata-0":
            path.unlink()
    with pytest.raises(BadDirectory, match="no segments"):
        export(logs, table / "deep" / "inside")
    assert not table.exists()
    table.mkdir()
    with pytest.raises(BadDirectory, match="no segments"):
        export(logs, table)
    assert not list(table.iterdir())


def test_a_folder_with_other_things_is_left_alone(logs: Path, table: Path) -> None:
    table.mkdir()
    (table / "thesis.doc").write_text("")
    with pytest.raises(BadTable, match="not empty"):
        export(logs, table)
    assert [path.name for path in table.iterdir()] == ["thesis.doc"]


def test_plain_parquet_needs_renames() -> None:
    with pytest.raises(InvalidInput, match="delta"):
        ParquetTarget.open("s3://bucket/table")


def test_two_at_once_do_not_both_export(logs: Path, table: Path) -> None:
    def another(_: object) -> None:
        with pytest.raises(ExportConflict, match="only one"):
            export(logs, table)

    export(logs, table, runner=InProcess(before_task=another))
    assert without_day(rows(table)) == expected(logs)


def test_a_round_that_fails_leaves_nothing(logs: Path, table: Path) -> None:
    def fail(_: object) -> None:
        if list(table.glob("_octavo/staging/*/*.staged")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(logs, table, runner=InProcess(before_task=fail), maxBytesPerPartition="2000")
    assert not data_files(table)
    assert not list(table.rglob("*.staged"))
    assert not (table / "_octavo" / "round.json").exists()
    export(logs, table)
    assert without_day(rows(table)) == expected(logs)


# ---------------------------------------------------------------------------------------------------------- data loss


def recreate(logs: Path, batches: int) -> None:
    """Delete the topic, and create another of its name."""
    with DataDirectory.open(logs) as data:
        data.delete_topic("events")
    write_topic(logs, "events", partitions=2, batches=batches)


@pytest.mark.parametrize("batches", [3, 60])  # shorter than before, or longer
def test_a_topic_that_was_created_again_is_noticed(logs: Path, table: Path, batches: int) -> None:
    export(logs, table)
    recreate(logs, batches)
    with pytest.raises(DataLoss, match="created again"):
        export(logs, table)
    assert len(rows(table)) == 200
    assert export(logs, table, failOnDataLoss="false").row_count == 10 * batches
    assert len(rows(table)) == 200 + 10 * batches
    assert export(logs, table).row_count == 0


def test_a_log_that_is_shorter_than_what_was_exported_is_noticed(logs: Path, table: Path) -> None:
    export(logs, table)
    with DataDirectory.open(logs) as data:
        data.log("events", 1).truncate_to(90)
    with pytest.raises(DataLoss, match="exported up to offset 100, but its log ends at 90"):
        export(logs, table)
    assert export(logs, table, failOnDataLoss="false").row_count == 0
    with DataDirectory.open(logs) as data:
        data.log("events", 1).append(batch(90))
    assert export(logs, table).row_count == 5


def test_a_start_offset_that_moved_past_is_noticed(logs: Path, table: Path) -> None:
    export(logs, table)
    with DataDirectory.open(logs) as data:
        log = data.log("events", 1)
        for number in range(10):
            log.append(batch(100 + 5 * number))
        log.delete_records_before(120)
    with pytest.raises(DataLoss, match="offsets 100 to 119 of events-1"):
        export(logs, table)
    assert export(logs, table, failOnDataLoss="false").row_count == 30
    assert [row["offset"] for row in rows(table, '"offset", partition') if row["partition"] == 1] == [
        *range(100),
        *range(120, 150),
    ]


def test_a_log_that_begins_later_is_exported_from_there(logs: Path, table: Path) -> None:
    with DataDirectory.open(logs) as data:
        data.log("events", 0).delete_records_before(40)
    assert export(logs, table).row_count == 160


def test_the_first_export_may_begin_and_end_where_it_is_told(logs: Path, table: Path) -> None:
    offsets = '{"events":{"0":%d,"1":%d}}'
    export(logs, table, startingOffsets=offsets % (10, 20), endingOffsets=offsets % (30, 30))
    assert len(rows(table)) == 30
    export(logs, table, startingOffsets=offsets % (0, 0))  # which counts for new partitions alone
    assert len(rows(table)) == 170


def test_partitions_that_come_later_begin_at_their_first_offset(logs: Path, table: Path) -> None:
    assert export(logs, table, startingOffsets="latest").row_count == 0
    write_topic(logs, "later", batches=3)
    assert export(logs, table, startingOffsets="latest").rows_by_topic == {"later": 15}


def test_partitions_that_come_later_begin_where_they_are_told_if_they_are_named(logs: Path, table: Path) -> None:
    offsets = '{"events":{"0":100,"1":100}}'
    assert export(logs, table, startingOffsets=offsets).row_count == 0
    write_topic(logs, "later", partitions=2, batches=3)
    assert export(logs, table, startingOffsets='{"later":{"1":10}}').rows_by_topic == {"later": 15 + 5}


@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets", "endingOffsetsByTimestamp"])
def test_offsets_of_some_partitions_are_refused(logs: Path, table: Path, name: str) -> None:
    some: dict[str, Any] = {name: '{"events":{"0":10}}'}
    with pytest.raises(MissingPartitions, match="don't match"):
        export(logs, table, **some)
    assert not data_files(table)


def test_damage_is_reported_and_nothing_exported(logs: Path, table: Path) -> None:
    segment = sorted((logs / "events-0").glob("*.log"))[1]
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    with pytest.raises(Exception, match=r"\.log"):
        export(logs, table)
    assert not data_files(table)
    assert export(logs, table, onCorruption="skip").row_count < 200


def test_timestamps_are_those_of_the_log(logs: Path, table: Path) -> None:
    export(logs, table)
    found = rows(table, "timestamp, timestampType")
    assert found[1]["timestamp"] - found[0]["timestamp"] == timedelta(milliseconds=10)
    assert isinstance(found[0]["timestamp"], datetime)
    assert found[0]["timestampType"] == 0


def test_a_format_of_another_package_has_columns_and_is_kept(
    logs: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    install(packages, "octavo_test_length")
    monkeypatch.syspath_prepend(packages)
    export(logs, table, columns=ColumnChoice(decoder=value_decoder("length", message="size")))
    append(logs, [TIME_MS])
    export(logs, table)  # as the table has noted it
    found = rows(table, "value, size, parse_error")
    assert len(found) == 201
    for row in found:
        is_loud = row["value"] is not None and b"!" in row["value"]
        assert row["size"] == (None if row["value"] is None or is_loud else len(row["value"]))
        assert (row["parse_error"] is not None) == is_loud

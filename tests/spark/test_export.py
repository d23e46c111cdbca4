"""An export on Spark: what is in the table is what Spark's Kafka connector reads from the broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from octavo.cli import main
from octavo.spark.tables.export import export_logs
from tests.plugin import install
from tests.spark import sessions
from tests.spark.broker import Topics
from tests.spark.exports import TOPICS, ExportedTables
from tests.unit.spark.tables.exporting import data_files, rows
from tests.unit.spark.topics import write_topic

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def connector(spark: SparkSession, topics: Topics, subscribed: str, isolation: str) -> list[dict[str, Any]]:
    """What the connector reads, in the order of `rows`."""
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", topics.address)
        .option("subscribe", subscribed)
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", isolation)
        .load()
        .select(*COLUMNS)
    )
    found = [{name: _plain(value) for name, value in row.asDict(recursive=True).items()} for row in frame.collect()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [{name: _plain(each) for name, each in header.items()} for header in value]
    return value.timestamp() if hasattr(value, "timestamp") else value


def rows_of(table: Path) -> list[dict[str, Any]]:
    return [{name: _plain(row[name]) for name in COLUMNS} for row in rows(table)]


def test_transactions_that_are_open_or_aborted_are_exported_if_asked_for(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """What is committed is exported in `test_tables.py`."""
    source = {"path": str(topics.folder), "subscribe": TOPICS, "isolation.level": "read_uncommitted"}
    summary = export_logs(spark, source, str(tmp_path / "table"))
    found = rows_of(tmp_path / "table")
    expected = connector(spark, topics, TOPICS, "read_uncommitted")
    assert len(found) == len(expected) == summary.row_count
    assert found == expected
    assert export_logs(spark, source, str(tmp_path / "table")).row_count == 0


def test_spark_reads_the_files(spark: SparkSession, exported: ExportedTables) -> None:
    frame = spark.read.parquet(str(exported.table("parquet").folder))
    assert [field.name for field in frame.schema][-2:] == ["topic", "day"]
    assert frame.where("topic = 'plain'").count() == 3000
    assert frame.where("topic = 'plain' AND day = DATE'2023-11-14'").count() == 3000


def test_the_command_exports_and_says_what_it_did(
    spark: SparkSession, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = str(tmp_path / "table")
    assert main(["export", str(topics.folder), table, "--topic", "plain", "--topic", "codecs", "--merge"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{table}: 3,500 records in ")
    assert "  plain: 3,000\n" in said
    assert main(["export", str(topics.folder), table, "--topic", "plain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 0
    assert main(["export", str(topics.folder), table, "--topic", "plane"]) == 2
    assert "is 'plain' meant?" in capsys.readouterr().err
    assert len(data_files(tmp_path / "table")) >= 4


@pytest.mark.soak(45)
def test_workers_find_the_format_of_another_package(java: str, tmp_path: Path) -> None:
    """Driver and workers are processes of their own, and find the package as they find all others."""
    packages = tmp_path / "packages"
    packages.mkdir()
    install(packages, "octavo_test_length")
    write_topic(tmp_path / "logs", "events", partitions=2, batches=5)
    environment = sessions.environment()
    environment["PYTHONPATH"] = os.pathsep.join([str(packages), environment["PYTHONPATH"]])
    command = [sys.executable, "-m", "octavo.cli", "export", str(tmp_path / "logs"), str(tmp_path / "table")]
    command += ["--value-format", "length", "--message", "size"]
    for name, value in sessions.settings().items():
        command += ["--conf", f"{name}={value}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "table", "value, size")
    assert len(found) == 50
    assert all(row["size"] == (None if row["value"] is None else len(row["value"])) for row in found)

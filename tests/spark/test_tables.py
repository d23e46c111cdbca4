"""Tables that logs were exported to hold what Spark's connector reads from the broker, whoever reads the table."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octavo.spark.tables.delta import DeltaTarget
from octavo.spark.tables.export import export_logs
from octavo.spark.tables.formats import FORMATS
from tests.kafka.client import OLD_RESOURCES
from tests.spark import sessions
from tests.spark.broker import TIME_MS, Topics
from tests.spark.exports import TOPICS, ExportedTables
from tests.spark.table_rows import TableRow, by_duckdb, by_polars, comparable, without_empty_headers
from tests.unit.spark.bucket import serving

pytestmark = [OLD_RESOURCES, pytest.mark.timeout(600)]

LAKES: Final = sessions.ROOT / "build" / "lakes"
PYTHON: Final = sessions.ROOT / "build" / "pyspark-4.1.1" / "bin" / "python"


@pytest.fixture(scope="module")
def expected(spark: SparkSession, topics: Topics) -> list[TableRow]:
    """What Spark's connector reads from the broker."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", topics.address)
    frame = reader.options(
        **{"subscribe": TOPICS, "kafka.isolation.level": "read_committed", "includeHeaders": "true"}
    ).load()
    rows = comparable(row.asDict() for row in sessions.collect(frame))
    assert {row[0] for row in rows} == set(TOPICS.split(","))
    return rows


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_table_holds_what_the_connector_reads(
    spark: SparkSession, exported: ExportedTables, expected: list[TableRow], format_name: str
) -> None:
    folder, summary, progress, warnings = exported.table(format_name)
    assert summary.row_count == len(expected)
    assert summary.rows_by_topic.keys() == set(TOPICS.split(","))
    assert progress[-1] == (summary.size_read, summary.size_read)
    assert warnings == []
    assert by_polars(format_name, folder) == expected
    found = by_duckdb(format_name, folder)
    if format_name == "iceberg":  # which DuckDB gets from `pyiceberg`
        assert found == without_empty_headers(expected)
    else:
        assert found == expected
    assert export_logs(spark, exported.source, str(folder), format=format_name).row_count == 0
    assert by_polars(format_name, folder) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of boto and its like
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_logs_in_a_bucket_become_a_table_in_a_bucket(
    spark: SparkSession, topics: Topics, expected: list[TableRow], tmp_path: Path
) -> None:
    with serving() as bucket:
        for folder in (*topics.folder.glob("plain-*"), *topics.folder.glob("codecs-*")):
            bucket.put(folder, f"data/{folder.name}")
        source, table = (bucket.address_with_keys(name) for name in ("data", "table"))
        summary = export_logs(spark, {"path": source, "subscribe": "plain,codecs"}, table, format="delta")
        with DeltaTarget.open(bucket.address("table"), {}) as target:
            rows = comparable(target._existing.to_pyarrow_table().to_pylist())
    assert rows == [row for row in expected if row[0] in ("plain", "codecs")]
    assert summary.row_count == len(rows)


@pytest.mark.soak(90)
def test_sparks_own_packages_read_delta_and_iceberg(
    spark: SparkSession, topics: Topics, expected: list[TableRow], tmp_path: Path
) -> None:
    for needed in (PYTHON, LAKES):
        assert needed.exists(), "`make lakes` fetches the packages, and the Spark that they are for"
    folders = {name: tmp_path / name for name in ("delta", "iceberg")}
    for name, folder in folders.items():
        for subscribed in (TOPICS.rpartition(",")[0], TOPICS):  # one is new in the second export
            export_logs(spark, {"path": str(topics.folder), "subscribe": subscribed}, str(folder), format=name)
    command = [PYTHON, "-m", "tests.spark.programs.lakes", LAKES, *folders.values(), tmp_path]
    environment = {**sessions.environment(), "SPARK_HOME": ""}
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    for name in folders:
        assert comparable(pq.read_table(tmp_path / f"{name}.parquet").to_pylist()) == expected
    plain = [row for row in expected if row[0] == "plain"]
    counted = {
        "topic": len(plain),
        "offset": sum(row[1] == 1 and row[2] >= 700 for row in plain),
        "time": sum(row[5] < (TIME_MS + 10_000) * 1000 for row in plain),
        "none": 0,
    }
    assert 0 < counted["offset"] < counted["time"] < counted["topic"]
    offsets = [row[2] for row in expected]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"delta": counted, "iceberg": counted, "ranges": [min(offsets), max(offsets)]}

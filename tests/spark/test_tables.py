"""Tables that logs were exported to hold what Spark's connector reads from the broker, whoever reads the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from octavo.spark.tables.export import export_logs
from octavo.spark.tables.formats import FORMATS
from tests.kafka.client import OLD_RESOURCES
from tests.spark import sessions
from tests.spark.broker import Topics
from tests.spark.table_rows import TableRow, by_duckdb, by_polars, comparable, without_empty_headers

pytestmark = [OLD_RESOURCES, pytest.mark.timeout(600)]

TOPICS = "plain,codecs,transactions,compacted,cut"


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
    spark: SparkSession,
    topics: Topics,
    expected: list[TableRow],
    format_name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = {"path": str(topics.folder), "subscribe": TOPICS}
    summary = export_logs(spark, source, str(tmp_path), format=format_name)
    assert summary.row_count == len(expected)
    assert [record for record in caplog.records if record.name.startswith("pyiceberg")] == []  # it warns of much
    assert by_polars(format_name, tmp_path) == expected
    found = by_duckdb(format_name, tmp_path)
    if format_name == "iceberg":  # which DuckDB gets from `pyiceberg`
        assert found == without_empty_headers(expected)
    else:
        assert found == expected
    assert export_logs(spark, source, str(tmp_path), format=format_name).row_count == 0
    assert by_polars(format_name, tmp_path) == expected

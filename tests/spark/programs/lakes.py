"""Reads a Delta and an Iceberg table with Spark and the packages of these formats.

python -m tests.spark.programs.lakes JARS DELTA ICEBERG WORK
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tests.spark import sessions


def main(jars: str, delta: str, iceberg: str, work: str) -> None:
    """Writes all rows to files, and prints what it found about the files of the tables as JSON, on the last line."""
    more = {
        "spark.driver.extraClassPath": ":".join(map(str, sorted(Path(jars).glob("*.jar")))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.catalog.octavo": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.octavo.type": "jdbc",
        "spark.sql.catalog.octavo.uri": f"jdbc:sqlite:{iceberg}/catalog.db",
        "spark.sql.catalog.octavo.warehouse": f"file://{iceberg}",
    }
    spark = sessions.start(more=more)
    tables = {"delta": spark.read.format("delta").load(delta), "iceberg": spark.table("octavo.octavo.records")}
    for name, table in tables.items():
        pq.write_table(table.toArrow(), Path(work, f"{name}.parquet"))
    print(json.dumps({name: looked_up(table) for name, table in tables.items()} | {"ranges": ranges(spark)}))
    spark.stop()


def looked_up(table: DataFrame) -> dict[str, int]:
    """Count rows by conditions for which Spark skips files, by partitions and by statistics."""
    conditions = {
        "topic": "topic = 'plain'",
        "offset": "topic = 'plain' AND partition = 1 AND offset >= 700",
        "time": "topic = 'plain' AND timestamp < timestamp_millis(1700000010000)",
        "none": "offset < 0",
    }
    return {name: table.where(condition).count() for name, condition in conditions.items()}


def ranges(spark: SparkSession) -> list[int]:
    """Return the smallest and the largest offset, by the statistics of the Iceberg table alone."""
    metrics = "readable_metrics.offset"
    found = spark.sql(
        f"SELECT min({metrics}.lower_bound), max({metrics}.upper_bound) FROM octavo.octavo.records.files"
    ).first()
    assert found is not None
    return [found[0], found[1]]


if __name__ == "__main__":
    main(*sys.argv[1:])

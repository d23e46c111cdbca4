"""Run Spark for the demo, in its own process because it prints a lot: `query DIR SQL` prints rows as JSON."""

from __future__ import annotations

import json
import sys


def main(folder: str, sql: str) -> None:
    """Run a query on the data directory, which is the view `log`, and print the rows as JSON."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("octavo demo")
    for name, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.read.format("octavo").load(folder).createOrReplaceTempView("log")
    rows = spark.sql(sql).collect()
    print(json.dumps([{name: str(value) for name, value in row.asDict().items()} for row in rows]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Run Spark for the demo, in its own process because it prints a lot: `query DIR SQL TOPIC` prints rows as JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main(folder: str, sql: str, topic: str) -> None:
    """Run a query on the data directory, which is the view `log`; write its rows to `topic`, and read that back.

    Prints two lists of rows as JSON: the answer, and what is in the topic.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("octavo demo")
    for name, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.read.format("octavo").load(folder).createOrReplaceTempView("log")
    totals = spark.sql(sql).cache()
    answer = _rows(totals)
    records = totals.selectExpr("topic AS key", "to_json(struct(*)) AS value")
    records.write.format("octavo").options(topic=topic, partitions="2").mode("append").save(folder)
    written = spark.read.format("octavo").option("subscribe", topic).load(folder)
    columns = ("partition", "offset", "CAST(key AS STRING)", "CAST(value AS STRING)")
    print(json.dumps([answer, _rows(written.selectExpr(*columns).orderBy("partition", "offset"))]))
    spark.stop()


def _rows(frame: DataFrame) -> list[dict[str, str]]:
    return [{name: str(value) for name, value in row.asDict().items()} for row in frame.collect()]


if __name__ == "__main__":
    main(*sys.argv[1:])

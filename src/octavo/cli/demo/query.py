"""Run Spark for the demo, in its own process because it prints a lot: `query DIR SQL TOPIC` prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main(folder: str, sql: str, topic: str) -> None:
    """Run a query on the data directory, which is the view `log`; write its rows to `topic`, and read that back.

    Then take the directory to a table and back. Prints as JSON the rows of the answer, those in the topic, and what
    `round_trip` has done.
    """
    from pyspark.sql import SparkSession

    from octavo.cli.demo import round_trip

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
    records_of_topic = _rows(written.selectExpr(*columns).orderBy("partition", "offset"))
    print(json.dumps([answer, records_of_topic, round_trip.run(spark, Path(folder))]))
    spark.stop()


def _rows(frame: DataFrame) -> list[dict[str, str]]:
    return [{name: str(value) for name, value in row.asDict().items()} for row in frame.collect()]


if __name__ == "__main__":
    main(*sys.argv[1:])

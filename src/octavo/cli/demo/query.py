"""Run Spark for the demo, in its own process because it prints a lot: `query DIR SQL TOPIC [SERVED]` prints JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOKS: Final = 3


def main(folder: str, sql: str, topic: str, served: str = "") -> None:
    """Run a query on the data directory, which is the view `log`; write its rows to `topic`, and read that back.

    Then take the directory to a table and back. Prints as JSON the rows of the answer, those in the topic, what
    `round_trip` has done, and what was seen of the directory `served`, to which a broker is writing.
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
    seen = _look(spark, served) if served else []
    print(json.dumps([answer, records_of_topic, round_trip.run(spark, Path(folder)), seen]))
    spark.stop()


def _look(spark: SparkSession, served: str) -> list[dict[str, str]]:
    """Count the records of a directory several times, and tell how old the newest is when Spark has counted."""
    rows = []
    for look in range(1 + _LOOKS):
        log = spark.read.format("octavo").load(served)
        (row,) = log.selectExpr("count(*) AS records", "unix_millis(max(timestamp)) AS newest").collect()
        if look:  # the first is slow, because Spark starts its workers
            age = f"{1000 * time.time() - row.newest:,.0f} ms ago"
            rows.append({"": f"count {look}", "records": f"{row.records:,}", "the newest was produced": age})
    return rows


def _rows(frame: DataFrame) -> list[dict[str, str]]:
    return [{name: str(value) for name, value in row.asDict().items()} for row in frame.collect()]


if __name__ == "__main__":
    main(*sys.argv[1:])

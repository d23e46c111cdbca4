"""Spark writes logs: its connector reads the same rows back from Apache Kafka, and each row is there once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from octavo.log import DataDirectory
from octavo.log.metadata import handover
from octavo.records.partition import partition_for_key
from tests.kafka.broker import Broker
from tests.spark.test_connector import last_line
from tests.unit.spark.topics import write_topic

pytestmark = pytest.mark.timeout(600)

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", ArrayType(HEADER)),
        StructField("timestamp", TimestampType()),
        StructField("ignored", IntegerType()),
    ]
)


def write(frame: DataFrame, folder: Path, **options: object) -> None:
    given = {name.replace("_", "."): str(value) for name, value in options.items()}
    frame.write.format("octavo").options(**given).mode("append").save(str(folder))


def read(spark: SparkSession, folder: Path, **options: str) -> list[Row]:
    return spark.read.format("octavo").options(includeHeaders="true", **options).load(str(folder)).collect()


def sample(spark: SparkSession) -> DataFrame:
    """Two topics, rows with and without partition, key, value and headers."""
    now = spark.sql("SELECT timestamp_millis(1700000000123) AS now").collect()[0].now
    rows: list[tuple[Any, ...]] = []
    for number in range(300):
        key = None if number % 5 == 0 else b"key %d" % (number % 40)
        value = None if number % 7 == 0 else b"value %d" % number
        headers = [Row(key="a", value=b"1"), Row(key="", value=None)] if number % 3 == 0 else None
        partition = number % 3 if number % 11 == 0 else None
        rows.append(("one" if number % 2 else "two", partition, key, value, headers, now, number))
    return spark.createDataFrame(rows, SCHEMA).repartition(3)


def plain(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """The rows as they were given, without what the log decides."""
    return Counter((row.topic, row.key, row.value, tuple(map(tuple, row.headers or ())), row.timestamp) for row in rows)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_the_connector_reads_what_was_written_from_apache_kafka(
    spark: SparkSession, tmp_path: Path, codec: str
) -> None:
    frame = sample(spark)
    folder = tmp_path / "data"
    write(frame, folder, partitions=3, compression=codec)
    given = frame.collect()
    ours = read(spark, folder)
    assert plain(ours) == plain(given)
    wanted = {(row.topic, row.value): row.partition for row in given if row.partition is not None and row.value}
    for row in ours:
        if (row.topic, row.value) in wanted:
            assert row.partition == wanted[row.topic, row.value]
        elif row.key is not None and row.value is not None:
            assert row.partition == partition_for_key(row.key, 3)
    handover([folder])
    with Broker(folder) as broker:
        broker.start()
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.address)
        kafkas = reader.option("subscribe", "one,two").option("includeHeaders", "true").load().collect()
    assert plain(kafkas) == plain(given)
    assert {(row.topic, row.partition, row.offset, row.value) for row in kafkas} == {
        (row.topic, row.partition, row.offset, row.value) for row in ours
    }


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ("value", {}, "topic option required when no 'topic' attribute is present. Use the topic option for setting"),
        ("key", {"topic": "t"}, "Required attribute 'value' not found"),
        ("value, 1 AS key", {"topic": "t"}, "key attribute unsupported type int. key must be a(n) string or binary"),
        ("value, NULL AS topic", {}, "topic attribute unsupported type void. topic must be a(n) string"),
        (
            "value, CAST(NULL AS STRING) AS topic",
            {},
            "sent to the producer contains a null topic. Use the `topic` option",
        ),
        ("value, -1 AS partition", {"topic": "t"}, "Invalid partition: -1. Partition number should always be"),
        ("value, 1 AS partition", {"topic": "t"}, "there is no partition 1 of topic 't': its last partition is 0"),
        ("value", {"topic": "t", "partition": "1"}, "there is no option 'partition'; is partitions meant?"),
        (
            "value",
            {"topic": "t", "cleanup.policy": "compact"},
            "t-0: a record is refused: the topic is compacted, and the record has no key (INVALID_RECORD)",
        ),
    ],
)
def test_what_is_wrong_is_told_at_the_call_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, columns: str, options: dict[str, str], sentence: str
) -> None:
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value", "'a' AS key").selectExpr(*columns.split(", "))
    with pytest.raises(PySparkException) as refused:
        frame.write.format("octavo").options(**options).mode("append").save(str(tmp_path / "log"))
    assert sentence in last_line(refused.value)
    if (tmp_path / "log").exists():
        with DataDirectory.open(tmp_path / "log", read_only=True) as directory:
            assert all(directory.log(*partition).end_offset == 0 for partition in directory.partitions())


def test_a_log_is_not_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(1).selectExpr("'a' AS value")
    with pytest.raises(PySparkException) as refused:
        frame.write.format("octavo").option("topic", "t").mode("overwrite").save(str(tmp_path / "log"))
    assert 'records of a log are not replaced, only appended: write mode("append")' in last_line(refused.value)


def test_a_directory_that_is_open_elsewhere_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(1).selectExpr("'a' AS value")
    with DataDirectory.open(tmp_path / "log"), pytest.raises(PySparkException) as refused:
        write(frame, tmp_path / "log", topic="t", lockTimeout="100ms")
    assert last_line(refused.value) == (
        f"octavo.errors.BadDirectory: {tmp_path}/log: process {os.getpid()} has it open, and still has after 0.1 s: "
        'stop it first or, if it is a broker, write to its topics with format("kafka")'
    )


def test_a_write_with_an_identity_is_done_once(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(100).selectExpr("CAST(id AS STRING) AS value")
    for version in (1, 1, 2, 1):
        write(frame, tmp_path / "log", topic="t", txnAppId="job", txnVersion=version)
    assert len(read(spark, tmp_path / "log")) == 200


def test_a_stream_writes_each_row_once_also_when_a_micro_batch_is_repeated(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path / "source", "orders", 2, batches=20)
    work, log = tmp_path / "work", tmp_path / "log"

    def run() -> None:
        reader = spark.readStream.format("octavo").option("startingOffsets", "earliest")
        stream = reader.option("maxOffsetsPerTrigger", "60").load(str(tmp_path / "source"))
        writer = stream.selectExpr("key", "value", "timestamp").writeStream.format("octavo")
        writer = writer.option("topic", "copy").option("partitions", "3").option("checkpointLocation", str(work))
        writer.trigger(availableNow=True).start(str(log)).awaitTermination()

    run()
    given = Counter(row.value for row in read(spark, tmp_path / "source"))
    assert Counter(row.value for row in read(spark, log)) == given
    last = max(int(path.name) for path in (work / "commits").iterdir() if path.name.isdigit())
    assert last >= 2
    for path in (work / "commits").glob(f"*{last}*"):
        path.unlink()  # as if the driver had died between our commit and its own
    run()
    assert Counter(row.value for row in read(spark, log)) == given
    assert not list(log.parent.glob(".log.staging/*"))


def test_what_is_wrong_with_a_stream_is_told_by_its_query(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    writer = stream.writeStream.format("octavo").option("checkpointLocation", str(tmp_path / "work"))
    query = writer.start(str(tmp_path / "log"))
    with pytest.raises(PySparkException):
        query.awaitTermination(120)
    assert "topic option required when no 'topic' attribute is present" in str(query.exception())


def restore(spark: SparkSession, folder: Path) -> None:
    """Write the records of the directory `source`, as its batches were, to the directory `log`."""
    source = spark.read.format("octavo").option("includeHeaders", "true").option("includeBatchInfo", "true")
    write(source.load(str(folder / "source")), folder / "log", restore="true", partitions=2)


def test_restoring_gives_the_same_batches_at_the_same_offsets(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path / "source", "orders", 2, batches=20)
    restore(spark, tmp_path)
    for partition in (0, 1):
        files = [
            b"".join(path.read_bytes() for path in sorted((tmp_path / name / f"orders-{partition}").glob("*.log")))
            for name in ("source", "log")
        ]
        assert files[0] == files[1]


def test_restoring_leaves_out_the_offsets_that_compaction_has_removed(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path / "source", "orders", 2, batches=20)
    with DataDirectory.open(tmp_path / "source") as directory:
        directory.set_config("orders", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
        for log in directory.logs:
            log.roll()
            log.compact()
    restore(spark, tmp_path)
    found = [
        sorted((row.partition, row.offset, row.timestamp, row.key, row.value) for row in read(spark, tmp_path / name))
        for name in ("source", "log")
    ]
    assert found[0] == found[1]
    assert len(found[0]) < 200


def test_settings_of_a_new_topic_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    write(frame, tmp_path / "log", topic="t", retention_ms=1000, segment_bytes=1 << 20)
    with DataDirectory.open(tmp_path / "log", read_only=True) as directory:
        assert directory.topics["t"].config == {"retention.ms": "1000", "segment.bytes": "1048576"}

"""Spark writes logs: its connector reads the same rows back from Apache Kafka, and each row is there once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession, functions
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
from tests.spark.sessions import collect
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
    return collect(spark.read.format("octavo").options(includeHeaders="true", **options).load(str(folder)))


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


@pytest.mark.exhaustive
def test_the_connector_reads_what_was_written_from_apache_kafka(spark: SparkSession, tmp_path: Path) -> None:
    """From a directory that Kafka has never seen."""
    folder = tmp_path / "data"
    given: list[Row] = []
    for codec in ("none", "lz4"):
        frame = sample(spark).withColumn("topic", functions.concat("topic", functions.lit(f"-{codec}")))
        write(frame, folder, partitions=3, compression=codec)
        given += collect(frame)
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
        kafkas = collect(reader.option("subscribePattern", "(one|two)-.*").option("includeHeaders", "true").load())
    assert plain(kafkas) == plain(given)
    assert {(row.topic, row.partition, row.offset, row.value) for row in kafkas} == {
        (row.topic, row.partition, row.offset, row.value) for row in ours
    }


# ------------------------------------------------------------------------------------------------------------- refused

TOPIC = {"topic": "t"}
_HEADERS = "array<struct<key:string,value:binary>>"


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ("'a' AS value", {}, "topic option required when no 'topic' attribute is present. Use the topic option for"),
        ("'a' AS key", TOPIC, "Required attribute 'value' not found"),
        ("'a' AS VALUE", TOPIC, "Required attribute 'value' not found"),
        ("1 AS value", TOPIC, "value attribute unsupported type int. value must be a(n) string or binary"),
        ("'a' AS value, 1 AS key", TOPIC, "key attribute unsupported type int. key must be a(n) string or binary"),
        ("'a' AS value, NULL AS topic", {}, "topic attribute unsupported type void. topic must be a(n) string"),
        ("'a' AS value, 0L AS partition", TOPIC, "partition attribute unsupported type bigint. partition must be a(n)"),
        (
            "'a' AS value, array('a') AS headers",
            TOPIC,
            f"headers attribute unsupported type array<string>. headers must be a(n) {_HEADERS}",
        ),
        (
            "'a' AS value, CAST(NULL AS STRING) AS topic",
            {},
            "contains a null topic. Use the `topic` option for setting a default topic.",
        ),
        (
            "'a' AS value",
            TOPIC | {"kafka.key.serializer": "a"},
            "Kafka option 'key.serializer' is not supported as keys are serialized with ByteArraySerializer.",
        ),
        (
            "'a' AS value",
            TOPIC | {"kafka.value.serializer": "a"},
            "Kafka option 'value.serializer' is not supported as value are serialized with ByteArraySerializer.",
        ),
        ("'a' AS value, -1 AS partition", TOPIC, "Invalid partition: -1. Partition number should always be non-"),
    ],
)
def test_what_the_connector_refuses_is_refused_in_its_words_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, columns: str, options: dict[str, str], sentence: str
) -> None:
    frame = spark.range(10).selectExpr(*columns.split(", "))
    nobody = {"kafka.bootstrap.servers": "127.0.0.1:1"}  # the connector does not get that far
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - several kinds
        frame.write.format("kafka").options(**options | nobody).save()
    assert sentence in str(theirs.value)
    with pytest.raises(PySparkException) as ours:
        frame.write.format("octavo").options(**options).mode("append").save(str(tmp_path / "log"))
    assert sentence in last_line(ours.value)
    assert not list(tmp_path.rglob("*.log")) + list(tmp_path.rglob("*.staged"))


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ("value, 1 AS partition", TOPIC, "there is no partition 1 of topic 't': its last partition is 0"),
        ("value", {"topic": "t", "partition": "1"}, "there is no option 'partition'; is partitions meant?"),
        ("value", {"topic": "t", "stagingPath": "log/t"}, "is inside a data directory, where Kafka tolerates no other"),
        (
            "value",
            {"topic": "t", "cleanup.policy": "compact"},
            "t-0: a record is refused: the topic is compacted, and the record has no key (INVALID_RECORD)",
        ),
        (
            "value, timestamp_millis(0) AS timestamp",
            {"topic": "t", "message.timestamp.before.max.ms": "1000"},
            "(INVALID_TIMESTAMP)",
        ),
        (
            "space(900) AS value",
            {"topic": "t", "max.message.bytes": "500"},
            "it is larger than max.message.bytes allows (MESSAGE_TOO_LARGE)",
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence_and_nothing_is_written(
    spark: SparkSession,
    tmp_path: Path,
    columns: str,
    options: dict[str, str],
    sentence: str,
) -> None:
    if "stagingPath" in options:
        options = options | {"stagingPath": str(tmp_path / options["stagingPath"])}
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value").selectExpr(*columns.split(", "))
    with pytest.raises(PySparkException) as refused:
        write(frame, tmp_path / "log", **options)
    assert sentence in last_line(refused.value)
    assert not list(tmp_path.rglob("*.staged"))
    if (tmp_path / "log").exists():
        with DataDirectory.open(tmp_path / "log", read_only=True) as directory:
            assert all(directory.log(*partition).end_offset == 0 for partition in directory.partitions())


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("overwrite", 'records of a log are not replaced, only appended: write mode("append")'),
        ("ignore", 'cannot be written in the "Ignore" mode'),  # the connector refuses it as well
        ("errorifexists", 'cannot be written in the "ErrorIfExists" mode'),  # for which the connector appends
    ],
)
def test_a_log_is_only_appended_to(spark: SparkSession, tmp_path: Path, mode: str, sentence: str) -> None:
    frame = spark.range(1).selectExpr("'a' AS value")
    with pytest.raises(PySparkException) as refused:
        frame.write.format("octavo").option("topic", "t").mode(mode).save(str(tmp_path / "log"))
    assert sentence in last_line(refused.value)


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


def test_rows_of_a_task_keep_their_order_and_rows_without_a_key_are_spread(spark: SparkSession, tmp_path: Path) -> None:
    """Staged elsewhere, and with an option of the connector that means nothing here."""
    frame = spark.range(0, 4000, 1, 4).selectExpr("CAST(id AS STRING) AS value", "'t' AS topic")
    nothing = {"kafka_bootstrap_servers": "nobody:9092"}
    write(frame, tmp_path / "log", partitions=3, stagingPath=tmp_path / "staging", batchSize=500, **nothing)
    found: dict[int, list[int]] = {partition: [] for partition in range(3)}
    for row in sorted(read(spark, tmp_path / "log"), key=lambda row: int(row.offset)):
        found[row.partition].append(int(row.value))
    for numbers in found.values():
        assert numbers == sorted(numbers)  # tasks come one after the other, too
        assert abs(len(numbers) - 4000 / 3) <= 4
    assert (tmp_path / "staging").exists()
    assert not (tmp_path / ".log.staging").exists()


def test_settings_of_a_new_topic_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    write(frame, tmp_path / "log", topic="t", retention_ms=1000, segment_bytes=1 << 20)
    with DataDirectory.open(tmp_path / "log", read_only=True) as directory:
        assert directory.topics["t"].config == {"retention.ms": "1000", "segment.bytes": "1048576"}

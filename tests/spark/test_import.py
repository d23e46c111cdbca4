"""Tables become logs again: Apache Kafka serves the same records at the same offsets, and nothing is there twice."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from octavo.cli import main
from octavo.cli.exits import COULD_NOT_RUN, FINE
from octavo.errors import DirectoryLocked, InvalidInput
from octavo.log import DataDirectory
from octavo.log.metadata import handover
from octavo.spark.tables.importing import import_table
from tests.kafka.broker import Broker
from tests.kafka.client import OLD_RESOURCES, KafkaProducer
from tests.kafka.consuming import read_by_client
from tests.spark.broker import Topics
from tests.spark.exports import TOPICS, ExportedTables
from tests.unit.spark.topics import write_topic

pytestmark = [OLD_RESOURCES, pytest.mark.timeout(600)]


def read(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    return spark.read.format("octavo").options(includeHeaders="true", **options).load(str(folder))


def rows(frame: DataFrame) -> list[Any]:
    """All rows, in the order of the log."""
    return sorted(map(tuple, frame.collect()), key=lambda row: (row[2], row[3], row[4]))


def served(spark: SparkSession, address: str, topics: str) -> list[Any]:
    """What Spark's connector gets from a broker."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", address).option("includeHeaders", "true")
    return rows(reader.option("kafka.isolation.level", "read_committed").option("subscribe", topics).load())


COMMITTED = {"subscribe": TOPICS, "isolation.level": "read_committed"}


@pytest.fixture(scope="module")
def original(spark: SparkSession, topics: Topics) -> list[Any]:
    """What our source reads from the directory of a broker: what an export has to contain."""
    return rows(read(spark, topics.folder, **COMMITTED))


def limits(folder: Path) -> dict[str, tuple[int, int]]:
    """The start and the end of each log."""
    with DataDirectory.open(folder, read_only=True) as directory:
        logs = {of: directory.log(*of) for of in directory.partitions() if of.topic in TOPICS.split(",")}
        return {str(of): (log.start_offset, log.end_offset) for of, log in logs.items()}


@pytest.mark.exhaustive
def test_kafka_serves_what_was_imported_as_it_served_the_original(
    spark: SparkSession, topics: Topics, exported: ExportedTables, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    summary = import_table(spark, exported.table("parquet").folder, log, compression="lz4")
    wanted = served(spark, topics.address, TOPICS)
    assert summary.records == len(wanted)
    assert summary.created == tuple(sorted(TOPICS.split(",")))
    handover([log])
    with Broker(log) as broker:
        broker.start()
        assert broker.troubles == []
        assert served(spark, broker.address, TOPICS) == wanted
        for partition in (("cut", 0), ("transactions", 1), ("plain", 2)):
            seen = read_by_client(broker, partition)
            assert seen == read_by_client(topics.broker, partition, "read_committed")
        with closing(KafkaProducer(bootstrap_servers=broker.address)) as producer:
            offsets = [producer.send("plain", value=b"more", partition=number).get(30).offset for number in range(3)]
    assert offsets == [end for name, (_, end) in sorted(limits(topics.folder).items()) if name.startswith("plain")]


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_log_to_table_to_log_gives_the_same_records_at_the_same_offsets(
    spark: SparkSession,
    topics: Topics,
    exported: ExportedTables,
    original: list[Any],
    tmp_path: Path,
    table_format: str,
) -> None:
    import_table(spark, exported.table(table_format).folder, tmp_path / "log", format=table_format)
    assert rows(read(spark, tmp_path / "log")) == original
    before, after = limits(topics.folder), limits(tmp_path / "log")
    assert after.keys() == before.keys()
    for name, (start, end) in before.items():
        if name != "transactions-0":  # of which the end is not decided
            assert after[name][1] == end
        assert after[name][0] == min(row[4] for row in original if f"{row[2]}-{row[3]}" == name) >= start
    with (
        DataDirectory.open(topics.folder, read_only=True) as source,
        DataDirectory.open(tmp_path / "log", read_only=True) as target,
    ):
        assert {name: topic.id for name, topic in target.topics.items()} == {
            name: source.topics[name].id for name in TOPICS.split(",")
        }
        for name, topic in target.topics.items():
            assert topic.config == {**source.topics[name].config, "retention.ms": "-1"}
        for partition in target.partitions():
            epochs = (tmp_path / "log" / str(partition) / "leader-epoch-checkpoint").read_text().splitlines()
            assert epochs[2] == f"0 {target.log(*partition).start_offset}"


def test_batches_are_as_they_were_if_the_table_tells_them(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path / "source", "orders", 2, batches=40)
    read(spark, tmp_path / "source", includeBatchInfo="true").repartition(3).write.parquet(str(tmp_path / "table"))
    import_table(spark, tmp_path / "table", tmp_path / "log", topic_config={"internal.segment.bytes": "2048"})
    for partition in (0, 1):
        files = [
            b"".join(path.read_bytes() for path in sorted((tmp_path / name / f"orders-{partition}").glob("*.log")))
            for name in ("source", "log")
        ]
        assert files[0] == files[1]


def test_what_the_target_has_already_is_not_imported_again(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path / "source", "orders", 2, batches=20)
    frame = read(spark, tmp_path / "source")
    frame.where("offset < 50").write.parquet(str(tmp_path / "first"))
    frame.where("offset >= 60").write.parquet(str(tmp_path / "second"))
    import_table(spark, tmp_path / "first", tmp_path / "log")
    with pytest.raises(InvalidInput, match=r"orders-0 in .*log has offsets up to 49 already, and the table has 0: "):
        import_table(spark, tmp_path / "first", tmp_path / "log")
    summary = import_table(spark, tmp_path / "second", tmp_path / "log")
    assert summary.created == ()
    assert {str(of): (each.start, each.stop) for of, each in summary.partitions.items()} == {
        "orders-0": (60, 100),
        "orders-1": (60, 100),
    }
    assert rows(read(spark, tmp_path / "log")) == rows(frame.where("offset < 50 OR offset >= 60"))
    assert not list(tmp_path.glob(".log.staging/*"))


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ("key, topic, partition, offset", {}, "has no column value: a table without raw keys and values cannot become"),
        ("*, key AS more", {"topics": ["others"]}, "the table has no rows of the topic 'others'"),
        ("key, value, '__consumer_offsets' AS topic, partition, offset", {}, "which Kafka's coordinators alone write"),
        ("key, value, topic, partition, 7L AS offset", {}, "offset 7 of orders-0 is in the table twice"),
        ("key, value, topic, partition, offset, 'x' AS timestamp", {}, "the column timestamp is string, not a timesta"),
        ("*", {"compression": "brotli"}, "compression.type"),
        ("*", {"topic_config": {"retention.ms": "soon"}}, "retention.ms"),
        ("*", {"target": "s3://bucket/log"}, "s3://bucket/log is no target: logs are written in a folder of a file"),
    ],
)
def test_what_cannot_be_imported_is_told_in_one_sentence_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, columns: str, options: dict[str, Any], sentence: str
) -> None:
    write_topic(tmp_path / "source", "orders", 1, batches=4)
    read(spark, tmp_path / "source").selectExpr(*columns.split(", ")).write.parquet(str(tmp_path / "table"))
    target = options.pop("target", tmp_path / "log")
    with pytest.raises(InvalidInput, match=sentence) as refused:
        import_table(spark, tmp_path / "table", target, **options)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "log").exists()
    assert not list(tmp_path.glob(".log.staging/*"))


def test_a_target_that_is_open_elsewhere_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path / "source", "orders", 1, batches=4)
    read(spark, tmp_path / "source").write.parquet(str(tmp_path / "table"))
    with DataDirectory.open(tmp_path / "log"), pytest.raises(DirectoryLocked):
        import_table(spark, tmp_path / "table", tmp_path / "log", lock_timeout=0.1)
    assert not list(tmp_path.glob(".log.staging/*"))


def test_the_command_tells_what_it_did_and_what_it_could_not_do(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_topic(tmp_path / "source", "orders", 2, batches=4)
    read(spark, tmp_path / "source").write.parquet(str(tmp_path / "table"))
    table, log = str(tmp_path / "table"), str(tmp_path / "log")
    settings = ["--config", "segment.bytes=1048576", "--config", "retention.ms=1000"]
    assert main(["import", table, log, *settings, "--json"]) == FINE
    told = json.loads(capsys.readouterr().out)
    assert told["partitions"] == {"orders-0": [0, 20], "orders-1": [0, 20]}
    assert (told["records"], told["created"]) == (40, ["orders"])
    with DataDirectory.open(log, read_only=True) as directory:
        assert directory.topics["orders"].config == {"retention.ms": "1000", "segment.bytes": "1048576"}
    assert main(["import", table, log]) == COULD_NOT_RUN
    assert capsys.readouterr().err.startswith("octavo: orders-0 in ")
    assert main(["import", table, str(tmp_path / "other"), "--config", "retention.ms"]) == COULD_NOT_RUN
    assert "--config takes NAME=VALUE, not 'retention.ms'" in capsys.readouterr().err
    assert main(["import", table, str(tmp_path / "other"), "--topic", "orders"]) == FINE
    said = capsys.readouterr().out
    assert "40 records of 2 partitions" in said
    assert "orders-1: offsets 0 to 19" in said
    assert f"octavo handover {tmp_path / 'other'}" in said

"""Spark and the broker: its own Kafka connector over the wire, ours on the directory, and both while clients write."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from octavo.server.serving import Server, serve
from tests.kafka.releases import KafkaUnavailable, do_without
from tests.selection import some
from tests.spark.broker import TIME_MS, wait, wait_for_checkpoint
from tests.spark.sessions import collect, connector_path
from tests.spark.test_connector import rows

pytestmark = pytest.mark.timeout(600)

PATIENCE_S: Final = 60
COUNT: Final = 600
PARTITIONS: Final = 3
CUT: Final = 25
CODECS: Final = ("none", "gzip", "snappy", "zstd")


Content = tuple[int, bytes, bytes, str]  # what becomes of a row, but for its offset and time, in an order that there is


def contents(frame: DataFrame) -> list[Content]:
    return sorted(
        (
            row.partition,
            b"null" if row.key is None else row.key,
            b"null" if row.value is None else row.value,
            repr(row.asDict().get("headers")),
        )
        for row in collect(frame)
    )


@pytest.fixture(scope="module")
def served(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        connector_path()
    except KafkaUnavailable as reason:
        do_without(reason)
    folder = tmp_path_factory.mktemp("served") / "data"
    with serve(folder, config={"num.partitions": str(PARTITIONS)}) as server:
        yield server


@pytest.fixture(scope="module")
def written(spark: SparkSession, served: Server) -> list[Content]:
    """The rows of the topic `written`, which the connector has written over the wire, without offsets."""
    admin = AdminClient({"bootstrap.servers": served.bootstrap_servers})
    settings = {"message.timestamp.type": "CreateTime"}
    for future in admin.create_topics([NewTopic("written", PARTITIONS, 1, config=settings)]).values():
        future.result(PATIENCE_S)
    frame = spark.range(COUNT).selectExpr(
        "CASE WHEN id % 5 = 0 THEN NULL ELSE CAST(concat('key ', id) AS BINARY) END AS key",
        "CASE WHEN id % 7 = 1 THEN NULL ELSE CAST(repeat('value', CAST(id % 40 AS INT)) AS BINARY) END AS value",
        "CASE WHEN id % 3 = 0 THEN array(named_struct('key', 'a', 'value', CAST(CAST(id AS STRING) AS BINARY)), "
        "named_struct('key', 'a', 'value', CAST('' AS BINARY))) END AS headers",
        f"CAST(id % {PARTITIONS} AS INT) AS partition",
        "'written' AS topic",
    )
    options = {"includeHeaders": "true", "kafka.compression.type": "zstd", "kafka.batch.size": "2000"}
    to_broker(frame, served, options)
    return contents(frame)


def to_broker(frame: DataFrame, server: Server, options: Mapping[str, str] | None = None) -> None:
    """Write by the connector, over the wire."""
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", server.bootstrap_servers)
    writer.options(**options or {}).save()


def both(spark: SparkSession, server: Server, options: Mapping[str, str]) -> tuple[DataFrame, DataFrame]:
    """What the connector is told over the wire, and what ours reads from the directory."""
    address = {"kafka.bootstrap.servers": server.bootstrap_servers}
    over_the_wire = spark.read.format("kafka").options(**address, **options).load()
    return over_the_wire, spark.read.format("octavo").options(**options).load(str(folder(server)))


def folder(server: Server) -> Path:
    return Path(server.directory.folders[0])


TOPIC: Final = {"subscribe": "written"}
OPTIONS: Final[dict[str, dict[str, str]]] = {
    "headers": {**TOPIC, "includeHeaders": "true"},
    "offsets": {
        "assign": '{"written":[0,2]}',
        "startingOffsets": json.dumps({"written": {"0": 10, "2": -2}}),
        "endingOffsets": json.dumps({"written": {"0": 100, "2": -1}}),
        "kafka.isolation.level": "read_committed",
    },
    "a time": {"subscribePattern": "wri.*", "startingTimestamp": str(TIME_MS), "endingTimestamp": "4000000000000"},
    "many small partitions": {**TOPIC, "minPartitions": "7", "maxRecordsPerPartition": "50"},
}


@pytest.mark.parametrize("options", some(OPTIONS.values()), ids=OPTIONS.keys())
def test_the_connector_reads_over_the_wire_what_ours_reads_from_the_directory(
    spark: SparkSession, served: Server, written: list[Content], options: dict[str, str]
) -> None:
    wait_for_checkpoint(folder(served))
    theirs, ours = both(spark, served, options)
    expected = rows(theirs)
    assert rows(ours) == expected
    assert expected


def test_what_the_connector_has_written_is_there(spark: SparkSession, served: Server, written: list[Content]) -> None:
    wait_for_checkpoint(folder(served))
    (_, ours) = both(spark, served, OPTIONS["headers"])
    assert contents(ours) == written


def test_a_stream_of_the_connector_goes_from_topic_to_topic(
    spark: SparkSession, served: Server, written: list[Content], tmp_path: Path
) -> None:
    address = {"kafka.bootstrap.servers": served.bootstrap_servers}
    read = spark.readStream.format("kafka").options(**address, **TOPIC, startingOffsets="earliest").load()
    copied = read.selectExpr("key", "value", "partition", "'copied' AS topic").writeStream.format("kafka")
    query = copied.options(**address, checkpointLocation=str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    wait_for_checkpoint(folder(served))
    theirs, ours = both(spark, served, {"subscribe": "copied"})
    expected = rows(theirs)
    assert rows(ours) == expected
    assert [row[:3] for row in contents(ours)] == sorted(row[:3] for row in written)


def test_offsets_that_were_deleted_fail_a_query_or_do_not_matter(spark: SparkSession, served: Server) -> None:
    produce(served, "cut", 100)
    admin = AdminClient({"bootstrap.servers": served.bootstrap_servers})
    for future in admin.delete_records([TopicPartition("cut", 0, CUT)]).values():
        assert future.result(PATIENCE_S).low_watermark == CUT
    wait_for_checkpoint(folder(served))
    gone = {"assign": '{"cut":[0]}', "startingOffsets": json.dumps({"cut": {"0": CUT - 5}})}
    for frame in both(spark, served, gone):
        with pytest.raises(Exception, match="failOnDataLoss"):
            frame.collect()
    theirs, ours = both(spark, served, {**gone, "failOnDataLoss": "false"})
    expected = rows(theirs)
    assert rows(ours) == expected
    assert [row.offset for row in expected] == list(range(CUT, 100))


def test_a_stream_on_the_directory_gets_what_consumers_get_while_clients_write(
    spark: SparkSession, served: Server, tmp_path: Path
) -> None:
    produce(served, "live", 1)  # so that there is a topic
    options = {"subscribe": "live", "startingOffsets": "earliest", "includeHeaders": "true"}
    frame = spark.readStream.format("octavo").options(**options).load(str(folder(served)))
    out = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = out.start(str(tmp_path / "out"))
    each = [
        threading.Thread(target=produce, args=(served, "live", 500, codec, number))
        for number, codec in enumerate(CODECS)
    ]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    expected = consume(served, "live")
    assert len(expected) == PARTITIONS + len(CODECS) * 500 * PARTITIONS

    def found() -> list[Any]:
        read = spark.read.schema(frame.schema).parquet(str(tmp_path / "out"))
        return sorted(
            (row.partition, row.offset, row.key, row.value, tuple((name, value) for name, value in row.headers or []))
            for row in collect(read)
        )

    # The broker goes on serving: all that it has acknowledged has to come by itself.
    wait(lambda: sum(each["numInputRows"] for each in query.recentProgress) >= len(expected), "rows are missing")
    query.stop()
    assert found() == expected


def produce(server: Server, topic: str, count: int, codec: str = "none", number: int = 0) -> None:
    """Produce so many records to each partition, and return when all are acknowledged."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "compression.type": codec, "linger.ms": 1})
    for turn in range(count):
        for partition in range(PARTITIONS):
            key, value = b"%d %d" % (number, turn), b"value " * (turn % 30)
            headers: list[tuple[str, bytes | str | None]] = [("codec", codec.encode())] * (turn % 3)
            while True:
                try:
                    producer.produce(
                        topic, value, key, partition, headers=headers, on_delivery=lambda error, _: errors.append(error)
                    )
                    break
                except BufferError:
                    producer.poll(1)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * count * PARTITIONS


def consume(server: Server, topic: str) -> list[Any]:
    """All that a consumer gets of a topic over the wire."""
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap_servers, "group.id": "none", "enable.auto.commit": False}
    )
    places = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
    left = sum(consumer.get_watermark_offsets(place, PATIENCE_S)[1] for place in places)
    consumer.assign(places)
    found = []
    while left:
        messages = consumer.consume(left, 1)
        left -= len(messages)
        for message in messages:
            assert message.error() is None
            headers = tuple(message.headers() or [])
            found.append((message.partition(), message.offset(), message.key(), message.value(), headers))
    consumer.close()
    return sorted(found)

"""The sink writes to topics of every kind in a directory of Apache Kafka, and Kafka goes on with them.

Kafka makes the topics and fills some. While it is stopped, Spark writes to all of them, and to new ones. Kafka starts
again, on the directory as it is, and Spark's connector reads everything back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from octavo.log import DataDirectory, Producer
from octavo.records import Codec, read_batches
from octavo.records.partition import partition_for_key
from tests.kafka.broker import Broker
from tests.kafka.client import OLD_RESOURCES
from tests.kafka.releases import KafkaUnavailable, do_without
from tests.selection import some
from tests.spark import sessions
from tests.spark.broker import SETTINGS, Topics, started, wait
from tests.spark.test_connector import last_line
from tests.spark.test_sink import SCHEMA, plain, read, write
from tests.unit.spark.topics import write_topic

pytestmark = [OLD_RESOURCES, pytest.mark.timeout(600)]

KINDS: Final[dict[str, dict[str, str]]] = {  # topics that Kafka makes
    "transactions": {},
    "compacted": {"cleanup_policy": "compact", "segment_ms": "100", "delete_retention_ms": "86400000"},
    "append-time": {"message_timestamp_type": "LogAppendTime"},
    "gzip": {"compression_type": "gzip"},
    "small": {"max_message_bytes": "2000"},
    "keys": {},
}
KEYS: Final = 7  # partitions of the topics with keys
NEW: Final = "new"  # a topic that the sink makes


@dataclass(frozen=True)
class Served:
    """A broker that runs again, after Spark has written to its directory."""

    topics: Topics
    given: list[Row]  # what Spark has written
    restored: list[Row]  # what it has restored, at its offsets

    def read(self, spark: SparkSession, topic: str, isolation: str = "read_committed") -> list[Row]:
        """What Spark's connector reads."""
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", self.topics.address)
        reader = reader.option("kafka.isolation.level", isolation).option("includeHeaders", "true")
        return sessions.collect(reader.option("subscribe", topic).load())

    def of(self, topic: str) -> list[Row]:
        """What Spark has written to a topic."""
        return [row for row in self.given if row.topic == topic]


@pytest.fixture(scope="module")
def served(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A directory that Kafka has made, Spark has written to, and Kafka serves again."""
    work = tmp_path_factory.mktemp("served")
    try:
        sessions.connector_path()
        with started(work / "data") as broker:
            topics = Topics(broker)
            hanging = fill(spark, topics)
            broker.stop()
        given = rows(spark)
        write(given, topics.folder, partitions=3, retention_ms="-1", compression="lz4")
        restored = restore(spark, work, topics.folder)
        with Broker(topics.folder, settings=SETTINGS) as broker:  # on other ports: Spark may have taken those
            broker.start()
            yield Served(Topics(broker), sessions.collect(given), restored)
            hanging.close(timeout=5)
            broker.stop()
    except KafkaUnavailable as reason:
        do_without(reason)


def fill(spark: SparkSession, topics: Topics) -> Any:
    """Make the topics. Returns a producer with an open transaction."""
    for name, settings in KINDS.items():
        topics.create(name, KEYS if name == "keys" else 1, **{"retention_ms": "-1"} | settings)
    producer = topics.producer()
    for number in range(20):
        producer.send("compacted", key=b"key %d" % number, value=b"of Kafka")
    producer.close()
    producer = topics.producer(transactional_id="turns")
    producer.init_transactions()
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.send("transactions", value=end.__name__.encode())
        producer.flush()
        end()
    producer.close()
    through_the_connector(keyed(spark), topics)
    hanging = topics.producer(transactional_id="hanging", transaction_timeout_ms=600_000)
    hanging.init_transactions()
    hanging.begin_transaction()
    hanging.send("transactions", value=b"not decided").get(30)
    return hanging


def through_the_connector(frame: DataFrame, topics: Topics) -> None:
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", topics.address)
    writer.mode("append").save()


def keyed(spark: SparkSession) -> DataFrame:
    """Keys of every length, all different."""
    return spark.range(400).selectExpr(
        "'keys' AS topic",
        "unhex(substr(repeat(sha2(CAST(id AS STRING), 256), 20), 1, 2 * CAST(id AS INT))) AS key",
        "CAST('' AS BINARY) AS value",
    )


def rows(spark: SparkSession) -> DataFrame:
    """Rows for all topics, with keys, headers, timestamps and tombstones; those of `compacted` come twice."""
    now = spark.sql("SELECT timestamp_millis(1700000000123) AS now").collect()[0].now
    made: list[tuple[Any, ...]] = []
    for topic in [NEW, *KINDS]:
        for number in range(200):
            key = b"key %d" % (number % 40)
            value = None if number % 7 == 0 else b"%s %d " % (topic.encode(), number) * 20
            headers = [Row(key="n", value=b"%d" % number), Row(key="", value=None)] if number % 3 == 0 else None
            made.append((topic, None, key, value, headers, now, number))
    return spark.createDataFrame(made, SCHEMA).coalesce(1)


def restore(spark: SparkSession, work: Path, folder: Path) -> list[Row]:
    """Restore a topic that was compacted, and so has gaps. Returns its rows as they were."""
    write_topic(work / "source", "restored", 2, batches=20)
    with DataDirectory.open(work / "source") as directory:
        directory.set_config("restored", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
        for log in directory.logs:
            log.roll()
            log.compact()
        with Producer(directory, {"transactional.id": "turns"}) as producer:
            producer.init_transactions()
            for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
                producer.begin_transaction()
                for _ in range(2):
                    producer.send("restored", end.__name__.encode(), key=b"of a transaction", partition=1)
                producer.flush()  # what is aborted should be in the log
                end()
    source = spark.read.format("octavo").option("subscribe", "restored").option("includeHeaders", "true")
    source = source.option("includeBatchInfo", "true").option("includeControlRecords", "true")
    write(source.load(str(work / "source")), folder, restore="true", partitions=2, retention_ms="-1")
    return read(spark, work / "source", subscribe="restored", **{"isolation.level": "read_committed"})


@pytest.mark.parametrize("topic", some([NEW, "gzip", "small"]))
def test_the_connector_reads_what_was_written(spark: SparkSession, served: Served, topic: str) -> None:
    found = served.read(spark, topic)
    assert plain(found) == plain(served.of(topic))
    assert {(row.partition, row.offset, row.value) for row in found} == {
        (row.partition, row.offset, row.value)
        for row in read(spark, served.topics.folder, subscribe=topic, end="logEnd")
    }


def test_kafka_has_nothing_to_mend(served: Served) -> None:
    assert served.topics.broker.troubles == []


def test_a_topic_has_its_own_compression_and_size_of_batches(served: Served) -> None:
    with DataDirectory.open(served.topics.folder, read_only=True) as directory:
        batches = {
            topic: list(read_batches(directory.log(topic, 0).read(0, 10 << 20).records)) for topic in (*KINDS, NEW)
        }
    assert {batch.codec for batch in batches["gzip"]} == {Codec.GZIP}
    assert {batch.codec for batch in batches[NEW]} == {Codec.LZ4}
    assert len(batches[NEW]) == 1
    assert max(batch.size for batch in batches["small"]) <= 2000


def test_a_topic_with_append_time_has_the_time_of_the_commit(spark: SparkSession, served: Served) -> None:
    found = served.read(spark, "append-time")
    assert [row.value for row in sorted(found, key=lambda row: int(row.offset))] == [
        row.value for row in served.of("append-time")
    ]
    [time] = {(row.timestamp, row.timestampType) for row in found}
    assert time[0] > served.given[0].timestamp
    assert time[1] == 1


def test_committed_data_end_at_a_transaction_that_is_not_decided(spark: SparkSession, served: Served) -> None:
    written = Counter(row.value for row in served.of("transactions"))
    undecided = {"read_committed": Counter(), "read_uncommitted": written}
    others = Counter([b"commit_transaction"])
    all_others = others + Counter([b"abort_transaction", b"not decided"])
    for isolation, expected in undecided.items():
        there = Counter(row.value for row in served.read(spark, "transactions", isolation))
        assert there == expected + (others if isolation == "read_committed" else all_others)
    again = served.topics.producer(transactional_id="hanging")
    again.init_transactions()  # which aborts it
    again.close()
    assert Counter(row.value for row in served.read(spark, "transactions")) == written + others


def test_partitions_are_those_of_the_java_producer(spark: SparkSession, served: Served) -> None:
    theirs = {bytes(row.key): row.partition for row in served.read(spark, "keys") if row.value == b""}
    assert len(theirs) == 400
    assert set(theirs.values()) == set(range(KEYS))
    folder = served.topics.folder.parent / "keys"
    write(keyed(spark), folder, partitions=KEYS)
    assert {bytes(row.key): row.partition for row in read(spark, folder)} == theirs
    for row in served.read(spark, "keys"):
        assert row.partition == theirs.get(bytes(row.key), partition_for_key(row.key, KEYS))


def test_kafkas_cleaner_keeps_the_last_of_each_key(spark: SparkSession, served: Served) -> None:
    topics = served.topics
    written = served.of("compacted")
    producer = topics.producer()
    producer.send("compacted", key=b"last", value=b"of Kafka").get(30)
    producer.close()

    def cleaned() -> bool:
        checkpoint = topics.folder / "cleaner-offset-checkpoint"
        lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
        return any(line.startswith("compacted 0 ") and int(line.split()[2]) >= 20 + len(written) for line in lines)

    wait(cleaned, "the cleaner has not been there")
    found = served.read(spark, "compacted")
    assert {row.key: row.value for row in found} == {row.key: row.value for row in written} | {b"last": b"of Kafka"}
    assert len(found) == 41
    assert any(row.value is None for row in found)


def test_what_was_restored_is_at_its_offsets(spark: SparkSession, served: Served) -> None:
    found = served.read(spark, "restored")
    assert sorted(map(place, found)) == sorted(map(place, served.restored))
    assert plain(found) == plain(served.restored)
    assert not set(range(100)) <= {row.offset for row in found}
    assert Counter(row.value for row in found)[b"commit_transaction"] == 4
    assert len(served.read(spark, "restored", "read_uncommitted")) == len(found) + 2


def place(row: Row) -> tuple[Any, ...]:
    return row.partition, row.offset, row.timestamp, row.timestampType


def test_the_directory_of_a_broker_that_runs_is_refused(spark: SparkSession, served: Served) -> None:
    frame = spark.range(1).selectExpr("'a' AS value")
    with pytest.raises(PySparkException) as refused:
        write(frame, served.topics.folder, topic="gzip")
    sentence = 'has it open: stop it first or, if it is a broker, write to its topics with format("kafka")'
    assert last_line(refused.value).endswith(sentence)

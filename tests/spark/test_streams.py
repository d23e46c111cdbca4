"""Streams: the connector and ours take the same rows in the same triggers, and a live topic is followed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.kafka.client import OLD_RESOURCES
from tests.selection import some
from tests.spark.broker import CUT, TIME_MS, Topics, wait
from tests.spark.sessions import collect
from tests.spark.test_connector import EACH, PLAIN, rows

pytestmark = [OLD_RESOURCES, pytest.mark.timeout(600)]


def load(spark: SparkSession, kind: str, topics: Topics, options: Mapping[str, str]) -> DataFrame:
    """A stream by the connector, or by ours."""
    reader = spark.readStream.format(kind).options(**options)
    if kind == "kafka":
        return reader.option("kafka.bootstrap.servers", topics.address).load()
    return reader.load(str(topics.folder))


def start(frame: DataFrame, folder: Path, *, only_now: bool = False) -> Any:
    """A query that keeps all rows in a folder."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return (writer.trigger(availableNow=True) if only_now else writer).start(str(folder / "out"))


def ends(folder: Path) -> list[Any]:
    """The offsets at which each trigger of a query has ended."""
    paths = [path for path in (folder / "checkpoint" / "offsets").iterdir() if path.name.isdigit()]
    return [json.loads(path.read_text().splitlines()[2]) for path in sorted(paths, key=lambda path: int(path.name))]


def stream(spark: SparkSession, kind: str, topics: Topics, folder: Path, options: Mapping[str, str]) -> tuple[Any, Any]:
    """Run a query over what there is, in as many triggers as it takes; its rows, and where its triggers end."""
    frame = load(spark, kind, topics, options)
    start(frame, folder, only_now=True).awaitTermination()
    return rows(spark.read.schema(frame.schema).parquet(str(folder / "out"))), ends(folder)


EARLIEST = {"startingOffsets": "earliest"}

STREAMS: dict[str, dict[str, str]] = {
    "limited": {**PLAIN, **EARLIEST, "maxOffsetsPerTrigger": "1000", "includeHeaders": "true"},
    "committed": {"subscribe": "transactions", **EARLIEST, "kafka.isolation.level": "read_committed"},
    "uncommitted": {"subscribe": "transactions", **EARLIEST},
    "pattern": {"subscribePattern": "comp|codec", **EARLIEST},
    "assigned": {"assign": '{"plain":[0,2],"codecs":[0]}', **EARLIEST, "minPartitions": "5"},
    "offsets": {**PLAIN, "startingOffsets": json.dumps({"plain": EACH}), "maxRecordsPerPartition": "300"},
    "time": {**PLAIN, "startingTimestamp": str(TIME_MS + 20_001), "minOffsetsPerTrigger": "100"},
    "times": {**PLAIN, "startingOffsetsByTimestamp": json.dumps({"plain": dict.fromkeys(EACH, TIME_MS + 29_000)})},
    "a time too late": {
        **PLAIN,
        "startingTimestamp": str(TIME_MS * 2),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "lost, and it does not matter": {
        "subscribe": "cut",
        "startingOffsets": json.dumps({"cut": {"0": CUT - 5}}),
        "failOnDataLoss": "false",
    },
    "latest": PLAIN,
}


def parameters() -> Iterator[Any]:
    for name, options in STREAMS.items():
        limited = any(option.endswith("PerTrigger") for option in options)
        yield pytest.param(options, id=name, marks=pytest.mark.since_spark("4.2") if limited else ())


@pytest.mark.parametrize(
    "options", some(parameters(), where=lambda case: case.id in {"limited", "committed", "pattern", "time"})
)
def test_streams_agree_row_by_row_and_trigger_by_trigger(
    spark: SparkSession, topics: Topics, tmp_path: Path, options: dict[str, str]
) -> None:
    theirs = stream(spark, "kafka", topics, tmp_path / "theirs", options)
    ours = stream(spark, "octavo", topics, tmp_path / "ours", options)
    assert ours[1] == theirs[1]
    assert ours[0] == theirs[0]
    assert ours[0] or options.get("startingOffsets") != "earliest"


@pytest.mark.exhaustive
@pytest.mark.since_spark("4.2")
def test_both_wait_for_as_many_offsets_as_are_asked_for(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topics.create("awaited", 1, retention_ms="-1")
    producer = topics.producer(linger_ms=60_000)  # so that what is sent comes at once

    def send(count: int) -> None:
        for _ in range(count):
            producer.send("awaited", value=b"x")
        producer.flush()
        topics.wait_for_checkpoint()

    send(10)
    options = {"subscribe": "awaited", **EARLIEST, "minOffsetsPerTrigger": "100", "maxTriggerDelay": "1h"}
    kinds = ("kafka", "octavo")
    queries = {kind: start(load(spark, kind, topics, options), tmp_path / kind) for kind in kinds}
    try:
        for count in (0, 50, 60):
            send(count)
            for query in queries.values():
                query.processAllAvailable()
    finally:
        for query in queries.values():
            query.stop()
        producer.close()
    assert ends(tmp_path / "octavo") == ends(tmp_path / "kafka") == [{"awaited": {"0": 10}}, {"awaited": {"0": 120}}]


def test_a_live_topic_is_tailed_over_restarts(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Segments roll while the query runs, and a partition comes; it is stopped, and goes on from its checkpoint."""
    topics.create("live", 1, segment_bytes=str(1 << 20), retention_ms="-1")
    producer = topics.producer(batch_size=20_000)
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for number in range(sent, sent + count):
            producer.send("live", key=b"%d" % number, value=bytes(1000), partition=0)
        producer.flush()
        sent += count

    options = {"subscribe": "live", **EARLIEST, "end": "logEnd", "columns": "partition,offset,key"}
    frame = load(spark, "octavo", topics, options)
    for turn in range(2):
        query = start(frame, tmp_path)
        for _ in range(3):
            send(500)
            query.processAllAvailable()
        if turn == 0:
            topics.add_partitions("live", 2)
            with closing(topics.producer()) as new:
                new.send("live", key=b"new", partition=1).get(30)
            query.processAllAvailable()
        query.stop()
    send(100)
    start(frame, tmp_path, only_now=True).awaitTermination()
    producer.close()
    assert len(list((topics.folder / "live-0").glob("*.log"))) > 2
    read = spark.read.parquet(str(tmp_path / "out")).orderBy("partition", "offset").collect()
    assert [row.offset for row in read] == [*range(sent), 0]
    assert [row.key for row in read] == [*(b"%d" % number for number in range(sent)), b"new"]


@pytest.mark.exhaustive
def test_a_topic_is_followed_while_kafka_compacts_it(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """What is read is the log at some time or other: no offset twice, and the last value of every key."""
    topics.create("changes", 1, cleanup_policy="compact", segment_ms="100", delete_retention_ms="86400000")
    producer = topics.producer(transactional_id="changes", batch_size=400)
    producer.init_transactions()
    options = {"subscribe": "changes", **EARLIEST, "end": "logEnd", "kafka.isolation.level": "read_committed"}
    frame = load(spark, "octavo", topics, options)
    query = start(frame, tmp_path)
    last = {}
    for turn in range(12):
        producer.begin_transaction()
        for number in range(40):
            key, value = b"%d" % (number % 13), b"%d %d" % (turn, number)
            producer.send("changes", key=key, value=value)
            if turn % 3:
                last[key] = value
        producer.flush()
        if turn % 3:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
        query.processAllAvailable()
    producer.close()
    cleaned = topics.folder / "cleaner-offset-checkpoint"
    wait(lambda: "changes 0 " in cleaned.read_text(), "the cleaner has not been there")
    query.processAllAvailable()
    query.stop()
    read = collect(spark.read.parquet(str(tmp_path / "out")).orderBy("offset"))
    assert len({row.offset for row in read}) == len(read)
    assert {row.key: row.value for row in read} == last
    assert not [row for row in read if int(row.value.split()[0]) % 3 == 0], "aborted"


@pytest.mark.exhaustive
def test_a_stream_over_what_kafka_deletes_fails_or_goes_on(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topics.create("passing", 1, segment_bytes=str(1 << 20), retention_ms="-1")
    producer = topics.producer(batch_size=20_000)

    def send(count: int) -> None:
        for _ in range(count):
            producer.send("passing", value=bytes(1000))
        producer.flush()

    send(100)
    options = {"subscribe": "passing", **EARLIEST, "end": "logEnd", "columns": "offset"}
    strict = load(spark, "octavo", topics, options)
    lenient = load(spark, "octavo", topics, {**options, "failOnDataLoss": "false"})
    for name, frame in (("strict", strict), ("lenient", lenient)):
        start(frame, tmp_path / name, only_now=True).awaitTermination()
    send(4000)
    producer.close()
    first = topics.keep("passing", 1000)
    assert first > 100
    with pytest.raises(Exception, match=f"offsets 100 to {first - 1} of passing-0 are not in the log, or no longer"):
        start(strict, tmp_path / "strict", only_now=True).awaitTermination()
    start(lenient, tmp_path / "lenient", only_now=True).awaitTermination()
    read = spark.read.parquet(str(tmp_path / "lenient" / "out")).orderBy("offset").collect()
    assert [row.offset for row in read] == [*range(100), *range(first, 4100)]

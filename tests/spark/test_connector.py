"""Spark's own Kafka connector reads the topics through the broker, ours reads its directory: the same comes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.kafka.client import OLD_RESOURCES
from tests.spark.broker import TIME_MS, Topics

pytestmark = [OLD_RESOURCES, pytest.mark.timeout(600)]


def both(spark: SparkSession, topics: Topics, options: Mapping[str, str]) -> tuple[DataFrame, DataFrame]:
    """The connector's answer, and ours."""
    theirs = spark.read.format("kafka").option("kafka.bootstrap.servers", topics.address).options(**options).load()
    ours = spark.read.format("octavo").options(**options).load(str(topics.folder))
    return theirs, ours


def rows(frame: DataFrame) -> list[Any]:
    """All rows, in the order of the log."""
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))


PLAIN = {"subscribe": "plain"}
EACH = {"0": 10, "1": 250, "2": 0}

OPTIONS: dict[str, dict[str, str]] = {
    "headers": {**PLAIN, "includeHeaders": "true"},
    "several topics": {"subscribe": "plain, codecs,compacted"},
    "a pattern": {"subscribePattern": "(pla|cod).*"},
    "assigned": {"assign": '{"plain":[0,2],"codecs":[0]}'},
    "offsets": {
        **PLAIN,
        "startingOffsets": json.dumps({"plain": EACH}),
        "endingOffsets": json.dumps({"plain": {"0": 900, "1": -1, "2": 1}}),
    },
    "earliest by number": {**PLAIN, "startingOffsets": json.dumps({"plain": {"0": -2, "1": -2, "2": 7}})},
    "a time": {**PLAIN, "startingTimestamp": str(TIME_MS + 10_001), "endingTimestamp": str(TIME_MS + 20_000)},
    "times": {
        **PLAIN,
        "startingOffsetsByTimestamp": json.dumps({"plain": dict.fromkeys(EACH, TIME_MS + 5000)}),
        "endingOffsetsByTimestamp": json.dumps({"plain": dict.fromkeys(EACH, TIME_MS + 9990)}),
    },
    "a time too late": {
        **PLAIN,
        "startingTimestamp": str(TIME_MS * 2),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "committed": {"subscribe": "transactions", "kafka.isolation.level": "read_committed"},
    "uncommitted": {"subscribe": "transactions", "kafka.isolation.level": "read_uncommitted"},
    "compacted": {"subscribe": "compacted", "includeHeaders": "true"},
    "many partitions": {**PLAIN, "minPartitions": "11"},
    "small partitions": {**PLAIN, "maxRecordsPerPartition": "170"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_batch_queries_agree(spark: SparkSession, topics: Topics, options: dict[str, str]) -> None:
    theirs, ours = both(spark, topics, options)
    assert ours.schema == theirs.schema
    expected = rows(theirs)
    assert rows(ours) == expected
    assert len(expected) > 0 or options.get("startingOffsetsByTimestampStrategy")
    if "minPartitions" in options:
        assert ours.rdd.getNumPartitions() >= 11
    if "maxRecordsPerPartition" in options:
        assert max(ours.rdd.glom().map(len).collect()) <= 170


WRONG: list[dict[str, str]] = [
    {"subscribe": "plain", "assign": "{}"},
    {"assign": "x"},
    {"assign": '{"plain":0}'},
    {"subscribe": " "},
    {"subscribe": "plain", "startingOffsets": "foo"},
    {"subscribe": "plain", "startingTimestamp": "x"},
    {"subscribe": "plain", "minPartitions": "0"},
    {"subscribe": "plain", "startingOffsets": "latest"},
    {"subscribe": "plain", "endingOffsets": "earliest"},
    {"subscribe": "plain", "endingOffsets": '{"plain":{"0":-2,"1":5,"2":5}}'},
    {"subscribe": "plain", "startingTimestamp": str(TIME_MS * 2)},
]


@pytest.mark.parametrize("options", WRONG, ids=[next(reversed(options.values())) for options in WRONG])
def test_what_the_connector_refuses_is_refused_in_its_words(
    spark: SparkSession, topics: Topics, options: dict[str, str]
) -> None:
    through_the_broker = {"kafka.bootstrap.servers": topics.address, **options}
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - several kinds
        spark.read.format("kafka").options(**through_the_broker).load().count()
    with pytest.raises(Exception) as ours:  # noqa: PT011
        spark.read.format("octavo").options(**options).load(str(topics.folder)).count()
    sentence = str(theirs.value).splitlines()[0]
    partition = sentence.partition("topic-partition ")[2].partition(" ")[0]  # any of them may be the first
    assert last_line(ours.value).replace("plain-0", partition or "plain-0").endswith(sentence)


def last_line(error: BaseException) -> str:
    """What a person sees last of an error of a Python data source."""
    text = str(error).partition("\n\nJVM stacktrace")[0]
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-2] if lines[-1].startswith(" SQLSTATE: ") else lines[-1]  # which Spark adds to all that it raises


# ------------------------------------------------------------------------------------------------------------- streams


def stream(spark: SparkSession, kind: str, topics: Topics, folder: Path, options: Mapping[str, str]) -> tuple[Any, Any]:
    """Run a query over what there is, in as many triggers as it takes; its rows, and the offsets of its triggers."""
    reader = spark.readStream.format(kind).options(**options)
    if kind == "kafka":
        reader = reader.option("kafka.bootstrap.servers", topics.address)
    frame = reader.load() if kind == "kafka" else reader.load(str(topics.folder))
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()
    offsets = [
        json.loads(path.read_text().splitlines()[2])
        for path in sorted((folder / "checkpoint" / "offsets").iterdir(), key=lambda path: path.name)
        if path.name.isdigit()
    ]
    return rows(spark.read.schema(frame.schema).parquet(str(folder / "out"))), offsets


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "plain", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "1000", "includeHeaders": "true"},
        {"subscribe": "transactions", "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"},
        {"subscribePattern": "comp.*|codecs", "startingOffsets": "earliest"},
    ],
    ids=["limited", "committed", "pattern"],
)
def test_streams_agree_row_by_row_and_trigger_by_trigger(
    spark: SparkSession, topics: Topics, tmp_path: Path, options: dict[str, str]
) -> None:
    theirs = stream(spark, "kafka", topics, tmp_path / "theirs", options)
    ours = stream(spark, "octavo", topics, tmp_path / "ours", options)
    assert ours[1] == theirs[1]
    assert ours[0] == theirs[0]
    assert ours[0]


def test_a_live_topic_is_tailed_over_restarts(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Segments roll and partitions come while the query runs; it is stopped, and goes on from its checkpoint."""
    topics.create("live", 1, segment_bytes=str(1 << 20), retention_ms="-1")
    producer = topics.producer(batch_size=20_000)
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for number in range(sent, sent + count):
            producer.send("live", key=b"%d" % number, value=bytes(1000))
        producer.flush()
        sent += count

    def start(only_now: bool) -> Any:
        options = {"subscribe": "live", "startingOffsets": "earliest", "end": "logEnd", "columns": "offset,key"}
        frame = spark.readStream.format("octavo").options(**options).load(str(topics.folder))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        return (writer.trigger(availableNow=True) if only_now else writer).start(str(tmp_path / "out"))

    for _ in range(2):
        query = start(only_now=False)
        for _ in range(3):
            send(500)
            query.processAllAvailable()
        query.stop()
    send(100)
    start(only_now=True).awaitTermination()
    producer.close()
    assert len(list((topics.folder / "live-0").glob("*.log"))) > 2
    read = spark.read.parquet(str(tmp_path / "out")).orderBy("offset").collect()
    assert [row.offset for row in read] == list(range(sent))
    assert [row.key for row in read] == [b"%d" % number for number in range(sent)]

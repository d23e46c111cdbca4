"""Spark's own Kafka connector reads the topics through the broker, ours reads its directory: the same comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.kafka.client import OLD_RESOURCES
from tests.selection import some
from tests.spark.broker import CUT, TIME_MS, Topics

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
    "part of a name": {"subscribePattern": "od"},
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
    "many small partitions": {**PLAIN, "minPartitions": "11", "maxRecordsPerPartition": "170"},
    "the broker's times": {"subscribe": "cut"},
    "lost, and it does not matter": {
        "subscribe": "cut",
        "startingOffsets": json.dumps({"cut": {"0": CUT - 5}}),
        "failOnDataLoss": "false",
    },
    "the ends by their names as times": {
        **PLAIN,
        "startingOffsetsByTimestamp": json.dumps({"plain": dict.fromkeys(EACH, -2)}),
        "endingOffsetsByTimestamp": json.dumps({"plain": dict.fromkeys(EACH, -1)}),
    },
}


@pytest.mark.parametrize("options", some(OPTIONS.values(), 10), ids=OPTIONS.keys())
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
    {"subscribe": "plain", "startingOffsets": '{"plain":{"0":0}}'},
    {"subscribe": "plain", "startingOffsetsByTimestamp": '{"plain":{"0":0}}'},
]


@pytest.mark.parametrize("options", some(WRONG, 5), ids=[next(reversed(options.values())) for options in WRONG])
def test_what_the_connector_refuses_is_refused_in_its_words(
    spark: SparkSession, topics: Topics, options: dict[str, str]
) -> None:
    through_the_broker = {"kafka.bootstrap.servers": topics.address, **options}
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - several kinds
        spark.read.format("kafka").options(**through_the_broker).load().count()
    with pytest.raises(Exception) as ours:  # noqa: PT011
        spark.read.format("octavo").options(**options).load(str(topics.folder)).count()
    sentence = what_it_says(theirs.value)
    partition = sentence.partition("topic-partition ")[2].partition(" ")[0]  # any of them may be the first
    assert sentence in last_line(ours.value).replace("plain-0", partition or "plain-0")


def what_it_says(error: BaseException) -> str:
    """The connector's sentence, in one line, without Scala's sets and the name that Spark has for such errors."""
    raised = getattr(error, "java_exception", None)
    text = str(error if raised is None else raised.getMessage()).partition("\n\nJVM stacktrace")[0]
    text = re.sub(r"Set\(([^)]*)\)", r"\1", text)
    return " ".join(text.partition("] ")[2 if text.startswith("[") else 0].split())


def last_line(error: BaseException) -> str:
    """What a person sees last of an error of a Python data source."""
    text = str(error).partition("\n\nJVM stacktrace")[0]
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-2] if lines[-1].startswith(" SQLSTATE: ") else lines[-1]  # which Spark adds to all that it raises


def test_offsets_that_are_gone_fail_a_query(spark: SparkSession, topics: Topics) -> None:
    gone = {"subscribe": "cut", "startingOffsets": json.dumps({"cut": {"0": CUT - 5}})}
    for frame in both(spark, topics, gone):
        with pytest.raises(Exception, match="failOnDataLoss"):
            frame.collect()

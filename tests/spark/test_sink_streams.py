"""Streams write logs: each row once, whatever is repeated; and what is wrong is told by the query."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from octavo.log import CommitIdentity, DataDirectory, StagingArea
from octavo.log.staging.journal import journal_path, read_journal
from octavo.log.storage import DISK
from tests.spark.test_sink import read, write
from tests.unit.spark.topics import write_topic

pytestmark = pytest.mark.timeout(600)


def copying(spark: SparkSession, folder: Path, checkpoint: str, **options: str) -> DataStreamWriter:
    """A stream that copies the directory `source`, as far as it goes."""
    reader = spark.readStream.format("octavo").option("startingOffsets", "earliest")
    stream = reader.option("maxOffsetsPerTrigger", options.pop("most", "60")).load(str(folder / "source"))
    writer = stream.selectExpr("key", "value", "timestamp").writeStream.format("octavo").options(**options)
    writer = writer.option("topic", "copy").option("checkpointLocation", str(folder / checkpoint))
    return writer.trigger(availableNow=True)


@pytest.mark.since_spark("4.2")
def test_each_row_is_written_once_also_when_a_micro_batch_is_repeated(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path / "source", "orders", 2, batches=20)
    log = tmp_path / "log"

    def run(checkpoint: str = "work") -> None:
        copying(spark, tmp_path, checkpoint, partitions="3").start(str(log)).awaitTermination()

    run()
    given = Counter(row.value for row in read(spark, tmp_path / "source"))
    assert Counter(row.value for row in read(spark, log)) == given
    commits = tmp_path / "work" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    assert last >= 2
    for path in commits.glob(f"*{last}*"):
        path.unlink()  # as if the driver had died between our commit and its own
    run()
    assert Counter(row.value for row in read(spark, log)) == given
    assert not list(tmp_path.glob(".log.staging/*"))
    # Without its checkpoint, or with another one, a query is a new one: it begins anew, as with any sink.
    run("other")
    assert Counter(row.value for row in read(spark, log)) == given + given
    journal = read_journal(DISK, journal_path([log]))
    assert [(each.version, len(each.name)) for each in journal.applications] == [(last, 36), (last, 36)]


@pytest.mark.parametrize("way", [pytest.param("sink", marks=pytest.mark.since_spark("4.1")), "foreachBatch"])
def test_micro_batches_of_another_source_are_written_once(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """By the sink, or in the way that the refusal of an older Spark names."""
    frame = spark.range(90).selectExpr("CAST(id AS STRING) AS value")
    frame.repartition(3).write.parquet(str(tmp_path / "source"))
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", "1").parquet(str(tmp_path / "source"))
    log = tmp_path / "log"

    def append(frame: DataFrame, number: int) -> None:
        write(frame, log, topic="t", txnAppId="job", txnVersion=number)

    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "work")).trigger(availableNow=True)
    writer = writer.foreachBatch(append) if way == "foreachBatch" else writer.format("octavo").option("topic", "t")
    writer.start(None if way == "foreachBatch" else str(log)).awaitTermination()
    assert sorted(int(row.value) for row in read(spark, log)) == list(range(90))
    assert len(list((tmp_path / "work" / "commits").glob("[0-9]*"))) == 3


@pytest.mark.since_spark("4.1")
@pytest.mark.parametrize(
    ("mode", "options", "sentence"),
    [
        ("append", {}, "topic option required when no 'topic' attribute is present. Use the topic option for setting"),
        (
            "complete",
            {"topic": "t"},
            'records of a log are not replaced, only appended: write outputMode("append"), or use foreachBatch',
        ),
        (
            "append",
            {"topic": "t", "cleanup.policy": "compact"},
            "t-0: a record is refused: the topic is compacted, and the record has no key (INVALID_RECORD)",
        ),
    ],
)
def test_what_is_wrong_is_told_by_the_query(
    spark: SparkSession, tmp_path: Path, mode: str, options: dict[str, str], sentence: str
) -> None:
    write_topic(tmp_path / "source", "orders", 1, batches=1)
    stream = spark.readStream.format("octavo").option("startingOffsets", "earliest").load(str(tmp_path / "source"))
    if mode == "complete":
        stream = stream.groupBy("value").count()
    writer = stream.select("value").writeStream.format("octavo").outputMode(mode).options(**options)
    query = writer.option("checkpointLocation", str(tmp_path / "work")).start(str(tmp_path / "log"))
    with pytest.raises(PySparkException):
        query.awaitTermination(120)
    error = query.exception()
    assert error is not None
    told = str(error).partition("\n=== Streaming Query ===")[0].splitlines()
    if not any(sentence in line for line in told[-2:-1]):  # before Spark's SQLSTATE
        raise error
    assert not list(tmp_path.rglob("*.staged"))


@pytest.mark.since_spark("4.2")
def test_a_stream_in_update_mode_can_append_its_updates_by_foreach_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Spark refuses this mode for sinks in Python."""
    write_topic(tmp_path / "source", "orders", 1, batches=2)
    reader = spark.readStream.format("octavo").option("startingOffsets", "earliest")
    stream = reader.option("maxOffsetsPerTrigger", "5").load(str(tmp_path / "source"))
    counts = stream.groupBy("topic").count().selectExpr("topic AS key", "CAST(count AS STRING) AS value")

    def append(frame: DataFrame, number: int) -> None:
        for _ in range(2):  # as if it were repeated
            write(frame, tmp_path / "log", topic="counts", txnAppId="counts", txnVersion=number)

    writer = counts.writeStream.outputMode("update").foreachBatch(append)
    writer = writer.option("checkpointLocation", str(tmp_path / "work")).trigger(availableNow=True)
    writer.start().awaitTermination()
    found = sorted(read(spark, tmp_path / "log"), key=lambda row: int(row.offset))
    assert [(row.key, row.value) for row in found] == [(b"orders", b"5"), (b"orders", b"10")]


@pytest.mark.soak
def test_a_thousand_micro_batches_leave_as_many_segments_as_their_size_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_topic(tmp_path / "source", "orders", 1, batches=1000)
    config = {"internal.segment.bytes": "20000"}
    copying(spark, tmp_path, "work", most="5", **config).start(str(tmp_path / "log")).awaitTermination()
    with DataDirectory.open(tmp_path / "log") as directory:
        sizes = [segment.size for segment in directory.log("copy", 0).segments]
        assert directory.log("copy", 0).end_offset == 5000
    assert all(size > 18_000 for size in sizes[:-1])
    journal = journal_path([tmp_path / "log"])
    [application] = read_journal(DISK, journal).applications
    assert application.version == 999
    assert journal.stat().st_size < 100
    assert not list(StagingArea.of(tmp_path / "log", identity=CommitIdentity("a", 0)).folder.iterdir())

"""Several writers of one directory: they wait for one another, and what one leaves behind harms no other."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from octavo.log import DataDirectory
from tests.spark.dying import DyingSource
from tests.spark.programs.writes import Job, Work, of_batch, values, write

pytestmark = pytest.mark.timeout(600)

LONGEST_S = 120


def start(spark: SparkSession, folder: Path, number: int, **options: str) -> StreamingQuery:
    """Start a stream of forty rows, which begin with its number."""
    source = folder / f"source {number}"
    source.mkdir(exist_ok=True)
    for part in range(2):
        (source / f"{part}.txt").write_text("".join(f"{number} {row}\n" for row in range(part * 20, part * 20 + 20)))
    stream = spark.readStream.format("text").option("maxFilesPerTrigger", "1").load(str(source))
    writer = stream.writeStream.format("octavo").option("topic", "copy").options(**options)
    writer = writer.option("checkpointLocation", str(folder / f"checkpoint {number}"))
    return writer.trigger(availableNow=True).start(str(folder / "log"))


def rows_of(*numbers: int) -> Counter[str]:
    return Counter(f"{number} {row}" for number in numbers for row in range(40))


def test_two_queries_write_to_one_directory_at_the_same_time(spark: SparkSession, tmp_path: Path) -> None:
    queries = [start(spark, tmp_path, number) for number in range(2)]
    for query in queries:
        assert query.awaitTermination(LONGEST_S), "it waits for the other one"
    assert values(Work(tmp_path)) == rows_of(0, 1)


def test_a_query_that_waits_too_long_names_who_has_the_directory(spark: SparkSession, tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "log"):
        query = start(spark, tmp_path, 0, lockTimeout="100ms")
        with pytest.raises(PySparkException) as failed:
            query.awaitTermination(LONGEST_S)
    assert f"process {os.getpid()}" in str(failed.value)
    assert not list(tmp_path.glob(".log.staging/*"))
    assert start(spark, tmp_path, 0).awaitTermination(LONGEST_S)
    assert values(Work(tmp_path)) == rows_of(0)


def test_what_tasks_write_while_the_write_is_aborted_is_removed_by_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One task fails, which aborts the write. Another one has staged a part of its rows, and goes on."""
    spark.dataSource.register(DyingSource)
    work = Work(tmp_path)
    identity = {"txnAppId": "job", "txnVersion": "1"}
    staging = tmp_path / ".log.staging"
    with pytest.raises(PySparkException, match="the write fails"):
        write(spark, work, Job("a", identity), lambda frame: have_it_aborted(frame, staging))
    write(spark, work, Job("a", identity))
    assert values(work) == of_batch("a")
    assert not list(staging.iterdir())


def have_it_aborted(frame: DataFrame, staging: Path) -> DataFrame:
    """Have the second task stage more than it keeps in memory, and the first one fail then."""
    return frame.mapInArrow(_staging_or_failing(staging), frame.schema)


def _staging_or_failing(staging: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context: Any = TaskContext.get()
        deadline = time.monotonic() + LONGEST_S
        if context.partitionId() == 0:
            while not list(staging.glob("*")):
                assert time.monotonic() < deadline, "the other task has staged nothing"
                time.sleep(0.05)
            raise ValueError("the write fails")
        for batch in batches:
            yield batch
            more = {"value": ["v" * 1000] * 1000, "partition": [0] * 1000}
            while context.partitionId() == 1 and time.monotonic() < deadline:
                yield pa.RecordBatch.from_pydict(more, schema=batch.schema)

    return pass_on

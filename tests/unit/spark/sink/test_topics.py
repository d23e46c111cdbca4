"""What the tasks know of topics, and that they write batches which the topics take."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from octavo.errors import BadDirectory
from octavo.log import DataDirectory, ExpectedTopic, StagedWriter, StagingArea
from octavo.records import Codec, read_batches
from octavo.spark.sink.columns import SinkColumns
from octavo.spark.sink.options import SinkOptions, read_sink_options
from octavo.spark.sink.task_writer import TaskWriter
from octavo.spark.sink.topics import SinkTopics
from tests.unit.log.metadata.forging import add_metadata, registered_broker


def options(folder: Path, **given: str) -> SinkOptions:
    return read_sink_options({"path": str(folder), "topic": "t"} | {n.replace("_", "."): v for n, v in given.items()})


def test_topics_are_as_the_metadata_say_or_as_the_sink_would_create_them(tmp_path: Path) -> None:
    given = options(tmp_path / "log", partitions="5", max_message_bytes="3000")
    assert SinkTopics.read(given).of("t") == (5, 3000)
    with DataDirectory.open(tmp_path / "log") as directory:
        directory.create_topic("t", 3, {"max.message.bytes": "2000"})
        directory.create_topic("small", 2, {"internal.segment.bytes": "1500"})
    found = SinkTopics.read(given)
    assert (found.of("t"), found.of("small"), found.of("another")) == ((3, 2000), (2, 1500), (5, 3000))
    assert found.most_partitions == 3


def test_a_place_where_nothing_can_be_written_is_refused_before_any_task_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with DataDirectory.open(tmp_path / "log") as directory:
        directory.create_topic("t")
    for name, sentence in {
        "file": "this is a file, and not a data directory",
        "missing/log": "there is no such folder, and none to make it in",
        "log/t-0": "it is inside the data directory",
    }.items():
        with pytest.raises(BadDirectory, match=sentence):
            SinkTopics.read(options(tmp_path / name))


def test_a_directory_of_a_cluster_is_refused_before_any_task_runs(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "log") as directory:
        directory.create_topic("t")
    add_metadata(tmp_path / "log", registered_broker(1), registered_broker(2))
    with pytest.raises(BadDirectory) as refused:
        SinkTopics.read(options(tmp_path / "log"))
    assert str(refused.value) == (
        f'{tmp_path}/log: the cluster of node 1 has other brokers: 2. Write to topics of a cluster with format("kafka")'
    )


@pytest.mark.parametrize("codec", Codec)
def test_batches_are_as_small_as_a_topic_wants_them(tmp_path: Path, codec: Codec) -> None:
    """Also if the rows cannot be compressed, or are compressed anew."""
    given = options(tmp_path / "log", max_message_bytes="2000", compression=codec.name.lower())
    columns = SinkColumns({"value": 0})
    values = [os.urandom(size % 700) for size in range(1000)]
    for kept in ("producer", "uncompressed", "gzip"):
        area = StagingArea.of(given.path)
        task = TaskWriter(StagedWriter(area), columns, given, SinkTopics.read(given), first=0, now_ms=1)
        file = task.write([pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})])
        assert file is not None
        with DataDirectory.open(tmp_path / kept) as directory:
            topic = ExpectedTopic(1, {"max.message.bytes": "2000", "compression.type": kept})
            directory.commit_staged(area, [file], topics={"t": topic})
            data = directory.log("t", 0).read(0, 10 << 20).records
            batches = list(read_batches(data))
            assert [record.value for batch in batches for record in batch] == values
            assert max(batch.size for batch in batches) <= 2000
            assert len(data) / len(batches) > 1000

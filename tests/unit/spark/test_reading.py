"""A batch query: what comes out, however the log is cut into tasks."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql.datasource import InputPartition

from octavo.log import DataDirectory
from octavo.records import BatchBuilder, TimestampType
from octavo.spark.slices import Slice, Task
from tests.unit.spark.queries import offsets, plan, read, read_tasks
from tests.unit.spark.topics import TIME_MS, batch, write_segment, write_topic


def test_every_record_comes_once_with_the_columns_of_the_connector(tmp_path: Path) -> None:
    write_topic(tmp_path, partitions=2)
    rows = read(tmp_path, includeHeaders="true")
    assert list(rows[0]) == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    with DataDirectory.open(tmp_path, read_only=True) as data:
        for partition in (0, 1):
            records = list(data.log("events", partition).reader(0).records())
            mine = [row for row in rows if row["partition"] == partition]
            assert [row["offset"] for row in mine] == [record.offset for record in records] == list(range(500))
            for row, record in zip(mine, records, strict=True):
                assert (row["key"], row["value"], row["topic"]) == (record.key, record.value, "events")
                assert row["timestamp"].timestamp() * 1000 == record.timestamp_ms
                assert row["timestampType"] == TimestampType.CREATE_TIME
                headers = [{"key": key, "value": value} for key, value in record.headers]
                assert row["headers"] == (headers or None)


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A topic that nobody changes: 500 records in about 16 segments."""
    folder = tmp_path_factory.mktemp("topic")
    write_topic(folder)
    return folder


@pytest.mark.parametrize("seed", range(12))
def test_any_range_in_any_tasks_is_the_same(topic: Path, seed: int) -> None:
    random = Random(seed)
    first = random.randrange(500)
    end = random.randrange(first, 501)
    options = {
        "startingOffsets": json.dumps({"events": {"0": first}}),
        "endingOffsets": json.dumps({"events": {"0": end}}),
        random.choice(("minPartitions", "maxRecordsPerPartition", "maxBytesPerPartition")): str(
            random.choice((1, 3, 17, 60, 4096))
        ),
    }
    assert offsets(topic, **options) == list(range(first, end))


def test_a_large_segment_feeds_many_tasks_and_small_ones_share_one(topic: Path) -> None:
    assert len(list(topic.glob("events-0/*.log"))) > 10
    _, tasks, _ = plan(topic)
    assert len(tasks) == 1
    _, tasks, _ = plan(topic, maxBytesPerPartition="600")
    assert len(tasks) > len(list(topic.glob("events-0/*.log")))
    _, tasks, _ = plan(topic, minPartitions="7")
    assert len(tasks) >= 7
    reader, tasks, schema = plan(topic, maxRecordsPerPartition="33")
    assert all(read_tasks(reader, [task], schema).num_rows <= 33 for task in tasks)


def slices(tasks: Sequence[InputPartition]) -> list[Slice]:
    """What the tasks read."""
    return [piece for task in tasks if isinstance(task, Task) for piece in task.slices]


def test_a_large_segment_is_cut_evenly(tmp_path: Path) -> None:
    write_segment(tmp_path, batches=60)
    _, tasks, _ = plan(tmp_path, maxBytesPerPartition="3000")
    sizes = [piece.size for piece in slices(tasks) if piece.base_offset == 0]
    assert len(sizes) > 5
    assert max(sizes) - min(sizes) < 3 * 512  # entries of the index lie as far apart


def test_tasks_that_are_asked_for_share_the_bytes_too(tmp_path: Path) -> None:
    write_segment(tmp_path, batches=60)
    reader, tasks, schema = plan(tmp_path, minPartitions="50")
    size = sum(path.stat().st_size for path in tmp_path.glob("events-0/*.log"))
    assert len(tasks) >= 50
    assert sum(piece.size for piece in slices(tasks)) == size
    assert sorted(read_tasks(reader, tasks, schema).column("offset").to_pylist()) == list(range(305))


def test_a_task_leaves_no_file_open(topic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.spark.joined.SMALL", 0)  # each slice by itself
    monkeypatch.setattr("octavo.spark.joined._FEW_ROWS", 1)
    reader, (task,), _ = plan(topic)
    list(reader.read(task))
    assert open_segments(topic) == []
    rows = reader.read(task)
    assert isinstance(rows, Generator)
    next(rows)
    assert len(open_segments(topic)) == 1
    rows.close()
    assert open_segments(topic) == []


def open_segments(folder: Path) -> list[Path]:
    """The segments of a topic that this process has open."""
    paths = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [path for path in paths if path.is_relative_to(folder) and path.suffix == ".log"]


def test_segments_without_an_index_are_cut_as_well(tmp_path: Path) -> None:
    write_topic(tmp_path)
    for path in tmp_path.glob("events-0/*index"):
        path.unlink()
    _, tasks, _ = plan(tmp_path, maxBytesPerPartition="600")
    assert len(tasks) > len(list(tmp_path.glob("events-0/*.log")))
    assert offsets(tmp_path, maxBytesPerPartition="600") == list(range(500))


def test_an_index_that_lies_changes_nothing(tmp_path: Path) -> None:
    write_topic(tmp_path)
    random = Random(1)
    for path in tmp_path.glob("events-0/*.index"):
        path.write_bytes(random.randbytes(path.stat().st_size))
    for size in (700, 2000, 5000):
        assert offsets(tmp_path, maxBytesPerPartition=str(size)) == list(range(500))


def test_only_the_named_columns_come_in_their_order(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=3)
    assert list(read(tmp_path, columns="Offset, topic")[0].items()) == [("offset", 0), ("topic", "events")]
    assert read(tmp_path, columns="partition") == [{"partition": 0}] * 15
    row = read(tmp_path, columns="headers,file,position,compression,magic")[6]
    file = tmp_path / "events-0" / "00000000000000000000.log"
    assert row["headers"] == [{"key": "n", "value": b"6"}, {"key": "", "value": None}]
    assert (row["file"], row["compression"], row["magic"]) == (str(file), "gzip", 2)
    assert row["position"] == len(batch(0))


def test_batch_columns_tell_of_the_batch(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=1)
    row = read(tmp_path, includeBatchInfo="true")[0]
    assert {name: row[name] for name in list(row)[7:]} == {
        "leaderEpoch": 0,
        "producerId": -1,
        "producerEpoch": -1,
        "sequence": -1,
        "isTransactional": False,
        "isControl": False,
        "compression": "none",
        "magic": 2,
        "file": str(tmp_path / "events-0" / "00000000000000000000.log"),
        "position": 0,
    }


def test_times_are_turned_into_offsets(topic: Path) -> None:
    assert offsets(topic, startingTimestamp=str(TIME_MS + 1234)) == list(range(124, 500))
    assert offsets(topic, endingTimestamp=str(TIME_MS + 1230)) == list(range(123))
    assert offsets(topic, endingTimestamp=str(TIME_MS * 2)) == list(range(500))
    by_partition = json.dumps({"events": {"0": TIME_MS + 4000}})
    assert offsets(topic, startingOffsetsByTimestamp=by_partition) == list(range(400, 500))
    assert offsets(topic, endingOffsetsByTimestamp=by_partition) == list(range(400))
    later = {"startingTimestamp": str(TIME_MS * 2), "startingOffsetsByTimestampStrategy": "latest"}
    assert offsets(topic, **later) == []


def test_reading_ends_at_the_high_watermark_or_at_the_last_complete_batch(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=4)
    checkpoint = tmp_path / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\nevents 0 7\n")
    assert offsets(tmp_path) == list(range(7))
    assert offsets(tmp_path, end="logEnd") == list(range(20))
    with (tmp_path / "events-0" / "00000000000000000000.log").open("ab") as file:
        file.write(batch(20)[:-1])
    assert offsets(tmp_path, end="logEnd") == list(range(20))
    checkpoint.unlink()
    assert offsets(tmp_path) == list(range(20))


def test_a_batch_larger_than_the_window_comes_whole(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, {"max.message.bytes": str(64 << 20), "retention.ms": "-1"})
        log = data.log("events", 0)
        for number in range(3):
            builder = BatchBuilder()
            builder.append(b"k", bytes(9 << 20), timestamp_ms=TIME_MS)
            log.append(builder.build())
            log.append(batch(2 * number + 1, 1))
    rows = read(tmp_path)
    assert [row["offset"] for row in rows] == list(range(6))
    assert [len(row["value"]) for row in rows[::2]] == [9 << 20] * 3

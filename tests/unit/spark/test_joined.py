"""Small slices are read together, and give what they give one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from octavo.errors import CorruptFile
from octavo.log import DataDirectory, Producer
from octavo.log.storage import File
from octavo.records import ArrowDecoder, BatchBuilder
from octavo.records.layout import BATCH_HEADER
from octavo.spark import task_reader
from octavo.spark.joined import group_small, join_batches
from octavo.spark.slices import Slice, Task
from tests.unit.spark.queries import Rows, plan, read, read_tasks
from tests.unit.spark.topics import SMALL, write_topic

ALL = {"includeHeaders": "true", "includeBatchInfo": "true"}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the buffers that tasks decode."""
    sizes = []

    real = ArrowDecoder.read

    def count(self: ArrowDecoder, buffer: memoryview, **options: Any) -> Iterator[pa.RecordBatch]:
        sizes.append(options.get("end", len(buffer)) - options.get("start", 0))
        return real(self, buffer, **options)

    monkeypatch.setattr(ArrowDecoder, "read", count)
    return sizes


def read_one_by_one(path: Path, monkeypatch: pytest.MonkeyPatch, **options: str) -> Rows:
    with monkeypatch.context() as patch:
        patch.setattr("octavo.spark.joined.SMALL", 0)
        return read(path, **options)


def test_many_small_segments_are_decoded_at_once_and_come_in_few_batches(tmp_path: Path, decoded: list[int]) -> None:
    write_topic(tmp_path, "a", partitions=3, batches=50)
    write_topic(tmp_path, "b", partitions=2, batches=50)
    paths = list(tmp_path.glob("[ab]-*/*.log"))
    assert len(paths) > 20
    reader, (task,), _ = plan(tmp_path)
    batches = list(reader.read(task))
    assert [len(batch) for batch in batches] == [5 * 250]
    assert decoded == [sum(path.stat().st_size for path in paths)]


@pytest.mark.parametrize("options", [{}, {"columns": "topic,file"}, {"columns": "position,partition"}, ALL])
def test_rows_are_those_of_the_slices_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    write_topic(tmp_path, "a", partitions=2, batches=30)
    write_topic(tmp_path, "b", batches=30)
    for more in ({}, {"startingOffsets": '{"a":{"0":33,"1":7},"b":{"0":0}}'}, {"maxBytesPerPartition": "3000"}):
        assert read(tmp_path, **options, **more) == read_one_by_one(tmp_path, monkeypatch, **options, **more)


def test_committed_rows_are_those_of_the_slices_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoded: list[int]
) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("a", 2, SMALL)
        with Producer(data, {"transactional.id": "t"}) as producer:
            producer.init_transactions()
            for number in range(30):
                producer.begin_transaction()
                producer.send("a", b"%d" % number * 50, partition=0)
                producer.flush()
                (producer.abort_transaction if number % 3 else producer.commit_transaction)()
        for _ in range(30):
            builder = BatchBuilder()
            builder.append(b"k", b"v" * 200, timestamp_ms=1)
            data.log("a", 1).append(builder.build())
    opened: list[int] = []
    open_slice = task_reader._open_slice

    def count(piece: Slice) -> File:
        opened.append(piece.base_offset)
        return open_slice(piece)

    monkeypatch.setattr(task_reader, "_open_slice", count)
    rows = read(tmp_path, isolation_level="read_committed", **ALL)
    assert len(rows) == 40
    assert max(map(opened.count, opened)) <= 3  # of both partitions, and those with transactions once more
    assert max(decoded) > 2048  # of the partition without transactions
    assert rows == read_one_by_one(tmp_path, monkeypatch, isolation_level="read_committed", **ALL)
    assert len(read(tmp_path)) == 60
    assert len(read(tmp_path, includeControlRecords="true")) == 90


@pytest.mark.parametrize("field", ["base_offset", "length", "magic", "crc", "last_offset_delta", "records"])
def test_damage_in_one_slice_is_met_as_if_it_were_read_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    write_topic(tmp_path, batches=40)
    path = sorted(tmp_path.glob("events-0/*.log"))[2]
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[8:12], "big") + 12
    data[size + (70 if field == "records" else BATCH_HEADER.at(field))] ^= 1  # of its second batch
    path.write_bytes(data)
    assert read(tmp_path, onCorruption="skip", **ALL) == read_one_by_one(
        tmp_path, monkeypatch, onCorruption="skip", **ALL
    )
    assert outcome(lambda: read(tmp_path)) == outcome(lambda: read_one_by_one(tmp_path, monkeypatch))
    if field in ("crc", "records"):
        assert str(path) in str(outcome(lambda: read(tmp_path)))


def outcome(ask: Callable[[], Rows]) -> Rows | str:
    """The rows, or what is wrong with them."""
    try:
        return ask()
    except CorruptFile as error:
        return str(error)


def test_a_segment_that_is_replaced_is_read_from_what_took_its_place(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=40)
    planned = plan(tmp_path)
    path = sorted(tmp_path.glob("events-0/*.log"))[1]
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    assert read_tasks(*planned).column("offset").to_pylist() == list(range(200))


def test_large_slices_are_read_alone(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=40)
    _, (task,), _ = plan(tmp_path)
    assert isinstance(task, Task)
    small = task.slices
    large = small[0]._replace(end=1 << 20)
    groups = list(group_small([*small[:2], large, *small[2:]], 1 << 20))
    assert groups == [list(small[:2]), [large], list(small[2:])]
    assert [len(group) for group in group_small(small, small[0].size + small[1].size)][:1] == [2]


def test_small_batches_are_put_together_in_their_order() -> None:
    schema = pa.schema([pa.field("n", pa.int64())])

    def batch(first: int, count: int) -> pa.RecordBatch:
        return pa.record_batch([pa.array(range(first, first + count))], schema=schema)

    sizes = [10, 4000, 100, 5000, 3, 5000, 5000, 1, 2]
    firsts = [sum(sizes[:number]) for number in range(len(sizes))]
    joined = list(join_batches(map(batch, firsts, sizes)))
    assert [each.num_rows for each in joined] == [4110, 5000, 3, 5000, 5000, 3]
    assert pa.Table.from_batches(joined).column("n").to_pylist() == list(range(sum(sizes)))
    assert list(join_batches([])) == []

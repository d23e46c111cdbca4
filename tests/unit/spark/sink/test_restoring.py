"""Rows keep their offsets, also without the fields of their batches; transactions are restored with their ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from octavo.errors import InvalidInput
from octavo.log import DataDirectory
from octavo.spark.sink import task_writer
from octavo.spark.sink.options import read_sink_options
from octavo.spark.sink.writer import OctavoWriter, Staged

TYPES: dict[str, tuple[DataType, pa.DataType]] = {
    "partition": (IntegerType(), pa.int32()),
    "offset": (LongType(), pa.int64()),
    "key": (BinaryType(), pa.binary()),
    "value": (BinaryType(), pa.binary()),
    "position": (LongType(), pa.int64()),
    "producerId": (LongType(), pa.int64()),
    "producerEpoch": (ShortType(), pa.int16()),
    "sequence": (IntegerType(), pa.int32()),
    "isTransactional": (BooleanType(), pa.bool_()),
    "isControl": (BooleanType(), pa.bool_()),
}


Rows = dict[str, list[Any]]


def restore(folder: Path, *tasks: Rows) -> None:
    """Write rows as Spark would, each task after the other."""
    schema = StructType([StructField(name, TYPES[name][0]) for name in tasks[0]])
    options = read_sink_options({"path": str(folder), "topic": "t", "partitions": "2", "restore": "true"})
    writer = OctavoWriter(options, schema)
    messages: list[Any] = []
    for task in tasks:
        columns = {name: pa.array(values, TYPES[name][1]) for name, values in task.items()}
        messages.append(writer.write(iter([pa.RecordBatch.from_pydict(columns)])))
    assert all(isinstance(message, Staged) for message in messages)
    try:
        writer.commit(messages)
    except BaseException:
        writer.abort(messages)
        raise


def test_offsets_and_gaps_are_kept_without_the_fields_of_batches(tmp_path: Path) -> None:
    later: Rows = {"partition": [0, 1], "offset": [9, 1 << 40], "value": [b"9", b"late"]}
    restore(tmp_path / "log", later, {"partition": [0, 0, 0], "offset": [2, 3, 7], "value": [b"2", None, b"7"]})
    with DataDirectory.open(tmp_path / "log") as data:
        found = [[(record.offset, record.value) for record in log.reader().records()] for log in data.logs]
    assert found == [[(2, b"2"), (3, None), (7, b"7"), (9, b"9")], [(1 << 40, b"late")]]


def test_offsets_that_are_there_are_refused(tmp_path: Path) -> None:
    rows: Rows = {"partition": [0], "offset": [5], "value": [b"5"]}
    restore(tmp_path / "log", rows)
    with pytest.raises(Exception, match="its offset 5 is below 6, the next one"):
        restore(tmp_path / "log", rows)
    assert not list(tmp_path.rglob("*.staged"))


def test_rows_that_are_not_in_the_order_of_their_offsets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="offset"):
        restore(tmp_path / "log", {"partition": [0, 0], "offset": [5, 4], "value": [b"5", b"4"]})
    assert not list(tmp_path.rglob("*.staged"))


def test_transactions_without_their_ends_are_refused(tmp_path: Path) -> None:
    producer: Rows = {"producerId": [7], "producerEpoch": [0], "sequence": [0], "isTransactional": [True]}
    rows: Rows = {"partition": [0], "offset": [5], "value": [b"5"], **producer}
    with pytest.raises(InvalidInput, match="topic 't' has records of transactions, and no row says how a transaction"):
        restore(tmp_path / "log", rows | {"isControl": [False]})
    assert not list(tmp_path.rglob("*.staged"))
    del rows["isTransactional"]
    restore(tmp_path / "log", rows)


def sizes_of_batches(folder: Path) -> list[int]:
    with DataDirectory.open(folder) as data:
        return [batch.count or 0 for batch in data.log("t", 0).reader()]


def test_batches_are_not_cut_where_spark_cuts_its_own(tmp_path: Path) -> None:
    """Also if their rows are between those of another partition."""
    columns = {
        "partition": pa.array([0] * 12_000, pa.int32()),
        "offset": pa.array(range(12_000), pa.int64()),
        "value": pa.array([b"v" * 1000] * 12_000),
        "position": pa.array([number // 2400 for number in range(12_000)], pa.int64()),
    }
    rows = pa.RecordBatch.from_pydict(columns)
    options = read_sink_options({"path": str(tmp_path / "log"), "topic": "t", "restore": "true"})
    schema = StructType([StructField(name, TYPES[name][0]) for name in columns])
    writer = OctavoWriter(options, schema)
    writer.commit([writer.write(iter([rows.slice(0, 10_000), rows.slice(10_000)]))])
    assert sizes_of_batches(tmp_path / "log") == [2400] * 5

    both: Rows = {
        "partition": [0, 1, 0, 1, 0],
        "offset": [0, 0, 1, 1, 2],
        "value": [b"v"] * 5,
        "position": [0, 0, 0, 0, 70],
    }
    restore(tmp_path / "both", both)
    assert sizes_of_batches(tmp_path / "both") == [2, 1]


def test_rows_that_arrow_cannot_join_are_all_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array has at most 2 GiB, so that joining may leave several."""
    monkeypatch.setattr(task_writer, "_joined", list)
    options = read_sink_options({"path": str(tmp_path / "log"), "topic": "t"})
    writer = OctavoWriter(options, StructType([StructField("value", BinaryType())]))
    rows = pa.RecordBatch.from_pydict({"value": pa.array([b"a", b"b", b"c"])})
    writer.commit([writer.write(iter([rows, rows]))])
    with DataDirectory.open(tmp_path / "log") as data:
        assert data.log("t", 0).end_offset == 6

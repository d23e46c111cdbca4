"""Rows become batches with the offsets that they had, and logs begin and end where they did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.log import DataDirectory, Isolation
from octavo.log.names import TopicPartition
from octavo.records import Batch, Codec, read_batches
from octavo.spark.tables.restore import staging
from octavo.spark.tables.restore.committing import ImportedTopic, TargetLogs
from octavo.spark.tables.restore.planning import plan_pieces
from octavo.spark.tables.restore.runs import DataFile
from octavo.spark.tables.restore.staging import ImportTask, stage
from tests.unit.spark.tables.restore.rows import TIME_US, file_of, runs_of, table

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=4711)


def imported(
    folder: Path,
    files: Sequence[DataFile],
    *,
    batch_info: bool = False,
    end: int | None = None,
    task_size: int = 1 << 30,
) -> list[Batch]:
    """Import the files to `log` in the folder; return the batches of the partition."""
    runs = runs_of(*files)
    logs = TargetLogs(folder / "log", 0)
    area = logs.area
    ends = {} if end is None else {ORDERS: end}
    tasks = plan_pieces(runs, ends, batch_info=batch_info, task_size=task_size)
    done = [stage(ImportTask(tuple(pieces), area, Codec.LZ4, 1000, True)) for pieces in tasks]
    first = {0: min(run.first_offset for run in runs)}
    topic = ImportedTopic(first, {of.partition: each for of, each in ends.items()}, TOPIC_ID, {"retention.ms": "-1"})
    logs.commit([each.file for each in done if each.file is not None], {"orders": topic}, sync=True)
    assert not list(area.folder.iterdir())
    with DataDirectory.open(logs.path) as directory:
        log = directory.log("orders", 0)
        assert directory.topics["orders"].id == TOPIC_ID
        assert log.high_watermark == log.end_offset == (end or max(run.last_offset for run in runs) + 1)
        assert log.start_offset == first[0]
        read = log.read(log.start_offset, 1 << 30, isolation=Isolation.READ_COMMITTED)
        return list(read_batches(bytes(read.records)))


def batch_columns(count: int, positions: Sequence[int], **more: object) -> dict[str, pa.Array]:
    columns: dict[str, object] = {
        "producerId": [7] * count,
        "producerEpoch": [1] * count,
        "sequence": list(range(count)),
        "compression": ["none"] * count,
        "position": list(positions),
        "file": ["a"] * count,
        "isTransactional": [True] * count,
        **more,
    }
    return {name: pa.array(values) for name, values in columns.items()}


def test_rows_get_batches_of_the_given_size_and_codec(tmp_path: Path) -> None:
    files = [file_of(tmp_path, name, table(range(first, 500, 2))) for name, first in (("a", 10), ("b", 11))]
    batches = imported(tmp_path, files)
    assert [record.offset for batch in batches for record in batch] == list(range(10, 500))
    assert {batch.codec for batch in batches} == {Codec.LZ4}
    assert len(batches) == 10
    record = next(iter(batches[1]))
    assert record.timestamp_ms == TIME_US // 1000 + record.offset
    assert {batch.producer_id for batch in batches} == {-1}


def test_a_log_divided_among_tasks_is_whole_again(tmp_path: Path) -> None:
    files = [file_of(tmp_path, name, table(range(first, 2000, 2))) for name, first in (("a", 0), ("b", 1))]
    batches = imported(tmp_path, files, task_size=runs_of(*files)[0].size // 4)
    assert [record.offset for batch in batches for record in batch] == list(range(2000))


def test_batches_are_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_TOGETHER", 1)
    positions = [offset // 7 for offset in range(300)]
    codecs = ["gzip" if position % 2 else "none" for position in positions]
    rows = table(range(300), **batch_columns(300, positions, compression=codecs))
    batches = imported(tmp_path, [file_of(tmp_path, "a", rows)], batch_info=True)
    assert [batch.base_offset for batch in batches] == list(range(0, 300, 7))
    assert [batch.codec for batch in batches[:3]] == [Codec.NONE, Codec.GZIP, Codec.NONE]
    assert [batch.base_sequence for batch in batches] == list(range(0, 300, 7))
    assert {(batch.producer_id, batch.producer_epoch) for batch in batches} == {(7, 1)}


def test_batches_at_the_same_position_of_two_segments_stay_apart(tmp_path: Path) -> None:
    rows = table(range(20), **batch_columns(20, [0] * 20, file=["a"] * 10 + ["b"] * 10))
    batches = imported(tmp_path, [file_of(tmp_path, "a", rows)], batch_info=True)
    assert [(batch.base_offset, batch.last_offset) for batch in batches] == [(0, 9), (10, 19)]


def test_transactions_without_their_markers_are_not_left_open(tmp_path: Path) -> None:
    control = [offset == 9 for offset in range(10)]
    rows = table(range(10), **batch_columns(10, [0] * 9 + [1], isControl=control))
    batches = imported(tmp_path, [file_of(tmp_path, "a", rows)], batch_info=True, end=10)
    assert [record.offset for batch in batches for record in batch] == list(range(9))
    assert not any(batch.is_transactional or batch.is_control for batch in batches)


def test_a_log_ends_where_it_did_and_not_at_its_last_record(tmp_path: Path) -> None:
    batches = imported(tmp_path, [file_of(tmp_path, "a", table([5, 6, 9]))], end=20)
    assert [record.offset for batch in batches for record in batch] == [5, 6, 9]
    assert (batches[-1].base_offset, batches[-1].last_offset, batches[-1].count) == (10, 19, 0)


def test_times_of_all_types_come_back(tmp_path: Path) -> None:
    kinds = pa.array([0, 0, 1, 1, 1, -1], pa.int32())
    times = pa.array([5, -1, 7, 7, 8, None], pa.timestamp("ms", "UTC"))
    rows = table(range(6), timestampType=kinds).set_column(4, "timestamp", times)
    batches = imported(tmp_path, [file_of(tmp_path, "a", rows)])
    found = [(record.timestamp_ms, int(batch.timestamp_type)) for batch in batches for record in batch]
    assert found == [(5, 0), (-1, 0), (7, 1), (7, 1), (8, 1), (-1, 0)]


def test_rows_that_no_batch_can_hold_are_told_with_their_offsets(tmp_path: Path) -> None:
    rows = table(range(6), timestampType=pa.array([9] * 6, pa.int32()))
    with pytest.raises(InvalidInput, match=r"orders-0, offsets 0 to 5: column 'timestampType'"):
        imported(tmp_path, [file_of(tmp_path, "a", rows)])
    assert not list((tmp_path / ".log.staging").glob("*"))


def test_a_topic_with_too_few_partitions_is_refused(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "log") as directory:
        directory.create_topic("orders", 1)
    topic = ImportedTopic({0: 0, 2: 0}, {}, None, {})
    with pytest.raises(InvalidInput, match=r"'orders' in .* has 1 partitions, and the table has rows of 3"):
        TargetLogs(tmp_path / "log", 0).check({"orders": topic})


def test_partitions_without_rows_begin_where_they_ended(tmp_path: Path) -> None:
    logs = TargetLogs(tmp_path / "log", 0)
    logs.commit([], {"orders": ImportedTopic({}, {0: 0, 1: 17}, None, {})}, sync=True)
    with DataDirectory.open(tmp_path / "log") as directory:
        ends = {of.partition: directory.log(*of).end_offset for of in directory.partitions()}
        assert ends == {0: 0, 1: 17}
        assert directory.log("orders", 1).start_offset == 17


def test_a_topic_gets_another_id_if_its_own_is_taken(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "log") as directory:
        directory.create_topic("renamed", 1, topic_id=TOPIC_ID)
    logs = TargetLogs(tmp_path / "log", 0)
    topic = ImportedTopic({}, {0: 5}, TOPIC_ID, {})
    assert logs.commit([], {"orders": topic}, sync=True).created == ("orders",)
    with DataDirectory.open(tmp_path / "log", read_only=True) as directory:
        assert directory.topics["orders"].id != directory.topics["renamed"].id

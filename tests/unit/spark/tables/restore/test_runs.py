"""A survey tells which offsets of which partitions are in a file, and refuses what cannot become records."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.log.names import TopicPartition
from octavo.spark.tables.restore.planning import plan_pieces
from octavo.spark.tables.restore.runs import survey
from tests.unit.spark.tables.restore.rows import file_of, runs_of, table

ORDERS = TopicPartition("orders", 0)


def test_row_groups_in_order_are_one_run(tmp_path: Path) -> None:
    [run] = survey(file_of(tmp_path, "a", table(range(5, 455, 2))))
    assert (run.partition, run.row_groups, run.first_offset, run.last_offset) == (ORDERS, range(3), 5, 453)
    assert run.row_count == 225
    assert run.is_sorted
    assert not run.is_shared


def test_a_footer_tells_as_much_as_the_columns(tmp_path: Path) -> None:
    file = file_of(tmp_path, "a", table(range(5, 455, 2)))
    exported = file._replace(topic="orders", is_exported=True)
    assert [run._replace(file=file) for run in survey(exported)] == survey(file)


def test_rows_in_another_order_are_runs_of_their_own(tmp_path: Path) -> None:
    runs = survey(file_of(tmp_path, "a", table([*range(100, 200), *range(100)])))
    assert [(run.first_offset, run.last_offset, run.row_groups) for run in runs] == [
        (100, 199, range(1)),
        (0, 99, range(1, 2)),
    ]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (table([1]).drop_columns("value"), "has no column value: a table without raw keys and values cannot become"),
        (table([1]).drop_columns("key"), "has no column key: a table without raw keys and values cannot become"),
        (table([1]).drop_columns("offset"), "has no column offset, so nobody can tell where its rows belong"),
        (table([1]).drop_columns("topic"), "has no column topic, so nobody can tell where its rows belong"),
        (table([1], -1), "the column partition holds -1, which no record has"),
        (table([1], topic="../x"), "a topic's name has ASCII letters"),
        (table([-1]), "the column offset holds -1, which no record has"),
        (table([1]).set_column(3, "offset", pa.array(["x"])), "the column offset holds nulls or string"),
        (table([1]).set_column(3, "offset", pa.array([None], pa.int64())), "the column offset holds nulls or int64"),
        (table([1]).set_column(5, "topic", pa.array([None], pa.string())), "the column topic holds nulls"),
    ],
)
def test_rows_that_cannot_be_records_are_refused(tmp_path: Path, rows: pa.Table, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        survey(file_of(tmp_path, "a", rows))


def test_small_partitions_share_a_task_and_large_ones_are_divided(tmp_path: Path) -> None:
    files = [file_of(tmp_path, f"{number}", table(range(7, 107), number)) for number in range(6)]
    files += [file_of(tmp_path, f"large {first}", table(range(first, 6000, 3), 6)) for first in (0, 1, 2)]
    runs = runs_of(*files)
    size = sum(run.size for run in runs if run.partition.partition == 6) // 3
    tasks = plan_pieces(runs, {TopicPartition("orders", 6): 7000}, batch_info=False, task_size=size)
    small = [piece.partition.partition for piece in tasks[0]]
    assert small == list(range(6))
    large = [piece for task in tasks[1:] for piece in task]
    assert len(large) == len(tasks) - 1 >= 3
    assert [offset for piece in large for offset in piece.offsets] == list(range(6000))
    assert [piece.end_offset for piece in large] == [None] * (len(large) - 1) + [7000]
    assert max(len(piece.offsets) for piece in large) < 2 * min(len(piece.offsets) for piece in large)

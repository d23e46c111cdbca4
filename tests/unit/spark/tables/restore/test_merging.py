"""Rows of several files come in the order of their offsets, each once, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from octavo.errors import BadTable, InvalidInput
from octavo.log.names import TopicPartition
from octavo.spark.tables.restore import merging
from octavo.spark.tables.restore.merging import merged
from octavo.spark.tables.restore.runs import Run
from tests.unit.spark.tables.restore.rows import file_of, runs_of, table

ALL = range(2**62)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_MOST_ROWS", 16)


def offsets_of(runs: Sequence[Run], offsets: range = ALL, most_memory: int = merging.MOST_MEMORY) -> list[int]:
    batches = merged(runs, offsets, batch_info=False, most_memory=most_memory)
    return [offset for rows in batches for offset in rows.column("offset").to_pylist()]


def test_files_that_overlap_are_merged(tmp_path: Path) -> None:
    random = Random(1)
    shares: list[list[int]] = [[] for _ in range(5)]
    for offset in range(3, 2000, 2):
        random.choice(shares).append(offset)
    files = [file_of(tmp_path, f"{number}", table(share)) for number, share in enumerate(shares)]
    assert offsets_of(runs_of(*files)) == list(range(3, 2000, 2))
    assert offsets_of(runs_of(*files), range(500, 700)) == list(range(501, 700, 2))


def test_rows_keep_their_columns(tmp_path: Path) -> None:
    files = [file_of(tmp_path, name, table(range(first, 300, 2))) for name, first in (("even", 0), ("odd", 1))]
    rows = pa.Table.from_batches(merged(runs_of(*files), ALL, batch_info=False))
    wanted = table(range(300)).select(rows.column_names)
    assert rows.equals(wanted)


def test_a_file_that_is_in_no_order_is_sorted(tmp_path: Path) -> None:
    mixed = list(range(0, 1000, 2))
    Random(2).shuffle(mixed)
    files = [file_of(tmp_path, "mixed", table(mixed), 200), file_of(tmp_path, "odd", table(range(1, 1000, 2)))]
    assert offsets_of(runs_of(*files)) == list(range(1000))


def test_rows_of_other_partitions_and_topics_are_left_out(tmp_path: Path) -> None:
    parts = [table(range(50), 0), table(range(100, 150), 1), table(range(200, 250), 0, "other")]
    runs = runs_of(file_of(tmp_path, "all", pa.concat_tables(parts)))
    found = {run.partition: offsets_of([run]) for run in runs}
    assert found == {
        TopicPartition("orders", 0): list(range(50)),
        TopicPartition("orders", 1): list(range(100, 150)),
        TopicPartition("other", 0): list(range(200, 250)),
    }


@pytest.mark.parametrize("again", [[7], [99], [0, 1, 2], list(range(100))])
def test_an_offset_that_is_there_twice_is_told(tmp_path: Path, again: list[int]) -> None:
    files = [file_of(tmp_path, "one", table(range(100))), file_of(tmp_path, "two", table(again))]
    with pytest.raises(InvalidInput, match=rf"offset {again[0]} of orders-0 is in the table twice: look in .*one.*two"):
        offsets_of(runs_of(*files))


def test_an_offset_that_is_twice_in_one_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"offset 5 of orders-0 is in the table twice: look in .*one"):
        offsets_of(runs_of(file_of(tmp_path, "one", table([3, 4, 5, 5, 6]))))


def test_more_files_than_fit_into_memory_are_refused(tmp_path: Path) -> None:
    files = [file_of(tmp_path, f"{number}", table(range(number, 1000, 10))) for number in range(10)]
    runs = runs_of(*files)
    room = sum(run.size for run in runs)
    assert offsets_of(runs, most_memory=room) == list(range(1000))
    with pytest.raises(InvalidInput, match=r"10 files of the table hold offsets of orders-0 around 9, more than fit"):
        offsets_of(runs, most_memory=room - 1)


def test_many_files_one_after_another_need_no_more_memory_than_one(tmp_path: Path) -> None:
    files = [file_of(tmp_path, f"{first}", table(range(first, first + 50))) for first in range(0, 1000, 50)]
    runs = runs_of(*files)
    assert offsets_of(runs, most_memory=max(run.size for run in runs)) == list(range(1000))


def test_a_file_that_says_it_is_an_export_is_not_believed(tmp_path: Path) -> None:
    mixed = file_of(tmp_path, "mixed", table([1, 3, 2]))._replace(topic="orders", is_exported=True)
    with pytest.raises(BadTable, match="the rows are not in the order of their offsets, at offset 2"):
        offsets_of(runs_of(mixed))
    rows = pa.concat_tables([table(range(50), 0), table(range(50, 60), 1)])
    several = file_of(tmp_path, "several", rows)._replace(topic="orders", is_exported=True)
    with pytest.raises(BadTable, match="there are rows of other partitions than orders-0"):
        offsets_of(runs_of(several))


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    file = file_of(tmp_path, "one", table(range(5000)), 5000)
    runs = runs_of(file)
    path = tmp_path / "one"
    whole = bytearray(path.read_bytes())
    whole[100:3000] = bytes(2900)
    path.write_bytes(whole)
    with pytest.raises(BadTable, match="the file cannot be read"):
        offsets_of(runs)
    path.write_bytes(b"no Parquet")
    with pytest.raises(BadTable, match="this is no Parquet file"):
        offsets_of(runs)

"""The partition of each row: given, by its key, or in turn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.log import CommitIdentity, StagingArea
from octavo.records.partition import partition_for_key
from octavo.spark.sink.partitioning import Partitioning
from octavo.spark.sink.writer import first_partition


def rows(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_keys_decide_as_in_kafkas_producer() -> None:
    keys = [b"", b"a", b"key", bytes(range(256)), b"21"]
    array = pa.array([b"before", *keys], pa.binary()).slice(1)
    assert Partitioning("t", 7, 0).assign(rows(key=array)).tolist() == [partition_for_key(key, 7) for key in keys]


def test_text_keys_are_utf8() -> None:
    assert Partitioning("t", 7, 0).assign(rows(key=pa.array(["ä", "b"]))).tolist() == [
        partition_for_key("ä".encode(), 7),
        partition_for_key(b"b", 7),
    ]


def test_a_given_partition_comes_first_and_null_means_none() -> None:
    given = pa.array([3, None, 0], pa.int32())
    found = Partitioning("t", 4, 0).assign(rows(key=pa.array([b"a", b"a", b"a"]), partition=given))
    assert found.tolist() == [3, partition_for_key(b"a", 4), 0]


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize(
    ("partition", "sentence"),
    [
        (-1, "Invalid partition: -1. Partition number should always be non-negative or null."),
        (4, "there is no partition 4 of topic 't'"),
    ],
)
def test_a_partition_that_does_not_exist_is_refused(count: int, partition: int, sentence: str) -> None:
    for others in ([0], [None], []):
        given = pa.array([*others, partition], pa.int32())
        with pytest.raises(InvalidInput) as told:
            Partitioning("t", count, 0).assign(rows(value=pa.nulls(len(given), pa.binary()), partition=given))
        assert sentence in str(told.value)


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_rows_without_a_key_are_spread_evenly_over_many_batches(size: int) -> None:
    partitioning = Partitioning("t", 7, 5)
    batch = rows(value=pa.nulls(size, pa.binary()))
    counts = np.bincount(np.concatenate([partitioning.assign(batch) for _ in range(70)]), minlength=7)
    assert counts.max() - counts.min() <= 1


def test_rows_without_a_key_go_to_partitions_in_runs() -> None:
    found = Partitioning("t", 3, 2).assign(rows(value=pa.nulls(9, pa.binary())))
    assert found.tolist() == [2, 2, 2, 0, 0, 0, 1, 1, 1]


def test_only_rows_without_a_key_are_spread() -> None:
    keys = pa.array([b"a", None, b"a", None])
    found = Partitioning("t", 2, 0).assign(rows(key=keys))
    assert found.tolist() == [partition_for_key(b"a", 2), 0, partition_for_key(b"a", 2), 1]


@pytest.mark.parametrize("partitions", [2, 3, 8])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("known", [True, False])
def test_single_rows_without_a_key_are_spread_over_many_commits(
    tmp_path: Path, partitions: int, step: int, known: bool
) -> None:
    """Tasks with a row each, in micro-batches of which some are empty, or in writes that no identity tells apart."""
    counts = np.zeros(partitions, int)
    row = rows(value=pa.nulls(1, pa.binary()))
    for version in range(0, 1000 * step, step):
        area = StagingArea.of(tmp_path / "log", identity=CommitIdentity("a query", version) if known else None)
        for task in range(2):
            counts[Partitioning("t", partitions, first_partition(area, task)).assign(row)] += 1
    assert counts.min() > 0.75 * counts.sum() / partitions

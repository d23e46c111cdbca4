"""The application transactions of a Delta table are read from its log, in all forms that a checkpoint has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from octavo.errors import BadTable
from octavo.spark.files import Root
from octavo.spark.tables.delta_log import LOG, read_transactions
from tests.unit.spark.tables.lakes import created, export, open_lake, reached, table_offsets

OTHER: dict[str, Any] = {"commitInfo": {"text": 'about "txn"'}}


def transaction(app_id: str, version: int) -> dict[str, Any]:
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": None}}


def write_commit(folder: Path, version: int, *actions: dict[str, Any]) -> None:
    log = folder / LOG
    log.mkdir(exist_ok=True)
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, (OTHER, *actions))))


def write_checkpoint(folder: Path, name: str, *actions: dict[str, Any]) -> None:
    path = folder / LOG / name
    if name.endswith(".json"):
        path.write_text("\n".join(map(json.dumps, actions)))
        return
    kind = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
    rows = [None, *(action["txn"] for action in actions), None]
    pq.write_table(pa.table({"add": pa.nulls(len(rows), pa.string()), "txn": pa.array(rows, kind)}), path)


def read(folder: Path, version: int) -> dict[str, int]:
    return read_transactions(Root(str(folder)), version, "ours")


def test_the_last_of_several_commits_holds(tmp_path: Path) -> None:
    write_commit(tmp_path, 0, transaction("ours", 1), transaction("theirs", 7))
    write_commit(tmp_path, 1)
    write_commit(tmp_path, 2, transaction("ours", 2), transaction("ours/x", 1 << 62))
    assert read(tmp_path, 1) == {"ours": 1}
    assert read(tmp_path, 2) == {"ours": 2, "ours/x": 1 << 62}


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000002.checkpoint.parquet",
        "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet",
        "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        "00000000000000000002.checkpoint.0000000001.0000000001.parquet",
    ],
)
def test_commits_before_a_checkpoint_are_not_needed(tmp_path: Path, name: str) -> None:
    write_commit(tmp_path, 3, transaction("ours/new", 5))
    write_checkpoint(tmp_path, name, transaction("ours", 2), transaction("theirs", 3))
    write_checkpoint(tmp_path, "00000000000000000009.checkpoint.parquet", transaction("ours", 9))
    assert read(tmp_path, 3) == {"ours": 2, "ours/new": 5}
    assert read(tmp_path, 2) == {"ours": 2}
    assert read(tmp_path, 9) == {"ours": 9}


def test_a_checkpoint_of_which_a_part_is_missing_does_not_count(tmp_path: Path) -> None:
    write_commit(tmp_path, 0, transaction("ours", 1))
    write_commit(tmp_path, 1, transaction("ours/x", 1))
    name = "00000000000000000001.checkpoint.{:010d}.0000000002.parquet"
    write_checkpoint(tmp_path, name.format(1), transaction("ours", 8))
    assert read(tmp_path, 1) == {"ours": 1, "ours/x": 1}
    write_checkpoint(tmp_path, name.format(2), transaction("ours/x", 8))
    assert read(tmp_path, 1) == {"ours": 8, "ours/x": 8}


def test_a_log_with_a_gap_is_refused(tmp_path: Path) -> None:
    write_commit(tmp_path, 0)
    write_commit(tmp_path, 2)
    with pytest.raises(BadTable, match="the log of this Delta table cannot be read"):
        read(tmp_path, 2)


@pytest.mark.parametrize(
    "text", ['{"txn": {"appId": 7, "version": 1}}', '{"txn": [1]}', '{"txn": {}}', '{"txn": ', '7 "txn"']
)
def test_a_log_with_something_else_in_it_is_refused(tmp_path: Path, text: str) -> None:
    write_commit(tmp_path, 0)
    (tmp_path / LOG / f"{1:020d}.json").write_text(text)
    with pytest.raises(BadTable, match="the log of this Delta table cannot be read"):
        read(tmp_path, 1)


def test_progress_survives_a_checkpoint_and_the_removal_of_older_commits(tmp_path: Path) -> None:
    with created("delta", tmp_path) as target:
        export(target, 2)
        export(target, 3)
    DeltaTable(str(tmp_path)).create_checkpoint()
    for version in (0, 1):
        (tmp_path / LOG / f"{version:020d}.json").unlink()
    with open_lake("delta", tmp_path) as target:
        assert target.progress() == reached(3)
        export(target, 5)
        assert target.progress() == reached(5)
        assert table_offsets(target) == list(range(5))


def test_a_table_that_forgets_its_progress_is_refused(tmp_path: Path) -> None:
    with created("delta", tmp_path) as target:
        table = DeltaTable(str(tmp_path))
        table.alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 7 days"})
        with pytest.raises(BadTable, match="it forgets how far exports came"):
            target.progress()
    with pytest.raises(BadTable, match="it forgets how far exports came"):
        open_lake("delta", tmp_path)

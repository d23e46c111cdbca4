"""Plain Parquet files as a table: what is noted beside them, whatever somebody has made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import BadTable, ExportConflict, InvalidInput, LockLost, OctavoError
from octavo.log.storage import FileStatus, Storage
from octavo.spark.tables.formats import open_target
from octavo.spark.tables.parquet import ParquetTarget
from octavo.spark.tables.parquet_state import Round
from octavo.spark.tables.progress import Progress
from tests.unit.spark.tables.exporting import data_files, export, rows
from tests.unit.spark.topics import write_topic


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_topic(tmp_path / "logs", "events", batches=4)
    export(tmp_path / "logs", tmp_path / "table")
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "thesis.parquet").write_bytes(b"years of work")
    return tmp_path / "table"


def decided(table: Path, **changes: Any) -> dict[str, Any]:
    """A decision, as it would be after the export that is in the table."""
    with ParquetTarget.open(str(table)) as target:
        progress = target.progress()
        (file,) = target.files()
    state = Round(version=2, staging="0" * 32, is_decided=True, before=progress, after=progress, added=[file])
    return {**json.loads(state.to_json()), **changes}


def test_a_decision_that_was_carried_out_before_changes_nothing(table: Path) -> None:
    before = rows(table)
    (table / "_octavo" / "round.json").write_text(json.dumps(decided(table)))
    with ParquetTarget.open(str(table)):
        assert not (table / "_octavo" / "round.json").exists()
    assert rows(table) == before


def test_a_decision_of_an_older_version_is_dropped(table: Path) -> None:
    removed = [str(path.relative_to(table)) for path in data_files(table)]
    (table / "_octavo" / "round.json").write_text(json.dumps(decided(table, version=1, removed=removed)))
    ParquetTarget.open(str(table)).close()
    assert len(rows(table)) == 20


def test_a_decision_whose_files_are_missing_is_reported(table: Path) -> None:
    note = decided(table)
    data_files(table)[0].unlink()
    (table / "_octavo" / "round.json").write_text(json.dumps(note))
    with pytest.raises(BadTable, match="cannot be finished"):
        ParquetTarget.open(str(table))
    assert (table / "_octavo" / "round.json").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"removed": ["../victim/thesis.parquet"]},
        {"removed": ["topic=../day=2023-11-14/0-00000000000000000000-00000000000000000019-00000000.parquet"]},
        {"staging": "../../victim"},
        {"staging": "/" + "0" * 31},
        {"added": [{"path": "../victim/thesis.parquet"}]},
        {"added": 5},
        {"removed": 5},
        {"version": -1},
        {"version": "2"},
        {"after": []},
        {"octavo": 2},
        {"octavo": None},
    ],
)
def test_a_forged_decision_is_refused_and_nothing_touched(table: Path, changes: dict[str, Any]) -> None:
    (table / "_octavo" / "round.json").write_text(json.dumps(decided(table, **changes)))
    with pytest.raises(BadTable, match=r"round\.json"):
        ParquetTarget.open(str(table))
    assert len(rows(table)) == 20
    assert (table.parent / "victim" / "thesis.parquet").read_bytes() == b"years of work"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"schema": "', '"schema": "AAAA'),
        lambda text: text.replace('"version": 1', '"version": null'),
        lambda text: text.replace('"octavo.raw": "true"', '"octavo.raw": 5'),
        lambda text: text.replace('"events"', '"../events"'),
    ],
)
def test_a_damaged_table_is_refused(table: Path, damage: Callable[[str], str]) -> None:
    path = table / "_octavo" / "table.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(BadTable, match=r"table\.json"):
        ParquetTarget.open(str(table))


def test_nothing_is_committed_after_the_lock_was_lost(table: Path) -> None:
    with ParquetTarget.open(str(table)) as target:
        progress = target.progress()
        target.begin(progress, progress)
        (table / "_octavo" / ".lock").unlink()
        with pytest.raises(LockLost):
            target.commit([], progress, progress)


def test_a_commit_on_other_progress_is_refused(table: Path) -> None:
    with ParquetTarget.open(str(table)) as target:
        with pytest.raises(ExportConflict, match="further"):
            target.begin(Progress(), Progress())
        with pytest.raises(ExportConflict, match="no plan"):
            target.commit([], target.progress(), target.progress())


def test_a_closed_table_takes_nothing(table: Path) -> None:
    target = ParquetTarget.open(str(table))
    target.close()
    with pytest.raises(ExportConflict, match="not open"):
        target.begin(target.progress(), target.progress())


def test_what_others_put_into_the_folders_is_no_data(table: Path) -> None:
    (table / "topic=events" / "day=2023-11-14" / "other.parquet").write_bytes(b"")
    (table / "topic=events" / "notes").mkdir()
    with ParquetTarget.open(str(table)) as target:
        assert [file.row_count for file in target.files()] == [20]


@pytest.mark.parametrize("options", [{"sync": "perhaps"}, {"compression": "zstd"}])
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="sync"):
        open_target(str(tmp_path), "parquet", options)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OctavoError, match="there are parquet, delta, iceberg"):
        open_target(str(tmp_path), "orc", {})


class LateTask(Storage):
    """A disk on which a task that was given up still removes or writes a file, once its folder was listed."""

    def __init__(self, removes: bool) -> None:
        self._removes = removes
        self.calls = 0

    def files(self, folder: Path, suffix: str | tuple[str, ...]) -> dict[str, FileStatus]:
        if folder.parent.name != "staging":
            return super().files(folder, suffix)
        self.calls += 1
        late = folder / "late.part"
        if self._removes:
            late.touch()
        found = super().files(folder, suffix)
        if self._removes:
            late.unlink()
        else:
            late.touch()
        return found


@pytest.mark.parametrize("removes", [True, False])
def test_a_task_that_was_given_up_does_not_make_a_commit_fail(tmp_path: Path, removes: bool) -> None:
    logs, table = tmp_path / "logs", tmp_path / "table"
    write_topic(logs, "events", batches=4)
    storage = LateTask(removes)
    assert export(logs, table, storage=storage).row_count == 20
    assert storage.calls
    assert export(logs, table).row_count == 0
    assert len(rows(table)) == 20
    assert not list((table / "_octavo" / "staging").iterdir())


def test_a_task_that_outlives_its_driver_does_not_keep_the_table_from_being_opened(tmp_path: Path) -> None:
    logs, table = tmp_path / "logs", tmp_path / "table"
    write_topic(logs, "events", batches=4)
    export(logs, table)
    left = table / "_octavo" / "staging" / ("0" * 32)
    left.mkdir()
    storage = LateTask(removes=False)
    ParquetTarget.open(str(table), storage=storage).close()
    assert storage.calls
    assert [path.name for path in left.iterdir()] == ["late.part"]
    ParquetTarget.open(str(table)).close()
    assert not left.exists()

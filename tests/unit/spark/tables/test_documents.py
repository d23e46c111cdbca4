"""What the page about tables shows is what an export writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from octavo.log.files.meta_properties import read_uuid
from octavo.log.names import TopicPartition
from octavo.spark.tables.delta import DeltaTarget
from octavo.spark.tables.delta_log import LOG
from octavo.spark.tables.progress import Progress, Reached
from octavo.spark.tables.written import PathParts, parse_path
from tests.unit.spark.tables.lakes import FORMATS, NOTES, SCHEMA, created, export, reached, table_offsets, write

PAGE = Path(__file__).parents[4] / "docs" / "formats" / "tables.md"
ID = read_uuid("MnJ4nHkFQ0KJgbHn5EWPZQ")
SHOWN = Progress({TopicPartition("orders", 0): Reached(ID, 12345), TopicPartition("orders", 1): Reached(ID, 0)})


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_paths_are_those_of_data_files() -> None:
    paths = blocks("")[0]
    first, second = map(parse_path, paths.split())
    assert first == PathParts("orders", 20_773, 3, 0, 12_345)
    assert second == PathParts("orders", None, 3, 12_346, 12_346)


def test_progress_is_as_it_is_shown() -> None:
    fields = json.loads(blocks("json")[0])
    assert Progress.from_fields(fields) == SHOWN
    assert SHOWN.to_fields() == fields


def test_application_transactions_of_a_commit_are_as_they_are_shown(tmp_path: Path) -> None:
    with DeltaTarget.open(str(tmp_path), {}) as target:
        target.create(SCHEMA, NOTES)
        for _ in range(6):
            target.commit([], Progress(), Progress())
        place = target.begin(Progress(), SHOWN)
        target.commit([write(place, range(3))], Progress(), SHOWN)
    (newest,) = sorted((tmp_path / LOG).glob("*.json"))[-1:]
    written = [json.loads(line).get("txn") for line in newest.read_text().splitlines()]
    shown = [json.loads(line)["txn"] for line in blocks("json")[1].splitlines()]
    assert {each["appId"]: each["version"] for each in written if each} == {
        each["appId"]: each["version"] for each in shown
    }


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_that_is_set_back_keeps_its_progress(kind: str, tmp_path: Path) -> None:
    with created(kind, tmp_path) as target:
        for end in (3, 6):
            export(target, end)
        if isinstance(target, DeltaTarget):
            target._existing.restore(1)
        else:
            first = target._existing.snapshots()[0].snapshot_id
            target._existing.manage_snapshots().rollback_to_snapshot(first).commit()
        assert table_offsets(target) == [0, 1, 2]
        assert target.progress() == reached(6)

"""What is noted about the files of a table, and how far an export has come."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from octavo.errors import BadTable, InvalidInput
from octavo.log.names import TopicPartition
from octavo.spark.tables.progress import Progress, Reached
from octavo.spark.tables.written import WrittenFile, new_path, parse_path

ORDERS = TopicPartition("orders", 3)
TOPIC_ID = UUID(int=4711)


def written(day: int | None = 20_000) -> WrittenFile:
    return WrittenFile(new_path(ORDERS, day, 7, 12), "orders", 3, day, 7, 12, 5, 900, 1, 2, 0)


@pytest.mark.parametrize("day", [20_000, 0, -1, None])
def test_a_written_file_is_read_as_it_was_written(day: int | None) -> None:
    file = written(day)
    assert WrittenFile.from_json(file.to_json()) == file
    assert parse_path(file.path) == ("orders", day, 3, 7, 12)


def test_a_path_tells_partition_and_offsets() -> None:
    path = written().path
    assert path.startswith("topic=orders/day=2024-10-04/3-00000000000000000007-00000000000000000012-")
    assert new_path(ORDERS, None, 7, 12).startswith("topic=orders/day=__HIVE_DEFAULT_PARTITION__/3-")


def test_a_topic_that_leads_elsewhere_gets_no_path() -> None:
    with pytest.raises(InvalidInput):
        new_path(TopicPartition("../x", 0), 0, 0, 1)


@pytest.mark.parametrize(
    "path",
    [
        "../0-00000000000000000007-00000000000000000012-00000000.parquet",
        "topic=../day=2024-10-04/3-00000000000000000007-00000000000000000012-00000000.parquet",
        "topic=orders/day=2024-13-04/3-00000000000000000007-00000000000000000012-00000000.parquet",
        "topic=orders/day=2024-10-04/x.parquet",
        "/etc/passwd",
    ],
)
def test_other_paths_are_no_files_of_a_table(path: str) -> None:
    assert parse_path(path) is None
    with pytest.raises(BadTable):
        WrittenFile.from_fields({**written()._asdict(), "path": path})


@pytest.mark.parametrize(
    ("name", "value"),
    [("row_count", -1), ("row_count", "5"), ("size", True), ("day", "2024-10-04"), ("topic", 5), ("first_offset", 8)],
)
def test_a_wrong_note_about_a_file_is_refused(name: str, value: Any) -> None:
    with pytest.raises(BadTable):
        WrittenFile.from_fields({**written()._asdict(), name: value})


@pytest.mark.parametrize("text", ["", "{}", "[]", "nonsense", "{'path': 1}"])
def test_what_is_no_note_about_a_file_is_refused(text: str) -> None:
    with pytest.raises(BadTable):
        WrittenFile.from_json(text)


def test_progress_is_read_as_it_was_written() -> None:
    progress = Progress({ORDERS: Reached(TOPIC_ID, 13), TopicPartition("a", 0): Reached(None, 0)})
    assert list(progress) == [("a", 0), ORDERS]
    assert Progress.from_fields(json.loads(json.dumps(progress.to_fields()))) == progress
    further = progress.advanced({ORDERS: Reached(TOPIC_ID, 14)})
    assert further.changed_since(progress) == {ORDERS: Reached(TOPIC_ID, 14)}
    assert further != progress


@pytest.mark.parametrize(
    "fields",
    [
        [],
        {"orders": []},
        {"orders": {"x": [None, 1]}},
        {"orders": {"0": [None, -1]}},
        {"orders": {"0": [None, "1"]}},
        {"orders": {"0": ["nonsense", 1]}},
        {"../orders": {"0": [None, 1]}},
    ],
)
def test_what_is_no_progress_is_refused(fields: Any) -> None:
    with pytest.raises(BadTable):
        Progress.from_fields(fields)

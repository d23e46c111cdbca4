"""Tables of all formats tell their files, whoever wrote them, and rows that were deleted do not come back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

from octavo.errors import BadDirectory, BadTable, InvalidInput, TableError
from octavo.log.names import TopicPartition
from octavo.spark.tables.iceberg import CATALOG_FILE, CATALOG_NAME, TABLE_NAME
from octavo.spark.tables.restore.merging import merged
from octavo.spark.tables.restore.source_table import SourceTable, open_source
from tests.unit.spark.tables.restore.rows import file_of, runs_of, table

FORMATS = ("parquet", "delta", "iceberg")
HEADERS = pa.array([[{"key": "a", "value": b"1"}, {"key": "", "value": None}], None] * 100)


def write(folder: Path, table_format: str, rows: pa.Table) -> None:
    """Write a table as others do."""
    if table_format == "parquet":
        file_of(folder / "topic=orders" / "day=2026-11-15", "part-0.parquet", rows.drop_columns("topic"))
        file_of(folder / "_octavo", "part-1.parquet", rows)
        file_of(folder, ".part-2.parquet", rows)
    elif table_format == "delta":
        write_deltalake(folder, rows, partition_by=["topic"])
    else:
        folder.mkdir()
        catalog = load_catalog(CATALOG_NAME, uri=f"sqlite:///{folder / CATALOG_FILE}")
        catalog.create_namespace(TABLE_NAME.split(".")[0])
        catalog.create_table(TABLE_NAME, rows.schema, location=f"file://{folder}").append(rows)
        catalog.close()


def rows_of(source: SourceTable) -> list[dict[str, Any]]:
    runs = runs_of(*source.files)
    assert {run.partition for run in runs} == {TopicPartition("orders", 0)}
    rows: list[dict[str, Any]] = pa.Table.from_batches(merged(runs, range(2**62), batch_info=False)).to_pylist()
    return [{**row, "headers": row.get("headers") or None} for row in rows]  # no headers are none, or an empty list


@pytest.mark.parametrize("table_format", FORMATS)
def test_the_rows_of_a_table_that_others_wrote(tmp_path: Path, table_format: str) -> None:
    rows = table(range(200), headers=HEADERS)
    write(tmp_path / "table", table_format, rows)
    source = open_source(str(tmp_path / "table"), table_format, {})
    assert not source.progress
    found = rows_of(source)
    assert found == rows.select(list(found[0])).to_pylist()
    assert found[0].keys() == {"offset", "key", "value", "timestamp", "headers"}


@pytest.mark.parametrize("table_format", FORMATS)
def test_there_is_no_table(tmp_path: Path, table_format: str) -> None:
    with pytest.raises((BadTable, BadDirectory), match="there is no"):
        open_source(str(tmp_path / "nothing"), table_format, {})
    assert not list(tmp_path.iterdir())


def test_there_is_no_such_format(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no table format 'hudi'; there are parquet, delta and iceberg"):
        open_source(str(tmp_path), "hudi", {})


@pytest.mark.parametrize(
    ("table_format", "file", "options"),
    [
        ("delta", "_delta_log/00000000000000000000.json", {}),
        ("iceberg", CATALOG_FILE, {}),
        ("iceberg", CATALOG_FILE, {"type": "nonsense"}),
    ],
)
def test_what_a_library_says_is_told_in_one_line(
    tmp_path: Path, table_format: str, file: str, options: dict[str, str]
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("garbage")
    with pytest.raises(TableError, match=r"its library says: .") as caught:
        open_source(str(tmp_path), table_format, options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("table_format", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_the_package_that_is_missing_is_named(
    tmp_path: Path, table_format: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"octavo.spark.tables.{table_format}", raising=False)
    with pytest.raises(InvalidInput, match=f"need the package {package}: pip install"):
        open_source(str(tmp_path), table_format, {})


def test_a_delta_table_with_deleted_rows_tells_its_newest_files(tmp_path: Path) -> None:
    write(tmp_path / "table", "delta", table(range(200)))
    DeltaTable(tmp_path / "table").delete("offset < 50")
    found = rows_of(open_source(str(tmp_path / "table"), "delta", {}))
    assert [row["offset"] for row in found] == list(range(50, 200))


def test_a_delta_table_whose_columns_have_other_names_in_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "table", "delta", table(range(200)))
    log = next((tmp_path / "table" / "_delta_log").glob("*.json"))
    log.write_text(log.read_text().replace('"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}'))
    with pytest.raises(BadTable, match="its columns have other names in the files"):
        open_source(str(tmp_path / "table"), "delta", {})


def test_an_iceberg_table_elsewhere_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "table", "iceberg", table(range(200)))
    uri = f"sqlite:///{tmp_path / 'table' / CATALOG_FILE}"
    with pytest.raises(BadTable, match="the table of this name in the catalog is at file://"):
        open_source(str(tmp_path / "other"), "iceberg", {"uri": uri})
    with pytest.raises(BadTable, match="there is no Iceberg table"):
        open_source(str(tmp_path / "table"), "iceberg", {"table": "other.table"})
    assert len(rows_of(open_source(str(tmp_path / "table"), "iceberg", {"uri": uri}))) == 200

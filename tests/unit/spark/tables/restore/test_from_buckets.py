"""Tables in a bucket are read where they are: an S3-compatible server on loopback has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import BadTable
from octavo.spark.tables.parquet import ParquetTarget
from octavo.spark.tables.restore.merging import merged
from octavo.spark.tables.restore.source_table import SourceTable, open_source
from tests.unit.spark.bucket import Bucket
from tests.unit.spark.tables.lakes import created, export, reached
from tests.unit.spark.tables.restore.rows import file_of, runs_of, table

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of boto and its like
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def offsets(source: SourceTable) -> list[int]:
    batches = merged(runs_of(*source.files), range(2**62), batch_info=False)
    return [offset for rows in batches for offset in rows.column("offset").to_pylist()]


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_an_export_in_a_bucket(bucket: Bucket, tmp_path: Path, table_format: str) -> None:
    address = bucket.address_with_keys(f"{table_format}-{tmp_path.name}")
    options = {"uri": f"sqlite:///{tmp_path}/catalog.db"} if table_format == "iceberg" else {}
    with created(table_format, address, **options) as target:
        for end in (4, 7):
            export(target, end)
    source = open_source(address, table_format, options)
    assert source.progress == reached(7)
    assert all(file.is_exported for file in source.files)
    assert offsets(source) == list(range(7))
    assert "test:test" not in str(source.files)


def test_a_copy_of_plain_parquet_in_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    rows = table(range(200)).drop_columns("topic")
    file_of(tmp_path / "table" / "topic=orders" / "day=2026-11-16", "part-0.parquet", rows)
    with ParquetTarget.open(str(tmp_path / "table" / "new")):
        pass  # leaves a folder that begins with `_`
    bucket.put(tmp_path / "table", f"copy-{tmp_path.name}")
    assert offsets(open_source(bucket.address(f"copy-{tmp_path.name}"), "parquet", {})) == list(range(200))


def test_a_file_that_is_gone_meanwhile(bucket: Bucket, tmp_path: Path) -> None:
    file_of(tmp_path / "table", "part-0.parquet", table(range(200)))
    bucket.put(tmp_path / "table", f"gone-{tmp_path.name}")
    source = open_source(bucket.address(f"gone-{tmp_path.name}"), "parquet", {})
    bucket.remove(f"gone-{tmp_path.name}/part-0.parquet")
    with pytest.raises(BadTable, match="the file is gone: the table was changed meanwhile, so import it again"):
        runs_of(*source.files)

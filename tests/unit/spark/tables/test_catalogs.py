"""Whoever opens an Iceberg table keeps no connection to its catalog, also if opening it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, QueuePool, create_engine

from octavo.errors import TableError
from octavo.spark.tables.iceberg import CATALOG_FILE
from octavo.spark.tables.restore.source_table import open_source
from tests.unit.spark.tables.lakes import created, export, open_lake


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """All that catalogs have made to connect to their databases."""
    made: list[Engine] = []

    def recorded(*arguments: Any, **options: Any) -> Engine:
        made.append(create_engine(*arguments, **options))
        return made[-1]

    monkeypatch.setattr("pyiceberg.catalog.sql.create_engine", recorded)
    return made


def are_kept(engines: list[Engine]) -> list[bool]:
    """Which of them have connections."""
    pools = [engine.pool for engine in engines]
    return [isinstance(pool, QueuePool) and pool.checkedin() + pool.checkedout() > 0 for pool in pools]


@pytest.mark.parametrize("reading", [True, False])
def test_of_a_database_that_is_none(tmp_path: Path, engines: list[Engine], reading: bool) -> None:
    (tmp_path / CATALOG_FILE).write_text("garbage" * 1000)
    with pytest.raises(TableError, match="its library says"):
        open_source(str(tmp_path), "iceberg", {}) if reading else open_lake("iceberg", tmp_path)
    assert are_kept(engines) == [False]


@pytest.mark.parametrize("reading", [True, False])
def test_of_a_table_that_is_elsewhere(tmp_path: Path, engines: list[Engine], reading: bool) -> None:
    options = {"uri": f"sqlite:///{tmp_path}/{CATALOG_FILE}"}
    with created("iceberg", tmp_path / "table", **options) as target:
        export(target, 3)
        assert are_kept(engines) == [True]
    other = tmp_path / "other"
    with pytest.raises(TableError, match="in the catalog is at"):
        open_source(str(other), "iceberg", options) if reading else open_lake("iceberg", other, **options)
    assert are_kept(engines) == [False, False]


def test_of_a_table_that_has_been_read(tmp_path: Path, engines: list[Engine]) -> None:
    with created("iceberg", tmp_path) as target:
        export(target, 3)
    assert len(list(open_source(str(tmp_path), "iceberg", {}).files)) == 1
    assert not any(are_kept(engines))

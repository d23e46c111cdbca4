"""The rows of a table, as different readers give them, in one form that can be compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")  # or Polars warns that it lacks a faster one

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS: Final = ("topic", "partition", "offset", "key", "value", "timestamp", "timestampType", "headers")

TableRow = tuple[Any, ...]


def comparable(rows: Iterable[Mapping[str, Any]]) -> list[TableRow]:
    """Return rows in the order of the log, with times in microseconds and headers as pairs."""
    return sorted((_comparable(row) for row in rows), key=lambda row: row[:3])


def _comparable(row: Mapping[str, Any]) -> TableRow:
    values = {name: row[name] for name in COLUMNS}
    time, headers = values["timestamp"], values["headers"]
    if time is not None:
        moment = time if time.tzinfo else time.replace(tzinfo=UTC)
        values["timestamp"] = (moment - _EPOCH) // timedelta(microseconds=1)
    if headers is not None:
        values["headers"] = [(header["key"], _bytes(header["value"])) for header in headers]
    return tuple(_bytes(value) for value in values.values())


def _bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def without_empty_headers(rows: Iterable[TableRow]) -> list[TableRow]:
    """Return rows as `pyiceberg` reads them: lists of structs that are null are empty."""
    return [(*row[:-1], row[-1] or []) for row in rows]


def iceberg_table(folder: Path) -> Table:
    """Return the Iceberg table in a folder, by the catalog beside it."""
    return load_catalog("octavo", uri=f"sqlite:///{folder}/catalog.db").load_table("octavo.records")


def by_polars(format_name: str, folder: Path) -> list[TableRow]:
    """Read a table with Polars."""
    match format_name:
        case "parquet":
            frame = pl.scan_parquet(
                f"{folder}/topic=*/day=*/*.parquet", hive_schema={"topic": pl.String, "day": pl.Date}
            )
        case "delta":
            frame = pl.scan_delta(str(folder))
        case _:
            frame = pl.scan_iceberg(iceberg_table(folder), reader_override="native")
    return comparable(frame.collect().to_dicts())


def by_duckdb(format_name: str, folder: Path) -> list[TableRow]:
    """Read a table with DuckDB: the Parquet files, or what the library of the format gives in Arrow."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        if format_name == "parquet":
            types = "{'topic': VARCHAR, 'day': DATE}"
            source = f"read_parquet('{folder}/topic=*/day=*/*.parquet', hive_partitioning = true, hive_types = {types})"
        else:
            database.register("given", _arrow(format_name, folder))
            source = "given"
        found: pa.Table = database.sql(f"SELECT * FROM {source}").to_arrow_table()
        return comparable(found.to_pylist())


def _arrow(format_name: str, folder: Path) -> Any:
    if format_name == "delta":
        return DeltaTable(str(folder)).to_pyarrow_dataset()
    return iceberg_table(folder).scan().to_arrow()

"""The table formats, by their names. The library of a format is imported only if it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from octavo.errors import InvalidInput
from octavo.spark.tables.target import Target

FORMATS: Final = ("parquet", "delta", "iceberg")


def open_target(address: str, format: str, options: Mapping[str, str]) -> Target:  # noqa: A002 - as Spark names it
    """Open the table at `address`, which need not exist yet. Raises `InvalidInput`, `TableError`.

    The options are those of `ParquetTarget.open`, `DeltaTarget.open` or `IcebergTarget.open`.
    """
    match format.lower():
        case "parquet":
            from octavo.spark.tables.parquet import ParquetTarget

            return ParquetTarget.open(address, options)
        case "delta":
            from octavo.spark.tables.delta import DeltaTarget

            return DeltaTarget.open(address, options)
        case "iceberg":
            from octavo.spark.tables.iceberg import IcebergTarget

            return IcebergTarget.open(address, options)
        case _:
            raise InvalidInput(f"there is no table format {format!r}; there are {', '.join(FORMATS)}")

"""Open a table that becomes logs again: `open_source`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from octavo.errors import InvalidInput
from octavo.spark.tables.progress import Progress
from octavo.spark.tables.restore.listing import parquet_files
from octavo.spark.tables.restore.runs import DataFile


class SourceTable(NamedTuple):
    """The files of a table, and what is noted about the logs that they come from."""

    files: list[DataFile]
    progress: Progress  # where the logs ended, and the ids of the topics; empty if no export wrote the table


def open_source(address: str, table_format: str, options: Mapping[str, str]) -> SourceTable:
    """Find the files of a table. Raises `InvalidInput`, `BadDirectory` and `BadTable`."""
    if table_format == "parquet":
        return SourceTable(parquet_files(address), Progress())
    raise InvalidInput(f"{table_format} is not a format")

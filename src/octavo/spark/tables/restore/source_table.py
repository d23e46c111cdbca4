"""Open a table that becomes logs again: `open_source`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from octavo.errors import BadTable, InvalidInput
from octavo.spark.files import find_paths, shown
from octavo.spark.tables.addresses import TableAddress, parse_address
from octavo.spark.tables.lake import NOTES, library_errors
from octavo.spark.tables.parquet import ParquetTarget
from octavo.spark.tables.parquet_state import FOLDER, ROUND, TABLE, read_round, read_table
from octavo.spark.tables.progress import Progress
from octavo.spark.tables.restore.listing import delta_files, iceberg_files, parquet_files
from octavo.spark.tables.restore.runs import DataFile
from octavo.spark.tables.topic_configs import Configs, from_notes


class SourceTable(NamedTuple):
    """The files of a table, and what is noted about the logs that they come from."""

    files: list[DataFile]
    progress: Progress  # where the logs ended, and the ids of the topics; empty if no export wrote the table
    configs: Configs = MappingProxyType({})  # of the topics, as far as they are known


def open_source(address: str, table_format: str, options: Mapping[str, str]) -> SourceTable:
    """Find the files of a table. Raises `InvalidInput`, `BadDirectory`, `BadTable`, and `TableError` for a library."""
    if table_format == "parquet":
        return _parquet(address, options)
    if table_format not in ("delta", "iceberg"):
        raise InvalidInput(f"there is no table format {table_format!r}; there are parquet, delta and iceberg")
    where = parse_address(address)
    with library_errors(where):
        return _delta(where, options) if table_format == "delta" else _iceberg(where, options)


def _parquet(address: str, options: Mapping[str, str]) -> SourceTable:
    if options:
        raise InvalidInput(f"plain Parquet takes no option {min(options)}: the address says how to reach it")
    found = find_paths(address)
    storage, own = found[0].root.storage(), found[0].path / FOLDER
    state = read_table(storage, own / TABLE) if len(found) == 1 and storage.is_folder(own) else None
    if state is None:
        return SourceTable(parquet_files(found), Progress())
    if found[0].root.is_local and os.access(own, os.W_OK):
        with ParquetTarget.open(found[0].root.address) as target:  # finishes a commit that was interrupted
            return SourceTable(parquet_files(found), target.progress(), from_notes(target.properties()))
    unfinished = read_round(storage, own / ROUND)
    if unfinished is not None and unfinished.is_decided and unfinished.version > state.version:
        raise BadTable(shown(address), "a commit to it was interrupted, and only a new export finishes it")
    return SourceTable(parquet_files(found), state.progress, from_notes(state.properties))


def _delta(where: TableAddress, options: Mapping[str, str]) -> SourceTable:
    from octavo.spark.tables.delta import DeltaTarget, s3_options  # first: it says which package is missing

    storage_options = {**s3_options(where), **options}
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(where.plain, storage_options=storage_options)
    except TableNotFoundError:
        raise BadTable(str(where), "there is no Delta table") from None
    files = delta_files(table, where.root)
    if NOTES not in table.metadata().configuration:
        return SourceTable(files, Progress())
    with DeltaTarget(where, options) as target:
        return SourceTable(files, target.progress(), from_notes(target.properties()))


def _iceberg(where: TableAddress, options: Mapping[str, str]) -> SourceTable:
    from octavo.spark.tables.iceberg import (
        CATALOG_FILE,
        CATALOG_NAME,
        IcebergTarget,
        catalog_properties,
        open_catalog,
        table_name,
    )

    properties = catalog_properties(where, options)
    from pyiceberg.exceptions import NoSuchTableError

    own = where.root.path() / CATALOG_FILE
    if properties.get("uri") == f"sqlite:///{own}" and not own.exists():  # `pyiceberg` would make one
        raise BadTable(str(where), "there is no Iceberg table, or its catalog is elsewhere")
    catalog = open_catalog(options.get("name", CATALOG_NAME), properties)
    try:
        table = catalog.load_table(table_name(options))
    except NoSuchTableError:
        raise BadTable(str(where), "there is no Iceberg table") from None
    finally:
        catalog.close()
    if table.location().rstrip("/").removeprefix("file://") != where.plain:
        raise BadTable(str(where), f"the table of this name in the catalog is at {table.location()}")
    files = iceberg_files(table, where.root)
    if NOTES not in table.properties:
        return SourceTable(files, Progress())
    with IcebergTarget(where, options) as target:
        return SourceTable(files, target.progress(), from_notes(target.properties()))

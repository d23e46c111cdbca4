"""Iceberg tables, by `pyiceberg`.

How far an export came is in the table's property `octavo.progress`, which the commit that adds the files sets. Every
export makes a snapshot, even if it adds no file, and a commit fails if there is a new snapshot since the one on which
it is based: so of two exports at the same time one fails. `pyiceberg` would try again by itself; the table forbids it.
The snapshot and the table name the same export in `octavo.export`, so that a rollback is noticed.

A catalog knows where the newest metadata of a table are. Unless another is given, it is an SQLite file in the folder of
the table. Metadata hold absolute paths, so that the folder cannot be moved.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from traceback import walk_tb
from typing import Any, ClassVar, Final, Self

import pyarrow as pa

from octavo.errors import BadTable, InvalidInput
from octavo.spark.tables.addresses import TableAddress, parse_address
from octavo.spark.tables.lake import LakeTarget, library_errors, refuse_other_types, write_notes
from octavo.spark.tables.progress import Progress
from octavo.spark.tables.target import PARTITIONED_BY
from octavo.spark.tables.written import WrittenFile, parse_path

try:
    from pyiceberg.catalog import Catalog, load_catalog
    from pyiceberg.conversions import from_bytes
    from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
    from pyiceberg.io.pyarrow import parquet_file_to_data_file, schema_to_pyarrow
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.types import TimestamptzType
except ModuleNotFoundError:
    raise InvalidInput("Iceberg tables need the package pyiceberg: pip install 'octavo[tables]' brings it") from None

PROGRESS: Final = "octavo.progress"
_EXPORT: Final = "octavo.export"  # the last export, in the table's properties and in the summary of its snapshot
CATALOG_FILE: Final = "catalog.db"
CATALOG_NAME: Final = "octavo"
TABLE_NAME: Final = "octavo.records"
_RETRIES: Final = "commit.retry.num-retries"
_SETTINGS: Final = {
    "format-version": "2",
    _RETRIES: "0",
    # an export every few seconds would fill the folder with old metadata and each snapshot with small manifests
    "write.metadata.delete-after-commit.enabled": "true",
    "commit.manifest-merge.enabled": "true",
}
_REASON: Final = "parse_error"  # the column that is null unless the row's value was rejected


class IcebergTarget(LakeTarget):
    """An Iceberg table. `IcebergTarget.open` opens it."""

    format = "iceberg"
    has_partition_columns = True
    lost: ClassVar = (CommitFailedException,)

    @classmethod
    def open(cls, address: str, options: Mapping[str, str]) -> Self:
        """Open the table at an address, which need not exist.

        The options are properties of its catalog as `pyiceberg` takes them, and two of ours: `name` of the catalog, and
        `table` in it. Raises `BadTable` if something else is there, and `InvalidInput` for a table in a bucket without
        a catalog.
        """
        found = parse_address(address)
        with library_errors(found):
            return cls(found, options)

    def __init__(self, address: TableAddress, options: Mapping[str, str]) -> None:
        super().__init__(address)
        self._location: Final = f"file://{address.plain}" if address.root.is_local else address.plain
        self._catalog_name: Final = options.get("name", CATALOG_NAME)
        self._table_name: Final = table_name(options)
        self._properties: Final = catalog_properties(address, options)
        self._catalog: Catalog | None = None
        self._table: Table | None = None
        try:
            self._load()
        except BaseException:
            self.close()  # nobody has it who could
            raise

    def _load(self) -> None:
        """Load the newest metadata of the table, if it exists."""
        try:
            if self._table is None:
                if not self._has_catalog():
                    self._expect_nothing_else()
                    return
                self._table = self._open_catalog().load_table(self._table_name)
                if self._table.location().rstrip("/") != self._location:
                    where = self._table.location()
                    self._table = None
                    raise BadTable(str(self.address), f"the table of this name in the catalog is at {where}")
            else:
                self._table.refresh()
        except NoSuchTableError:
            self._expect_nothing_else()
        else:
            self._own_notes(self._table.properties)

    def _has_catalog(self) -> bool:
        """Whether the catalog exists. `pyiceberg` creates an SQLite file as soon as it opens it."""
        own = f"sqlite:///{self.address.plain}/{CATALOG_FILE}"
        return self._properties.get("uri") != own or (self.address.root.path() / CATALOG_FILE).exists()

    def _expect_nothing_else(self) -> None:
        if not self.address.has_only(CATALOG_FILE, f"{CATALOG_FILE}-journal", "metadata"):
            raise BadTable(str(self.address), "something else than an Iceberg table of this catalog is there")

    def _open_catalog(self) -> Catalog:
        if self._catalog is None:
            self._catalog = open_catalog(self._catalog_name, self._properties)
        return self._catalog

    @property
    def _existing(self) -> Table:
        if self._table is None:
            raise BadTable(str(self.address), "there is no Iceberg table")
        return self._table

    def schema(self) -> pa.Schema | None:
        """Return all columns of the table; None if it does not exist yet."""
        if self._table is None:
            return None
        return _small(schema_to_pyarrow(self._table.schema(), include_field_ids=False))

    def _create(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        if self.address.root.is_local:
            self.address.root.path().mkdir(parents=True, exist_ok=True)
        catalog = self._open_catalog()
        settings = {**_SETTINGS, **write_notes(properties)}
        try:
            catalog.create_namespace_if_not_exists(self._table_name[:-1])
            with catalog.create_table_transaction(
                self._table_name, schema, location=self._location, properties=settings
            ) as transaction:
                stored = schema_to_pyarrow(transaction.table_metadata.schema(), include_field_ids=False)
                refuse_other_types(schema, _small(stored), "Iceberg")
                transaction.set_properties(_no_metrics(transaction.table_metadata.schema()))
                with transaction.update_spec() as spec:
                    for name in PARTITIONED_BY:
                        spec.add_identity(name)
        except (TableAlreadyExistsError, CommitFailedException) as error:
            raise self._conflict("the table was just created by another export") from error
        self._load()

    def properties(self) -> dict[str, str]:
        """Return our own notes about the table."""
        return self._own_notes(self._existing.properties)

    def _add_columns(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        self._load()
        known = self.schema()
        assert known is not None
        new = pa.schema([field.with_nullable(True) for field in schema if field.name not in known.names])
        try:
            with self._transaction() as transaction:
                if new.names:
                    with transaction.update_schema() as update:
                        update.union_by_name(new)
                    stored = schema_to_pyarrow(transaction.table_metadata.schema(), include_field_ids=False)
                    refuse_other_types(new, _small(stored), "Iceberg")
                    transaction.set_properties(_no_metrics(transaction.table_metadata.schema()))
                transaction.set_properties(write_notes(properties))
        except CommitFailedException as error:
            raise self._conflict("the table was changed by another") from error

    def _transaction(self) -> Transaction:
        """Begin a transaction on the loaded snapshot, which is not tried again on a newer one."""
        table = self._existing
        if table.properties.get(_RETRIES) != "0":
            with table.transaction() as transaction:
                transaction.set_properties({_RETRIES: "0"})
        return table.transaction()

    def _read(self) -> Progress:
        self._load()
        text = None if self._table is None else self._table.properties.get(PROGRESS)
        if text is None:
            return Progress()
        try:
            return Progress.from_fields(json.loads(text))
        except ValueError:
            raise BadTable(str(self.address), f"its property {PROGRESS} is not what an export writes") from None

    def _set_back(self) -> str | None:
        table = self._table
        last = None if table is None else table.properties.get(_EXPORT)
        if table is None or last is None:
            return None
        current = snapshot = table.current_snapshot()
        while snapshot is not None:
            export = None if snapshot.summary is None else snapshot.summary[_EXPORT]
            if export == last:
                return None
            parent = snapshot.parent_snapshot_id
            older = None if parent is None else table.snapshot_by_id(parent)
            if export is not None or parent is None:
                break
            if older is None:
                return None  # it has expired, so nobody can tell
            snapshot = older
        return "no snapshot" if current is None else f"an earlier snapshot ({current.snapshot_id})"

    def _commit(self, files: Sequence[WrittenFile], before: Progress, after: Progress) -> None:
        export = {_EXPORT: uuid.uuid4().hex}
        with self._transaction() as transaction:
            transaction.set_properties({PROGRESS: json.dumps(after.to_fields()), **export})
            if files:
                paths = [self._absolute(file.path) for file in files]
                # no two files have the same name
                transaction.add_files(paths, snapshot_properties=export, check_duplicate_files=False)
            else:
                with transaction.update_snapshot(snapshot_properties=export).fast_append():
                    pass  # a snapshot without new files, so that others notice

    def _replace(self, removed: Sequence[WrittenFile], added: Sequence[WrittenFile]) -> None:
        gone = {self._absolute(file.path) for file in removed}
        io = self._existing.io
        with self._transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
            for data_file in self._data_files():
                if data_file.file_path in gone:
                    overwrite.delete_data_file(data_file)
            for file in added:
                path = self._absolute(file.path)
                overwrite.append_data_file(parquet_file_to_data_file(io, transaction.table_metadata, path))

    def _absolute(self, path: str) -> str:
        return f"{self._location}/{path}"

    def _data_files(self, *, partly_deleted: bool = True) -> Iterable[DataFile]:
        tasks = self._existing.scan().plan_files() if self._table is not None else ()
        return [task.file for task in tasks if partly_deleted or not task.delete_files]

    def _paths(self) -> Collection[str]:
        begin = self._location + "/"
        return [file.file_path.removeprefix(begin) for file in self._data_files()]

    def files(self) -> Iterable[WrittenFile]:
        """Return the data files that an export wrote, without those from which rows were deleted."""
        begin = self._location + "/"
        for file in self._data_files(partly_deleted=False):
            written = self._written(file, file.file_path.removeprefix(begin))
            if written is not None:
                yield written

    def _written(self, file: DataFile, path: str) -> WrittenFile | None:
        """Return a data file as an export has written it; None if it did not."""
        parts = parse_path(path)
        if parts is None:
            return None
        schema = self._existing.schema()
        names = schema.column_names
        reason = (file.null_value_counts or {}).get(schema.find_field(_REASON).field_id) if _REASON in names else None
        return WrittenFile(
            path=path,
            topic=parts.topic,
            partition=parts.partition,
            day=parts.day,
            first_offset=parts.first_offset,
            last_offset=parts.last_offset,
            row_count=file.record_count,
            size=file.file_size_in_bytes,
            min_timestamp_us=self._time(file.lower_bounds),
            max_timestamp_us=self._time(file.upper_bounds),
            rejected=0 if reason is None else file.record_count - reason,
        )

    def _time(self, bounds: Mapping[int, bytes] | None) -> int | None:
        field_id = self._existing.schema().find_field("timestamp").field_id
        data = (bounds or {}).get(field_id)
        return None if data is None else int(from_bytes(TimestamptzType(), data))

    def close(self) -> None:
        """Close the catalog. May be called more than once."""
        if self._catalog is not None:
            self._catalog.close()


def open_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Return the catalog of that name, as `pyiceberg` loads it.

    If that fails, what was opened meanwhile is closed: a catalog that asks its database already when it is made leaves
    a connection behind, which only the frame that made it knows.
    """
    try:
        return load_catalog(name, **properties)
    except Exception as error:
        made = (frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__))
        for unfinished in made:
            if isinstance(unfinished, Catalog):
                unfinished.close()
        raise


def table_name(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the name of a table in its catalog. Raises `InvalidInput`."""
    name = tuple(options.get("table", TABLE_NAME).split("."))
    if len(name) < 2 or not all(name):
        raise InvalidInput(f"a table in a catalog is named NAMESPACE.TABLE, not {options['table']}")
    return name


def catalog_properties(address: TableAddress, options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the catalog of a table at this address. Raises `InvalidInput` if it needs one."""
    given = {name: value for name, value in options.items() if name not in ("name", "table")}
    names = {
        "region": "s3.region",
        "endpoint": "s3.endpoint",
        "access_key": "s3.access-key-id",
        "secret_key": "s3.secret-access-key",
    }
    found = {names[name]: value for name, value in address.s3.items()}
    if address.root.is_local:
        found["py-io-impl"] = "octavo.spark.tables.synced_io.SyncedFileIO"
    if "name" not in options and "uri" not in options and "type" not in options:
        if not address.root.is_local:
            raise InvalidInput("an Iceberg table that is not on a local disk needs a catalog, given by its uri")
        found["uri"] = f"sqlite:///{address.plain}/{CATALOG_FILE}"
    return {**found, **given}


def _no_metrics(schema: Schema) -> dict[str, str]:
    """Return properties for the columns of which files have no statistics, or `pyiceberg` warns at every file."""
    top = {field.name for field in schema.fields} - {"key", "value"}
    without = {schema.find_column_name(field_id) for field_id in schema.field_ids} - top
    return {f"write.metadata.metrics.column.{path}": "none" for path in without if path is not None}


def _small(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the types that tasks write, in place of those with 64 bits for lengths."""
    return pa.schema([field.with_type(_small_type(field.type)) for field in schema])


def _small_type(kind: Any) -> Any:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_small_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_small_type(kind.key_type), kind.item_field.with_type(_small_type(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_small_type(field.type)) for field in kind])
    return kind

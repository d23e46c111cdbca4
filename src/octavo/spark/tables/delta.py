"""Delta tables, by `deltalake`.

How far an export came is in application transactions of the commit that adds the files:

    octavo                                      number of exports that were committed
    octavo/TOPIC/PARTITION/GENERATION/ID        first offset that is not in the table yet

The generation counts how often the topic was created again; the last one holds. Every export writes the first of them,
so that of two at the same time one fails: a commit conflicts with others since its snapshot that write the same id.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, Self

import pyarrow as pa

from octavo.errors import BadTable, InvalidInput
from octavo.log.files.meta_properties import read_uuid, write_uuid
from octavo.log.names import TopicPartition
from octavo.log.storage import DISK
from octavo.spark.tables.addresses import TableAddress, parse_address
from octavo.spark.tables.delta_log import LOG, find_restore, read_transactions
from octavo.spark.tables.lake import LakeTarget, library_errors, refuse_other_types, write_notes
from octavo.spark.tables.progress import Progress, Reached
from octavo.spark.tables.target import PARTITIONED_BY
from octavo.spark.tables.written import WrittenFile, day_text, parse_path

try:
    from deltalake import DeltaTable, Field, Schema
    from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
    from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction
except ModuleNotFoundError:
    raise InvalidInput("Delta tables need the package deltalake: pip install 'octavo[tables]' brings it") from None

_APP: Final = "octavo"
_APP_ID: Final = re.compile(r"octavo/([^/]+)/(0|[1-9][0-9]*)/(0|[1-9][0-9]*)/([^/]+)")
_FORGETS: Final = "delta.setTransactionRetentionDuration"  # readers drop application transactions that are older
_NO_ID: Final = "none"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REASON: Final = "parse_error"  # the column that is null unless the row's value was rejected
_MILLISECOND: Final = 1000


class DeltaTarget(LakeTarget):
    """A Delta table. `DeltaTarget.open` opens it."""

    format = "delta"
    has_partition_columns = False
    lost: ClassVar = (CommitFailedError,)

    @classmethod
    def open(cls, address: str, options: Mapping[str, str]) -> Self:
        """Open the table at an address, which need not exist. The options are storage options of `deltalake`.

        Raises `BadTable` if something else is there.
        """
        found = parse_address(address)
        with library_errors(found):
            return cls(found, options)

    def __init__(self, address: TableAddress, options: Mapping[str, str]) -> None:
        super().__init__(address)
        self._options: Final = {**s3_options(address), **options}
        self._table: DeltaTable | None = None
        self._exports = 0  # number of exports in the loaded snapshot
        self._generations: dict[TopicPartition, int] = {}
        self._load()

    def _load(self) -> None:
        try:
            if self._table is None:
                self._table = DeltaTable(self.address.plain, storage_options=self._options)
            else:
                self._table.update_incremental()
        except TableNotFoundError:
            if not self.address.has_only(LOG):
                raise BadTable(str(self.address), "something else than a Delta table is there") from None
        else:
            configuration = self._table.metadata().configuration
            self._own_notes(configuration)
            if _FORGETS in configuration:
                raise BadTable(str(self.address), f"with its property {_FORGETS} it forgets how far exports came")

    @property
    def _existing(self) -> DeltaTable:
        if self._table is None:
            raise BadTable(str(self.address), "there is no Delta table")
        return self._table

    def schema(self) -> pa.Schema | None:
        """Return all columns of the table; None if it does not exist yet."""
        return None if self._table is None else pa.schema(self._table.schema().to_arrow())

    def _create(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        refuse_other_types(schema, pa.schema(Schema.from_arrow(schema).to_arrow()), "Delta")
        try:
            DeltaTable.create(
                self.address.plain,
                schema,
                partition_by=list(PARTITIONED_BY),
                configuration=dict(write_notes(properties)),
                storage_options=self._options,
                raise_if_key_not_exists=False,
            )
        except DeltaError:
            self._load()
            if self._table is not None:
                raise self._conflict("the table was just created by another export") from None
            raise
        self._load()
        self._sync_log(-1)

    def properties(self) -> dict[str, str]:
        """Return our own notes about the table."""
        return self._own_notes(self._existing.metadata().configuration)

    def _add_columns(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        self._load()
        table, version = self._existing, self._existing.version()
        known = self._names()
        new = pa.schema([field for field in schema if field.name not in known])
        refuse_other_types(new, pa.schema(Schema.from_arrow(new).to_arrow()), "Delta")
        try:
            if new.names:
                table.alter.add_columns([Field.from_arrow(field.with_nullable(True)) for field in new])
            table.alter.set_table_properties(write_notes(properties), raise_if_not_exists=False)
        except CommitFailedError as error:
            raise self._conflict("the table was changed by another") from error
        self._load()
        self._sync_log(version)

    def _read(self) -> Progress:
        self._load()
        if self._table is None:
            return Progress()
        found = read_transactions(self.address.root, self._table.version(), _APP)
        self._exports = found.pop(_APP, 0)
        if self._exports != (self._table.transaction_version(_APP) or 0):
            raise BadTable(str(self.address), "its log and its library do not agree on the number of exports")
        reached: dict[TopicPartition, Reached] = {}
        self._generations = {}
        for app_id, offset in found.items():
            match = _APP_ID.fullmatch(app_id)
            if match is None:
                continue
            partition, generation = TopicPartition(match[1], int(match[2])), int(match[3])
            if generation >= self._generations.get(partition, 0):
                topic_id = None if match[4] == _NO_ID else read_uuid(match[4])
                reached[partition] = Reached(topic_id, offset)
                self._generations[partition] = generation
        return Progress(reached)

    def _set_back(self) -> str | None:
        if self._table is None or not self._exports:
            return None
        restored = find_restore(self.address.root, self._table.version(), _APP)
        return None if restored is None else f"an earlier version ({restored})"

    def _transactions(self, before: Progress, after: Progress) -> list[Transaction]:
        written = [Transaction(_APP, self._exports + 1)]
        for partition, (topic_id, offset) in after.changed_since(before).items():
            generation = self._generations.get(partition, 0)
            if partition in before and before[partition].topic_id != topic_id:
                generation += 1
            text = _NO_ID if topic_id is None else write_uuid(topic_id)
            app_id = f"{_APP}/{partition.topic}/{partition.partition}/{generation}/{text}"
            written.append(Transaction(app_id, offset))
        return written

    def _commit(self, files: Sequence[WrittenFile], before: Progress, after: Progress) -> None:
        names = self._names()
        properties = CommitProperties(app_transactions=self._transactions(before, after))
        self._write([_add(file, names, changes=True) for file in files], properties)

    def _replace(self, removed: Sequence[WrittenFile], added: Sequence[WrittenFile]) -> None:
        now_ms = _now_ms()
        gone = [RemoveAction(file.path, False, now_ms, file.size, _partition_values(file)) for file in removed]
        names = self._names()
        # `deltalake` does not notice that two commits remove the same file if neither changes data. So nothing may
        # be committed meanwhile: this commit is not tried again on a newer snapshot.
        properties = CommitProperties(max_commit_retries=0)
        self._write([*gone, *(_add(file, names, changes=False) for file in added)], properties)

    def _write(self, actions: list[AddAction | RemoveAction], properties: CommitProperties) -> None:
        table, version = self._existing, self._existing.version()
        columns = list(PARTITIONED_BY)
        table.create_write_transaction(actions, "append", table.schema(), columns, commit_properties=properties)
        self._load()
        self._sync_log(version)

    def _sync_log(self, version: int) -> None:
        """Have the commits after a version on a local disk: `deltalake` does not wait for that."""
        if not self.address.root.is_local:
            return
        folder = self.address.root.path() / LOG
        for number in range(version + 1, self._existing.version() + 1):
            file = DISK.open(folder / f"{number:020d}.json")
            try:
                file.sync()
            finally:
                file.close()
        DISK.sync_folders([folder, folder.parent])

    def _names(self) -> set[str]:
        """Return the names of the columns."""
        return set(pa.schema(self._existing.schema().to_arrow()).names)

    def _actions(self) -> pa.Table:
        return pa.table(self._existing.get_add_actions(flatten=True))

    def _paths(self) -> Collection[str]:
        return [] if self._table is None else self._actions()["path"].to_pylist()

    def files(self) -> Iterable[WrittenFile]:
        """Return the data files that an export wrote, without those from which rows were deleted."""
        if self._table is None:
            return
        actions = self._actions()
        partly_deleted = self._partly_deleted()
        for action in actions.to_pylist():
            file = _written(action)
            if file is not None and file.path not in partly_deleted:
                yield file

    def _partly_deleted(self) -> set[str]:
        """Return the paths of files with a deletion vector."""
        table = self._existing
        if "deletionVectors" not in (table.protocol().reader_features or ()):
            return set()
        begin = table.table_uri.rstrip("/") + "/"
        vectors = pa.table(table.deletion_vectors())
        return {path.removeprefix(begin) for path in vectors.column(0).to_pylist()}


def s3_options(address: TableAddress) -> dict[str, str]:
    """Return the storage options for what an address tells."""
    names = {
        "region": "AWS_REGION",
        "endpoint": "AWS_ENDPOINT_URL",
        "access_key": "AWS_ACCESS_KEY_ID",
        "secret_key": "AWS_SECRET_ACCESS_KEY",
    }
    options = {names[name]: value for name, value in address.s3.items()}
    if address.s3.get("endpoint", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _partition_values(file: WrittenFile) -> dict[str, str | None]:
    return {"topic": file.topic, "day": None if file.day is None else day_text(file.day)}


def _add(file: WrittenFile, names: set[str], *, changes: bool) -> AddAction:
    statistics = json.dumps(_statistics(file, names))
    return AddAction(file.path, file.size, _partition_values(file), _now_ms(), changes, statistics)


def _statistics(file: WrittenFile, names: set[str]) -> dict[str, Any]:
    """Return what Delta's readers skip files by."""
    least: dict[str, Any] = {"partition": file.partition, "offset": file.first_offset}
    most: dict[str, Any] = {"partition": file.partition, "offset": file.last_offset}
    nulls = {"partition": 0, "offset": 0, "timestampType": 0}
    if _REASON in names:
        nulls[_REASON] = file.row_count - file.rejected
    if file.min_timestamp_us is None or file.max_timestamp_us is None:
        nulls["timestamp"] = file.row_count
    else:
        if file.day is not None:
            nulls["timestamp"] = 0
        low, high = _time_text(file.min_timestamp_us), _time_text(file.max_timestamp_us + _MILLISECOND - 1)
        if low is not None and high is not None:
            least["timestamp"], most["timestamp"] = low, high
    return {"numRecords": file.row_count, "minValues": least, "maxValues": most, "nullCount": nulls}


def _time_text(microseconds: int) -> str | None:
    """Return a time as it is in statistics, which have milliseconds; None if its year has more than four digits."""
    try:
        moment = _EPOCH + timedelta(milliseconds=microseconds // _MILLISECOND)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _written(action: Mapping[str, Any]) -> WrittenFile | None:
    """Return the file of an add action; None if no export has written it."""
    parts = parse_path(action["path"])
    count = action.get("num_records")
    if parts is None or count is None:
        return None
    low, high = action.get("min.timestamp"), action.get("max.timestamp")
    nulls = action.get(f"null_count.{_REASON}")
    return WrittenFile(
        path=action["path"],
        topic=parts.topic,
        partition=parts.partition,
        day=parts.day,
        first_offset=parts.first_offset,
        last_offset=parts.last_offset,
        row_count=count,
        size=action["size_bytes"],
        min_timestamp_us=None if low is None else (low - _EPOCH) // timedelta(microseconds=1),
        max_timestamp_us=None if high is None else (high - _EPOCH) // timedelta(microseconds=1),
        rejected=0 if nulls is None else count - nulls,
    )

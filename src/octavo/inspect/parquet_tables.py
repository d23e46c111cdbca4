"""Write records and entries to Parquet files: one table for records, and one for each other kind of file.

`records` has the fields of a line of JSON (`record_lines`) as columns: keys, values and header values as bytes,
and `control` as JSON; so are `decodedKey` and `decodedValue`, which are there if records are decoded. The timestamp is
stored in milliseconds, so every one that Kafka stores is exact.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from octavo.errors import InvalidInput, Unreadable
from octavo.inspect.control_rows import control_rows
from octavo.inspect.decoding.record_decoding import RecordDecoding
from octavo.inspect.descriptions import TIMESTAMP_TYPES
from octavo.inspect.entries import fields_of, has_entries, name_of, read_entries
from octavo.inspect.json_lines import COLUMNS
from octavo.inspect.kinds import Kind, check_regular, kind_of, reason_of, topic_and_partition
from octavo.inspect.segment_file import SegmentFile
from octavo.records.arrow.schema import FIELDS
from octavo.records.layout import TimestampType

RECORDS: Final = "records"

_SUFFIX: Final = ".parquet"
_UNFINISHED: Final = ".part"
_ROWS: Final = 1 << 16  # entries that are collected before they are written
_NAMES: Final = pa.dictionary(pa.int32(), pa.string())
_BATCH_COLUMNS: Final = ("producerId", "producerEpoch", "sequence", "isTransactional", "isControl", "magic")
_SCHEMA: Final = pa.schema(
    [
        pa.field("topic", _NAMES),
        pa.field("partition", pa.int32()),
        FIELDS["offset"],
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("timestampType", _NAMES, nullable=False),
        FIELDS["key"],
        FIELDS["value"],
        FIELDS["headers"],
        *(FIELDS[name] for name in _BATCH_COLUMNS),
        pa.field("compression", _NAMES, nullable=False),
        FIELDS["leaderEpoch"],
        pa.field("file", _NAMES, nullable=False),
        FIELDS["position"],
        pa.field("control", pa.string()),
    ]
)
_DECODED: Final = [pa.field(name, pa.string()) for name in ("decodedKey", "decodedValue", "decodeError")]
_TEXT: Final = ("kind", "topic", "name", "value", "file")


class ParquetTables:
    """Writes tables below `output`: a file if its name ends in `.parquet`, which has room for one table, else a folder.

    A file appears under its name when it is complete, and then replaces the table of an earlier dump. A folder is for
    one dump. A context manager: an error leaves no file behind.
    """

    def __init__(self, output: Path, decoding: RecordDecoding | None = None) -> None:
        """Raises `InvalidInput` if something is in the way, or the folder cannot be made."""
        self._output: Final = output
        self._decoding: Final = decoding
        self._is_file: Final = output.suffix == _SUFFIX
        if self._is_file:
            _check_file(output)
        else:
            _make_folder(output)
        self._unique: Final = f".{token_hex(4)}{_UNFINISHED}"  # another dump may be writing at the same time
        self._writers: Final[dict[str, pq.ParquetWriter]] = {}

    def add_records(self, segment: SegmentFile) -> Iterator[None]:
        """Write the wanted records of a file, some at each step. Raises `FormatError` at damage."""
        topic, partition = topic_and_partition(segment.path)
        schema = _SCHEMA if self._decoding is None else pa.schema([*_SCHEMA, *_DECODED])
        writer = self._writer(RECORDS, schema)
        for chunk in segment.chunks(COLUMNS):
            rows = _records(chunk, topic, partition, str(segment.path))
            if self._decoding is not None:
                decoded = _decoded(self._decoding, chunk)
                rows = pa.RecordBatch.from_arrays([*rows.columns, *decoded], schema=schema)
            writer.write_batch(rows)
            yield

    def add_entries(self, path: Path) -> None:
        """Write the entries of a file of another kind. Raises `Unreadable`, and `CorruptFile` at damage."""
        kind = kind_of(path)
        schema = _schema_of(kind)
        writer = self._writer(name_of(kind), schema)
        entries = read_entries(path)
        while rows := list(islice(entries, _ROWS)):
            writer.write_table(pa.Table.from_pylist(rows, schema))

    def _writer(self, table: str, schema: pa.Schema) -> pq.ParquetWriter:
        if table not in self._writers:
            if self._is_file and self._writers:
                names = f"{next(iter(self._writers))} and {table}"
                raise InvalidInput(f"{self._output} has room for one table, and there are {names}: name a folder")
            try:
                self._writers[table] = pq.ParquetWriter(self._unfinished(table), schema, compression="zstd")
            except OSError as error:
                raise OSError(_not_written(self._path(table), error)) from None
        return self._writers[table]

    def _path(self, table: str) -> Path:
        return self._output if self._is_file else self._output / f"{table}{_SUFFIX}"

    def _unfinished(self, table: str) -> Path:
        path = self._path(table)
        return path.with_name(path.name + self._unique)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for table, writer in self._writers.items():
            if error is None:
                writer.close()
                self._unfinished(table).replace(self._path(table))
            else:
                with contextlib.suppress(OSError):
                    writer.close()
                self._unfinished(table).unlink(missing_ok=True)


def _check_file(output: Path) -> None:
    """Raise `InvalidInput` if something is in the way that is no table of an earlier dump."""
    if output.is_symlink():
        raise InvalidInput(f"{output} is a symbolic link, which would be replaced: name the file that it leads to")
    if not output.parent.is_dir():
        raise InvalidInput(f"{output}: there is no folder {output.parent}")
    try:
        if not os.path.lexists(output):
            return
        check_regular(output)
        names = pq.read_schema(output).names
    except (OSError, Unreadable, pa.ArrowException):
        names = []
    tables = [_SCHEMA.names, [*_SCHEMA.names, *(field.name for field in _DECODED)]]
    tables += [list(fields_of(kind)) for kind in Kind if has_entries(kind)]
    if names not in tables:
        raise InvalidInput(f"{output} is in the way, and is no table of an earlier dump: name another file")


def _make_folder(output: Path) -> None:
    """Make the folder. Raises `InvalidInput` if that is not possible, or if it has tables of an earlier dump."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        names = [RECORDS, *(name_of(kind) for kind in Kind if has_entries(kind))]
        found = [f"{name}{_SUFFIX}" for name in names if os.path.lexists(output / f"{name}{_SUFFIX}")]
    except OSError as error:
        raise InvalidInput(_not_written(output, error)) from None
    if found:
        raise InvalidInput(f"{output} has tables of an earlier dump, {', '.join(found)}: name another folder")


def _not_written(path: Path, error: OSError) -> str:
    return f"{path}: cannot be written: {reason_of(error)}"


def _records(chunk: pa.RecordBatch, topic: str | None, partition: int | None, file: str) -> pa.RecordBatch:
    rows = chunk.num_rows

    def same(value: str | None) -> pa.Array:
        names = pa.array([] if value is None else [value], pa.string())
        which = pa.repeat(pa.scalar(None if value is None else 0, pa.int32()), rows)
        return pa.DictionaryArray.from_arrays(which, names)

    kinds = sorted(TimestampType)
    kind_of_row = chunk.column("timestampType").to_numpy() - np.int32(kinds[0])
    names = pa.array([TIMESTAMP_TYPES[kind] for kind in kinds], pa.string())
    columns: dict[str, pa.Array] = {
        **{name: chunk.column(name) for name in chunk.schema.names},
        "topic": same(topic),
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), rows),
        "timestamp": chunk.column("timestampMs").view(_SCHEMA.field("timestamp").type),
        "timestampType": pa.DictionaryArray.from_arrays(pa.array(kind_of_row, pa.int32()), names),
        "compression": chunk.column("compression").dictionary_encode(),
        "file": same(file),
        "control": _controls(chunk),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in _SCHEMA.names], schema=_SCHEMA)


def _decoded(decoding: RecordDecoding, chunk: pa.RecordBatch) -> list[pa.Array]:
    """Return the columns of `_DECODED`, which are null in control records."""
    rows = pc.if_else(chunk.column("isControl"), None, np.arange(chunk.num_rows))
    keys, values = (chunk.column(name).take(rows).to_pylist() for name in ("key", "value"))
    found = decoding.decode(keys, values)
    return [pa.array([record[at] for record in found], pa.string()) for at in range(len(_DECODED))]


def _controls(chunk: pa.RecordBatch) -> pa.Array:
    found = control_rows(chunk)
    if found is None:
        return pa.nulls(chunk.num_rows, pa.string())
    which = np.full(chunk.num_rows, -1, np.int64)
    which[found.rows] = found.which
    return pa.array(found.texts, pa.string()).take(pa.array(which, mask=which < 0))


def _schema_of(kind: Kind) -> pa.Schema:
    types: dict[str, Any] = dict.fromkeys(_TEXT, pa.string())
    return pa.schema([pa.field(name, types.get(name, pa.int64())) for name in fields_of(kind)])

"""What a task writes: data files, each with rows of one partition and one day, of at most half a gigabyte.

Rows wait until there are enough of a partition and a day for a row group. If rows of many days come mixed, those of
the day that has the most are written before they take too much memory; and if the files of many days are open, the one
that was not written to for longest is finished. So both memory and open files are bounded, whatever the timestamps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from octavo.log.names import TopicPartition
from octavo.spark.tables.columns import DAY, PARSE_ERROR, timestamp_range_us
from octavo.spark.tables.place import FilePlace, NewFile
from octavo.spark.tables.target import PARTITIONED_BY
from octavo.spark.tables.written import WrittenFile, new_path

ROW_GROUP_SIZE: Final = 64 << 20  # bytes in memory. Larger ones take more memory, and are no faster to write
MAX_WAITING: Final = 128 << 20  # bytes in memory of all rows that wait
MAX_OPEN: Final = 32
FILE_SIZE: Final = 384 << 20  # from this size on, a file is finished

_NAMED_BY_FEW: Final = ("topic", "day", "partition", "timestampType", "compression", "magic", "file", "leaderEpoch")
_ASCENDING: Final = ("offset", "timestamp")


def parquet_options(schema: pa.Schema, compression: str) -> dict[str, Any]:
    """Return how files are encoded.

    Measured: dictionaries of keys and values take a fifth more time, and are given up because they get too large.
    Offsets and timestamps grow slowly, and so take almost no room as differences.
    """
    typed = set(schema.names) - {"key", "value", "headers"}
    return {
        "compression": compression,
        "use_dictionary": [name for name in schema.names if name in _NAMED_BY_FEW],
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in _ASCENDING if name in schema.names},
        "write_statistics": sorted(typed),
        "store_schema": True,
    }


class DataFiles:
    """The data files of one task."""

    def __init__(self, place: FilePlace, schema: pa.Schema, ends: Mapping[TopicPartition, int]) -> None:
        """Open nothing yet.

        schema: all columns of the table
        ends: for each partition the offset that its rows are below
        """
        self._place: Final = place
        left_out = () if place.has_partition_columns else PARTITIONED_BY
        self._schema: Final = pa.schema([field for field in schema if field.name not in left_out])
        self._ends: Final = ends
        self._parts: Final[dict[tuple[TopicPartition, int | None], _Part]] = {}  # the last to be written to comes last
        self._waiting = 0
        self._written: Final[list[WrittenFile]] = []

    def add(self, partition: TopicPartition, day: int | None, rows: pa.RecordBatch) -> None:
        """Add rows, with all columns of the table but `day`. Rows of a partition come one after the other."""
        if any(key[0] != partition for key in self._parts):
            self._finish_all()
        part = self._parts.get((partition, day))
        if part is None:
            part = self._parts[partition, day] = _Part(self._place, self._schema, partition, day)
        before = part.waiting
        part.add(rows)
        self._waiting += part.waiting - before
        if part.waiting >= ROW_GROUP_SIZE:
            self._write(part)
        while self._waiting >= MAX_WAITING:
            self._write(max(self._parts.values(), key=lambda each: each.waiting))

    def finish(self) -> list[WrittenFile]:
        """Complete all files, and return what is in them."""
        self._finish_all()
        return self._written

    def discard(self) -> None:
        """Remove all files."""
        for part in self._parts.values():
            part.discard()
        for file in self._written:
            self._place.remove(file.path)

    def _write(self, part: _Part) -> None:
        key = part.partition, part.day
        self._waiting -= part.waiting
        if not part.is_open:
            opened = [each for each, other in self._parts.items() if other.is_open]
            if len(opened) >= MAX_OPEN:
                self._finish(opened[0])
        if part.write(self._ends[part.partition]) >= FILE_SIZE:
            self._finish(key)
        else:
            self._parts[key] = self._parts.pop(key)

    def _finish_all(self) -> None:
        for key in sorted(self._parts, key=lambda key: not self._parts[key].is_open):
            self._finish(key)

    def _finish(self, key: tuple[TopicPartition, int | None]) -> None:
        part = self._parts.pop(key)
        self._waiting -= part.waiting
        self._written.append(part.finish(self._ends[part.partition]))


class _Part:
    """The rows of one partition and one day: those that wait, and the file that is open for them."""

    def __init__(self, place: FilePlace, schema: pa.Schema, partition: TopicPartition, day: int | None) -> None:
        self.partition: Final = partition
        self.day: Final = day
        self.waiting = 0  # bytes in memory
        self._place: Final = place
        self._schema: Final = schema
        self._batches: list[pa.RecordBatch] = []
        self._file: NewFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._first_offset = self._last_offset = -1
        self._row_count = self._rejected = 0
        self._timestamps: list[int] = []  # the smallest and the largest

    @property
    def is_open(self) -> bool:
        """Whether a file is open."""
        return self._file is not None

    def add(self, rows: pa.RecordBatch) -> None:
        offsets = rows.column("offset")
        if not self._row_count:
            self._first_offset = offsets[0].as_py()
        self._last_offset = offsets[-1].as_py()
        self._row_count += rows.num_rows
        if PARSE_ERROR.name in rows.schema.names:
            errors = rows.column(PARSE_ERROR.name)
            self._rejected += len(errors) - errors.null_count
        timestamps = timestamp_range_us(rows)
        if timestamps is not None:
            known = [*self._timestamps, *timestamps]
            self._timestamps = [min(known), max(known)]
        self._batches.append(rows)
        self.waiting += rows.nbytes

    def write(self, end: int) -> int:
        """Write the rows that wait as a row group; return the size of the file so far. `end`: above all offsets."""
        if self._file is None:
            path = new_path(self.partition, self.day, self._first_offset, max(end - 1, self._last_offset))
            self._file = self._place.create(path)
        if self._writer is None:
            options = parquet_options(self._schema, self._place.compression)
            self._writer = pq.ParquetWriter(self._file, self._schema, **options)
        table = pa.Table.from_batches(self._batches)
        if DAY.name in self._schema.names:
            table = table.append_column(DAY, pa.repeat(pa.scalar(self.day, DAY.type), table.num_rows))
        self._writer.write_table(table.select(self._schema.names), row_group_size=table.num_rows)
        self._batches, self.waiting = [], 0
        return self._file.tell()

    def finish(self, end: int) -> WrittenFile:
        """Write what waits, and complete the file."""
        if self._batches:
            self.write(end)
        assert self._file is not None
        assert self._writer is not None
        self._writer.close()
        size = self._file.tell()
        path = self._file.finish(new_path(self.partition, self.day, self._first_offset, self._last_offset))
        earliest, latest = self._timestamps or (None, None)
        return WrittenFile(
            path=path,
            topic=self.partition.topic,
            partition=self.partition.partition,
            day=self.day,
            first_offset=self._first_offset,
            last_offset=self._last_offset,
            row_count=self._row_count,
            size=size,
            min_timestamp_us=earliest,
            max_timestamp_us=latest,
            rejected=self._rejected,
        )

    def discard(self) -> None:
        if self._file is not None:
            self._file.discard()
        if self._writer is not None:  # it writes its end in any case, also when it is collected as garbage
            with contextlib.suppress(OSError, pa.ArrowException):
                self._writer.close()

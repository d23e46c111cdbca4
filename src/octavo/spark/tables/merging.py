"""Merge small data files into larger ones: `merge_files`.

Files of one partition and one day are merged, and only those that follow each other, so that the rows of the new file
are in the order of their offsets as well. The largest files are left alone until the others together are as large: so
a row is written again only each time that its file has doubled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from octavo.spark.tables.columns import DAY, TableColumns
from octavo.spark.tables.data_files import FILE_SIZE, DataFiles
from octavo.spark.tables.notes import from_notes
from octavo.spark.tables.place import FilePlace
from octavo.spark.tables.target import Target
from octavo.spark.tables.watching import Runner
from octavo.spark.tables.written import WrittenFile

SMALL: Final = 128 << 20  # smaller files are merged
FEW: Final = 8  # as many small files are left as they are while the log is followed
ROUND_SIZE: Final = 16 << 30  # at most so many bytes are merged at once; the next merge goes on

_BATCH_SIZE: Final = 4 << 20  # bytes of the rows that are read from a file at a time
_MOST_ROWS: Final = 16_384


class Merged(NamedTuple):
    """What a merge has done."""

    removed: int = 0  # number of files
    added: int = 0


@dataclass(frozen=True)
class MergeJob:
    """What all tasks of a merge have in common."""

    columns: TableColumns
    place: FilePlace

    def run(self, files: list[WrittenFile]) -> list[WrittenFile]:
        """Write the rows of several files to a new one. They are of one partition and day, and in order."""
        ends = {file.topic_partition: file.last_offset + 1 for file in files}
        merged = DataFiles(self.place, self.columns.table, ends)
        try:
            for file in files:
                for batch in self._read(file):
                    merged.add(file.topic_partition, file.day, batch)
            return merged.finish()
        except BaseException:
            merged.discard()
            raise

    def _read(self, file: WrittenFile) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file. Columns that were added to the table later are null."""
        wanted = [field for field in self.columns.table if field.name != DAY.name]
        with self.place.open(file.path) as source, pq.ParquetFile(source) as parquet:
            for batch in _batches(parquet):
                arrays = [
                    batch.column(field.name).cast(field.type)
                    if field.name in batch.schema.names
                    else _missing(field, file, batch.num_rows)
                    for field in wanted
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(wanted))


def _batches(parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, as many at a time as their size in each row group allows."""
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        count = max(1, min(_MOST_ROWS, _BATCH_SIZE * group.num_rows // max(1, group.total_byte_size)))
        yield from parquet.iter_batches(count, row_groups=[number])


def _missing(field: pa.Field, file: WrittenFile, count: int) -> pa.Array:
    if field.name == "topic":
        return pa.repeat(pa.scalar(file.topic, field.type), count)
    return pa.nulls(count, field.type)


def merge_files(target: Target, runner: Runner, *, few: int = 1, compression: str = "snappy") -> Merged:
    """Merge small files of a table, where there are more than `few` of a partition and a day.

    Raises `ExportConflict` if an export has changed the table meanwhile; then nothing was merged.
    """
    if target.schema() is None:
        return Merged()
    columns = from_notes(target.properties())
    progress = target.progress()
    groups = list(_within(ROUND_SIZE, plan_merge(target.small_files(SMALL), few)))
    if not groups:
        return Merged()
    place = target.begin(progress, progress)
    try:
        job = MergeJob(columns, replace(place, compression=compression))
        added = runner.run(job, groups, [sum(file.size for file in group) for group in groups])
    except BaseException:
        target.abandon(place)
        raise
    removed = [file for group in groups for file in group]
    target.replace(removed, added)
    return Merged(len(removed), len(added))


def plan_merge(files: Iterable[WrittenFile], few: int) -> Iterator[list[WrittenFile]]:
    """Yield groups of files to be merged, each to one new file."""
    ordered = sorted(files, key=lambda file: (_place(file), file.first_offset))
    for _, same in groupby(ordered, key=_place):
        for run in _runs(list(same)):
            while len(run) > 1 and run[0].size > sum(file.size for file in run[1:]):
                run.pop(0)
            if len(run) > max(1, few):
                yield from _chunks(run)


def _place(file: WrittenFile) -> tuple[str, int, int]:
    return file.topic, file.partition, -1 if file.day is None else file.day


def _runs(files: list[WrittenFile]) -> Iterator[list[WrittenFile]]:
    """Divide files where their offsets overlap."""
    run: list[WrittenFile] = []
    for file in files:
        if run and file.first_offset <= run[-1].last_offset:
            yield run
            run = []
        run.append(file)
    yield run


def _chunks(run: list[WrittenFile]) -> Iterator[list[WrittenFile]]:
    """Divide files so that none of the new ones gets too large."""
    chunk: list[WrittenFile] = []
    for file in run:
        if chunk and sum(each.size for each in chunk) + file.size > FILE_SIZE:
            if len(chunk) > 1:
                yield chunk
            chunk = []
        chunk.append(file)
    if len(chunk) > 1:
        yield chunk


def _within(size: int, groups: Iterable[list[WrittenFile]]) -> Iterator[list[WrittenFile]]:
    taken = 0
    for group in groups:
        taken += sum(file.size for file in group)
        yield group
        if taken >= size:
            return

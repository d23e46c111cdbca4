"""Find out which offsets of which partitions are in the files of a table: `survey`.

A file that an export wrote has rows of one partition, in the order of their offsets, and its footer tells which
offsets. Of other files, the columns `topic`, `partition` and `offset` are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from octavo.errors import BadTable, InvalidInput
from octavo.log.names import TopicPartition
from octavo.records.layout import MAX_INT32, MAX_INT64
from octavo.spark.files import RemoteStorage, Root, shown
from octavo.spark.tables.restore.columns import has_batch_info

Int64s = npt.NDArray[np.int64]

NEEDED: Final = ("key", "value", "partition", "offset")
_BUFFER: Final = 256 << 10  # bytes that are read at a time, of each column


class DataFile(NamedTuple):
    """A file of a table."""

    root: Root
    topic: str | None = None  # of all its rows; None if they have a column `topic`
    is_exported: bool = False  # written by an export: rows of one partition, in the order of their offsets

    def __str__(self) -> str:
        return shown(self.root.address)

    def open(self) -> pq.ParquetFile:
        """Open the file. Raises `BadTable` if it is gone, or no Parquet file, and `OSError`."""
        try:
            source: Any = self.root.address
            if not self.root.is_local:
                source = cast(RemoteStorage, self.root.storage()).filesystem.open_input_file(str(self.root.path()))
            return pq.ParquetFile(source, buffer_size=_BUFFER, pre_buffer=False)
        except FileNotFoundError:
            raise BadTable(str(self), "the file is gone: the table was changed meanwhile, so import it again") from None
        except pa.ArrowException as error:
            raise BadTable(str(self), f"this is no Parquet file: {error}") from None


class Run(NamedTuple):
    """Rows of one partition in consecutive row groups of a file."""

    file: DataFile
    partition: TopicPartition
    row_groups: range
    first_offset: int
    last_offset: int
    row_count: int
    size: int  # bytes of the row groups when they are read
    is_sorted: bool  # whether the rows are in the order of their offsets
    is_shared: bool  # whether rows of other partitions are among them
    has_batch_info: bool  # whether there are columns that tell how the records were batched


def survey(file: DataFile) -> list[Run]:
    """Find out what is in a file. Raises `InvalidInput` if there are no records in it, `BadTable` and `OSError`."""
    with file.open() as opened:
        check_columns(opened.schema_arrow.names, file.topic is not None, str(file))
        runs = [run for group in range(opened.num_row_groups) for run in _of_row_group(file, opened, group)]
    return list(_joined(runs))


def check_columns(names: Iterable[str], has_topic: bool, where: str) -> None:
    """Check that the columns of a table make records. Raises `InvalidInput`."""
    missing = sorted({*NEEDED, *(() if has_topic else ("topic",))} - set(names))
    for name in ("value", "key"):
        if name in missing:
            raise InvalidInput(
                f"{where} has no column {name}: a table without raw keys and values cannot become a log again"
            )
    if missing:
        raise InvalidInput(f"{where} has no column {missing[0]}, so nobody can tell where its rows belong in a log")


def _of_row_group(file: DataFile, opened: pq.ParquetFile, group: int) -> Iterator[Run]:
    footer = opened.metadata.row_group(group)
    if not footer.num_rows:
        return
    if file.is_exported:
        partitions, offsets = limits(footer, "partition"), limits(footer, "offset")
        if partitions is not None and offsets is not None and file.topic is not None:
            partition = _partition(file, file.topic, partitions[0])
            yield Run(
                file=file,
                partition=partition,
                row_groups=range(group, group + 1),
                first_offset=offsets[0],
                last_offset=offsets[1],
                row_count=footer.num_rows,
                size=footer.total_byte_size,
                is_sorted=True,
                is_shared=False,
                has_batch_info=has_batch_info(opened.schema_arrow.names),
            )
            return
    yield from _read_runs(file, opened, group, footer.total_byte_size)


def _read_runs(file: DataFile, opened: pq.ParquetFile, group: int, size: int) -> Iterator[Run]:
    """Yield the runs of a row group, by its columns."""
    names = ["partition", "offset"] + ([] if file.topic is not None else ["topic"])
    table = opened.read_row_group(group, columns=names)
    offsets, partitions = integers(table, "offset", file), integers(table, "partition", file)
    if file.topic is not None:
        topics, numbers = [file.topic], np.zeros(len(offsets), np.int64)
    else:
        column = table.column("topic").combine_chunks()
        if column.null_count:
            raise InvalidInput(f"{file}: the column topic holds nulls, so nobody can tell where these rows belong")
        encoded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
        topics, numbers = encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
    if not len(offsets):
        return
    _check_range(file, "partition", partitions, MAX_INT32)
    _check_range(file, "offset", offsets, MAX_INT64 - 1)
    owners = numbers << 32 | partitions
    several = np.unique(owners)
    for owner in several.tolist():
        own = offsets if len(several) == 1 else offsets[owners == owner]
        partition = _partition(file, topics[owner >> 32], owner & 0xFFFFFFFF)
        yield Run(
            file=file,
            partition=partition,
            row_groups=range(group, group + 1),
            first_offset=int(own.min()),
            last_offset=int(own.max()),
            row_count=len(own),
            size=size,
            is_sorted=bool((own[1:] > own[:-1]).all()),
            is_shared=len(several) > 1,
            has_batch_info=has_batch_info(opened.schema_arrow.names),
        )


def _joined(runs: list[Run]) -> Iterator[Run]:
    """Join the runs of consecutive row groups, if rows stay in order and are of the same partition."""
    waiting: Run | None = None
    for run in runs:
        if (
            waiting is not None
            and run.partition == waiting.partition
            and waiting.is_sorted
            and run.is_sorted
            and not (run.is_shared or waiting.is_shared)
            and run.first_offset > waiting.last_offset
        ):
            waiting = waiting._replace(
                row_groups=range(waiting.row_groups.start, run.row_groups.stop),
                last_offset=run.last_offset,
                row_count=waiting.row_count + run.row_count,
                size=waiting.size + run.size,
            )
            continue
        if waiting is not None:
            yield waiting
        waiting = run
    if waiting is not None:
        yield waiting


def integers(table: pa.Table, name: str, file: DataFile) -> Int64s:
    """Return a column of whole numbers. Raises `InvalidInput` if there are nulls or anything else."""
    column = table.column(name)
    if column.null_count or not pa.types.is_integer(column.type):
        raise InvalidInput(f"{file}: the column {name} holds nulls or {column.type}, not only whole numbers")
    try:
        numbers: Int64s = column.cast(pa.int64()).to_numpy()
    except pa.ArrowException as error:
        raise InvalidInput(f"{file}: the column {name} holds a number that is too large: {error}") from None
    return numbers


def _check_range(file: DataFile, name: str, numbers: Int64s, highest: int) -> None:
    wrong = numbers[(numbers < 0) | (numbers > highest)]
    if len(wrong):
        raise InvalidInput(f"{file}: the column {name} holds {int(wrong[0])}, which no record has")


def limits(footer: Any, name: str) -> tuple[int, int] | None:
    """Return the lowest and the highest value of a column of whole numbers by the footer, if it tells them."""
    for index in range(footer.num_columns):
        column = footer.column(index)
        if column.path_in_schema == name:
            statistics = column.statistics
            if statistics is None or not statistics.has_min_max or statistics.null_count:
                return None
            lowest, highest = statistics.min, statistics.max
            return (lowest, highest) if type(lowest) is int and type(highest) is int else None
    return None


def _partition(file: DataFile, topic: Any, number: int) -> TopicPartition:
    partition = TopicPartition(str(topic), number)
    if partition.problem is not None:
        raise InvalidInput(f"{file}: {partition.problem}")
    return partition

"""Read the rows of one partition from several files in the order of their offsets: `merged`.

Files overlap in their offsets: an export writes one for each day, and records of two days may alternate. So several are
read at a time, each as a stream of batches. What is below the last offset of each of these batches can be sorted and
handed out. Memory is bounded by the number of files that overlap, not by their size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from octavo.errors import BadTable, InvalidInput
from octavo.spark.tables.restore.columns import record_types, with_types
from octavo.spark.tables.restore.runs import Run, limits

Int64s = npt.NDArray[np.int64]

MOST_MEMORY: Final = 1 << 30  # bytes that a task may need for the files that it reads at a time
_BATCH_SIZE: Final = 4 << 20  # bytes of the rows that are read from a file at a time
_MOST_ROWS: Final = 32_768
_STREAM_SIZE: Final = 16 << 20  # bytes that a file needs while it is read: pages of some columns, and a batch


def merged(
    runs: Iterable[Run], offsets: range, *, batch_info: bool, most_memory: int = MOST_MEMORY
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with these offsets from all runs, which are of the same partition, in the order of their offsets.

    Raises `InvalidInput` if an offset is there twice, or if more files overlap than `most_memory` allows. Raises
    `BadTable` if a file is not what its survey said.
    """
    waiting = deque(sorted(runs, key=lambda run: (run.first_offset, str(run.file))))
    streams: list[_Stream] = []
    while True:
        streams = [stream for stream in streams if stream.has_rows()]
        if not streams and not waiting:
            return
        while waiting and (not streams or waiting[0].first_offset <= min(stream.last for stream in streams)):
            stream = _Stream(waiting.popleft(), offsets, batch_info=batch_info)
            if stream.has_rows():
                streams.append(stream)
                _check_memory(streams, most_memory)
        if streams:
            yield _in_order([stream.take(min(each.last for each in streams)) for stream in streams], streams)


def _in_order(parts: list[pa.RecordBatch], streams: Sequence[_Stream]) -> pa.RecordBatch:
    """Join rows of several streams in the order of their offsets."""
    parts = [part for part in parts if part.num_rows]
    if len(parts) == 1:
        return parts[0]
    rows = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    offsets = rows.column("offset").to_numpy()
    order = offsets.argsort(kind="stable")
    in_order = offsets[order]
    [twice] = np.nonzero(in_order[1:] == in_order[:-1])
    if len(twice):
        files = " and in ".join(sorted({str(stream.run.file) for stream in streams}))
        raise InvalidInput(
            f"offset {int(in_order[twice[0]])} of {streams[0].run.partition} is in the table twice: look in {files}"
        )
    return rows.take(pa.array(order))


def _check_memory(streams: Sequence[_Stream], most_memory: int) -> None:
    if sum(stream.memory for stream in streams) > most_memory and len(streams) > 1:
        run = streams[-1].run
        raise InvalidInput(
            f"{len(streams):,} files of the table hold offsets of {run.partition} around {run.first_offset}, more than "
            "fit into memory at a time: sort the table by topic, partition and offset first"
        )


class _Stream:
    """The rows of a run, batch by batch."""

    def __init__(self, run: Run, offsets: range, *, batch_info: bool) -> None:
        self.run: Final = run
        self.memory: Final = min(run.size, _STREAM_SIZE) if run.is_sorted else run.size
        self._batches: Final = _read(run, offsets, batch_info=batch_info)
        self._rows: pa.RecordBatch | None = None
        self._offsets: Int64s = np.empty(0, np.int64)
        self._taken = 0
        self._last_taken = -1

    @property
    def last(self) -> int:
        """The last offset of the rows that are in memory."""
        return int(self._offsets[-1])

    def has_rows(self) -> bool:
        """Return whether there are more rows; read them if none are in memory."""
        while self._taken == len(self._offsets):
            rows = next(self._batches, None)
            if rows is None:
                return False
            self._rows, self._taken = rows, 0
            before, self._offsets = self._last_taken, rows.column("offset").to_numpy()
            if len(self._offsets):
                self._check_order(before)
        return True

    def take(self, last: int) -> pa.RecordBatch:
        """Return the rows in memory that are left, up to the offset `last`."""
        assert self._rows is not None, "has_rows comes first"
        begin, self._taken = self._taken, int(np.searchsorted(self._offsets, last, "right"))
        if self._taken > begin:
            self._last_taken = int(self._offsets[self._taken - 1])
        return self._rows.slice(begin, self._taken - begin)

    def _check_order(self, before: int) -> None:
        offsets = self._offsets
        if offsets[0] <= before or (offsets[1:] <= offsets[:-1]).any():
            [wrong] = np.nonzero(offsets <= np.concatenate(([before], offsets[:-1])))
            offset = int(offsets[wrong[0]])
            if not self.run.is_sorted:  # then the rows were sorted here
                raise InvalidInput(
                    f"offset {offset} of {self.run.partition} is in the table twice: look in {self.run.file}"
                )
            raise BadTable(str(self.run.file), f"the rows are not in the order of their offsets, at offset {offset}")


def _read(run: Run, offsets: range, *, batch_info: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a run that have these offsets."""
    with run.file.open() as opened:
        types = record_types(opened.schema_arrow.names, batch_info=batch_info)
        names = [*types, "partition", *(["topic"] if run.is_shared and run.file.topic is None else [])]
        groups = [group for group in run.row_groups if _may_have(opened, group, offsets)]
        try:
            if run.is_sorted:
                batches = opened.iter_batches(_rows_at_a_time(run), row_groups=groups, columns=names)
            else:
                batches = opened.read_row_groups(groups, columns=names).combine_chunks().to_batches()
            for rows in batches:
                own = with_types(_own(rows, run), types, str(run.file))
                yield _within(own if run.is_sorted else own.sort_by("offset"), offsets)
        except (pa.ArrowException, OSError) as error:
            raise BadTable(str(run.file), f"the file cannot be read: {error}") from error


def _rows_at_a_time(run: Run) -> int:
    return max(1, min(_MOST_ROWS, _BATCH_SIZE * run.row_count // max(1, run.size)))


def _own(rows: pa.RecordBatch, run: Run) -> pa.RecordBatch:
    """Return the rows of the run's partition. There should be no others, unless the run is shared."""
    own = pc.equal(rows.column("partition"), run.partition.partition)
    if run.is_shared:
        if "topic" in rows.schema.names:
            own = pc.and_(own, pc.equal(rows.column("topic"), run.partition.topic))
        return rows.filter(own)
    if rows.num_rows and not pc.all(own, skip_nulls=False).as_py():
        raise BadTable(str(run.file), f"there are rows of other partitions than {run.partition}")
    return rows


def _within(rows: pa.RecordBatch, offsets: range) -> pa.RecordBatch:
    """Return the rows that have these offsets, of rows in their order."""
    column = rows.column("offset")
    if not rows.num_rows or (column[0].as_py() >= offsets.start and column[-1].as_py() < offsets.stop):
        return rows
    own = column.to_numpy()
    return rows.filter(pa.array((own >= offsets.start) & (own < offsets.stop)))


def _may_have(opened: pq.ParquetFile, group: int, offsets: range) -> bool:
    """Return whether a row group may have rows with these offsets, by the footer."""
    found = limits(opened.metadata.row_group(group), "offset")
    return found is None or (found[1] >= offsets.start and found[0] < offsets.stop)

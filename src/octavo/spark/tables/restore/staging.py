"""Write the rows of a table as staged batches: what a task of an import does.

With batch information batches are as they were: with the same limits, codec, producer and sequence numbers. Without it,
rows are put into batches of `batch_size` bytes. Control records are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octavo.errors import InvalidInput
from octavo.log import StagedFile, StagedWriter, StagingArea
from octavo.log.names import TopicPartition
from octavo.records import from_arrow
from octavo.records.layout import (
    MAX_INT32,
    MAX_SIZE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Codec,
)
from octavo.records.v2 import write_batch
from octavo.spark.tables.restore.merging import merged
from octavo.spark.tables.restore.runs import Run

_TOGETHER: Final = 8 << 20  # bytes of rows that are encoded at a time
_MOST_TOGETHER: Final = 256 << 20  # even if they are one batch
_OF_BATCHES: Final = ("file", "position")


class Piece(NamedTuple):
    """Offsets of one partition, and the runs that hold them."""

    partition: TopicPartition
    offsets: range
    runs: tuple[Run, ...]
    batch_info: bool
    end_offset: int | None = None  # where the log ends, if that is after the last of its records


class ImportTask(NamedTuple):
    """What a task of an import writes to one staged file, and how."""

    pieces: tuple[Piece, ...]
    area: StagingArea
    codec: Codec
    batch_size: int
    sync: bool

    @property
    def size(self) -> int:
        """About how many bytes the task reads."""
        runs = [(run, piece.offsets) for piece in self.pieces for run in piece.runs]
        return sum(
            run.size * _common(run, offsets) // (run.last_offset + 1 - run.first_offset) for run, offsets in runs
        )


def _common(run: Run, offsets: range) -> int:
    """Return how many offsets of a run are among these."""
    return max(0, min(offsets.stop, run.last_offset + 1) - max(offsets.start, run.first_offset))


class Imported(NamedTuple):
    """What a task has written."""

    file: StagedFile | None
    records: int
    size: int  # bytes of the batches


def stage(task: ImportTask) -> Imported:
    """Write the pieces of a task to a staged file. Raises `InvalidInput`, `BadTable` and `OSError`."""
    staged = StagedWriter(task.area, sync=task.sync)
    records = size = 0
    try:
        for piece in task.pieces:
            last_offset = piece.offsets.start - 1
            for rows in _gathered(merged(piece.runs, piece.offsets, batch_info=piece.batch_info)):
                batches = _encoded(rows, task, piece)
                staged.add(*piece.partition, batches)
                records += rows.num_rows
                size += len(batches)
                last_offset = rows.column("offset")[-1].as_py()
            if piece.end_offset is not None and last_offset + 1 < piece.end_offset:
                staged.add(*piece.partition, _empty_batch(last_offset + 1, piece.end_offset - 1))
        return Imported(staged.finish(), records, size)
    except BaseException:
        staged.discard()
        raise


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows in larger amounts. What was one batch stays together, unless it is very large."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for rows in map(_without_control, batches):
        if not rows.num_rows:
            continue
        waiting.append(rows)
        size += rows.nbytes
        if size >= _TOGETHER:
            rows = _joined(waiting)
            begin = rows.num_rows if size >= _MOST_TOGETHER else _begin_of_last_batch(rows)
            if begin:
                yield rows.slice(0, begin)
            waiting = [rows.slice(begin)] if begin < rows.num_rows else []
            size = sum(each.nbytes for each in waiting)
    if waiting:
        yield _joined(waiting)


def _without_control(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out control records: without the data of the transactions that they end, they mean nothing."""
    if "isControl" not in rows.schema.names:
        return rows
    control = rows.column("isControl")
    if control.null_count or control.true_count:
        rows = rows.filter(pc.invert(control.fill_null(False)))
    return rows.drop_columns(["isControl"])


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _begin_of_last_batch(rows: pa.RecordBatch) -> int:
    """Return the row with which the last batch begins; without batch information, the number of rows."""
    if "position" not in rows.schema.names:
        return int(rows.num_rows)
    found = np.flatnonzero(_begins(rows))
    return int(found[-1]) if len(found) else 0


def _begins(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return, for each row, whether it begins another batch than the row before. The first one does not."""
    begins = np.zeros(rows.num_rows, np.bool_)
    for name in _OF_BATCHES:
        if name in rows.schema.names:
            numbers = rows.column(name).dictionary_encode().indices.to_numpy(zero_copy_only=False)
            begins[1:] |= numbers[1:] != numbers[:-1]
    return begins


def _encoded(rows: pa.RecordBatch, task: ImportTask, piece: Piece) -> memoryview:
    columns = {name: rows.column(name) for name in rows.schema.names if name not in _OF_BATCHES}
    if piece.batch_info:
        columns["position"] = pa.array(_begins(rows).cumsum())
    size = MAX_SIZE if piece.batch_info else task.batch_size
    try:
        return from_arrow(pa.RecordBatch.from_pydict(columns), codec=task.codec, max_size=size)
    except InvalidInput as error:
        first, last = (rows.column("offset")[row].as_py() for row in (0, -1))
        raise InvalidInput(f"{piece.partition}, offsets {first} to {last}: {error}") from None


def _empty_batch(first_offset: int, last_offset: int) -> bytes:
    """Return a batch without records, as compaction leaves them, so that a log ends where it did."""
    base_offset = max(first_offset, last_offset - MAX_INT32)
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=NO_LEADER_EPOCH,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=last_offset - base_offset,
        base_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=NO_TIMESTAMP,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=0,
    )
    return write_batch(header, b"")

"""Read the slices of a task and produce the Arrow batches for Spark.

A slice is read in windows, always into the same memory, so that a task needs no more memory for a large segment than
for a small one. The file is opened once, and is read to the end even if it is renamed or deleted meanwhile. If the file
was deleted or replaced before it is opened, the same offsets are read from the current files of the log.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from octavo.errors import BadDirectory, CorruptFile, FormatError, Truncated
from octavo.log.names import LOG, file_name
from octavo.log.segment.block_reader import LARGE
from octavo.log.storage import File
from octavo.records.arrow.decoder import ArrowDecoder
from octavo.records.offset_order import HEAD_SIZE
from octavo.spark.committed import decided_end, filter_for, no_control
from octavo.spark.corruption import Corruption
from octavo.spark.joined import Window, group_small, join_batches
from octavo.spark.options import Options
from octavo.spark.partitions import Replica
from octavo.spark.plan import slices_of
from octavo.spark.ranges import OffsetRange, SourceLog, clip_to_log, report_data_loss
from octavo.spark.slices import Slice, Task
from octavo.spark.spark_types import SparkColumns
from octavo.spark.task_memory import blocks_of, decoder_of

_WINDOW: Final = 4 << 20  # measured: with 2 or 8 MiB, zstd and uncompressed records take about a tenth longer
_ATTEMPTS: Final = 20  # the number of attempts to read from a folder while it changes


class _Moved(Exception):
    """The file of a slice was removed or replaced."""


class TaskReader:
    """Reads the slices of one task."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options: Final = options
        self._schema: Final = schema
        self._columns: Final = SparkColumns(_stored(options, schema))
        self._corruption: Final = Corruption(options)
        self._decoder: Final = decoder_of(tuple(self._columns.stored))
        self._joined = np.empty(0, np.uint8)  # memory for several small slices that are decoded together

    def read(self, task: Task) -> Iterator[pa.RecordBatch]:
        """Yield Arrow batches with the records of all slices, in order."""
        with blocks_of(_WINDOW) as self._blocks:
            try:
                yield from self._finished(self._read_slices(task.slices))
            finally:
                self._corruption.log_total()
        spare_the_collector()

    def _finished(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Leave out rows and add columns as the options say."""
        if self._options.key_filter is not None:
            batches = self._options.key_filter.keep(batches)
        batches = join_batches(batches)
        if self._options.typed_values is not None:
            return self._options.typed_values.decode(batches, self._schema)
        if len(self._columns.names) > len(self._schema):
            return (batch.select(self._schema.names) for batch in batches)
        return batches

    def _read_slices(self, slices: Iterable[Slice]) -> Iterator[pa.RecordBatch]:
        decided = (piece for piece in map(self._decided, slices) if piece.first_offset < piece.end_offset)
        for group in group_small(decided, _WINDOW):
            while group:
                count = self._load(group) if len(group) > 1 else 0
                if count > 1:
                    yield from self._read_window(Window(group[:count]))
                else:
                    yield from self._read_alone(group[0])
                group = group[max(1, count) :]

    def _read_alone(self, piece: Slice) -> Iterator[pa.RecordBatch]:
        try:
            file = _open_slice(piece)
        except _Moved:
            yield from self._read_anew(piece)
        else:
            yield from self._read_slice(file, piece)

    def _load(self, group: Sequence[Slice]) -> int:
        """Read slices into memory, one after the other. Stop at the first that cannot be read; return how many were."""
        if not len(self._joined):
            self._joined = np.empty(_WINDOW, np.uint8)
        start = 0
        for number, piece in enumerate(group):
            try:
                file = _open_slice(piece)
            except _Moved:
                return number
            try:
                if file.read_into(self._joined.data[start : start + piece.size], piece.position) < piece.size:
                    return number
            except OSError:
                return number
            finally:
                file.close()
            start += piece.size
        return len(group)

    def _read_window(self, window: Window) -> Iterator[pa.RecordBatch]:
        """Yield the records of several slices that are in memory. Raises `CorruptFile`, `BadDirectory`."""
        for first, end in window.runs(self._joined, committed=self._options.read_committed):
            if end - first == 1:
                yield from self._read_alone(window.slices[first])
                continue
            while first < end:
                first = yield from self._read_run(window, first, end)

    @cached_property
    def _joined_decoder(self) -> ArrowDecoder:
        return decoder_of(tuple(self._columns.stored_joined))

    def _read_run(self, window: Window, first: int, end: int) -> Generator[pa.RecordBatch, None, int]:
        """Yield the records of the slices from number `first` up to but not including `end`, or up to damage.

        After damage, also yields the rest of the damaged slice. Returns the number of the slice to continue with.
        """
        reader = self._joined_decoder.read(
            self._joined.data,
            keep=None if self._options.include_control_records else no_control,
            start=int(window.starts[first]),
            end=int(window.starts[end]) if end < len(window.slices) else window.size,
        )
        try:
            for batch in reader:
                yield self._columns.joined_batch(batch, window)
        except FormatError as error:
            number, position = window.locate(error.position)
            yield from self._go_on_after_damage(window.slices[number], position, error)
            return number + 1
        return end

    def _go_on_after_damage(self, piece: Slice, position: int, error: FormatError) -> Iterator[pa.RecordBatch]:
        """Skip damage in a slice and yield the records after it. Raises `CorruptFile` if `onCorruption` is fail."""
        try:
            file = _open_slice(piece)
        except _Moved:  # if Spark runs the task again, it reads the file that has replaced this one
            raise BadDirectory(
                piece.folder, f"the segment {piece.base_offset} was replaced while it was read"
            ) from None
        try:
            position = self._corruption.skip(file, piece, position, error)
        except BaseException:
            file.close()
            raise
        yield from self._read_slice(file, piece._replace(position=position))

    def _read_anew(self, piece: Slice) -> Iterator[pa.RecordBatch]:
        """Read the offsets of a slice from the current files of the log.

        Raises `DataLoss` if they are no longer there and `failOnDataLoss` is set.
        """
        first = piece.first_offset
        for _ in range(_ATTEMPTS):
            replica = Replica(piece.partition, piece.root, piece.folder_path())
            try:
                log = replica.open()
            except BadDirectory:
                if replica.has_segments():
                    raise
                report_data_loss(self._options, piece.partition, first, piece.end_offset)
                return
            source = SourceLog(replica, log, log.start_offset, log.end_offset)
            try:
                for part in _slices_of(clip_to_log(self._options, source, first, piece.end_offset)):
                    yield from self._read_slice(_open(part, log.path_of(part.base_offset)), part)
                    first = part.end_offset
            except _Moved:
                continue
            finally:
                log.close()
            return
        raise BadDirectory(piece.folder, "its files change faster than they can be read")

    def _read_slice(self, file: File, piece: Slice) -> Iterator[pa.RecordBatch]:
        """Yield the records of a slice, then close its file. Raises `CorruptFile`, `BadDirectory`."""
        try:
            yield from self._read_windows(file, piece)
        finally:
            file.close()

    def _read_windows(self, file: File, piece: Slice) -> Iterator[pa.RecordBatch]:
        self._columns.begin(piece)
        keep = filter_for(self._options, file, piece)
        blocks = self._blocks
        blocks.begin(file, piece.position, piece.end)
        last_offset = max(piece.base_offset - 1, piece.last_offset)  # last offset of the last valid batch
        while blocks.position < piece.end:
            position = blocks.position
            reader = self._decoder.read(
                self._fill(),
                offsets=(piece.first_offset, piece.end_offset),
                keep=keep,
                follows=last_offset,
                end=blocks.size,
            )
            try:
                for batch in reader:
                    yield self._columns.spark_batch(batch, position)
            except CorruptFile:  # damage in another file, which the filter read in search of markers
                raise
            except FormatError as error:
                last_offset = reader.last_offset
                blocks.position = self._corruption.skip(file, piece, position + error.position, error)
                continue
            last_offset = reader.last_offset
            if reader.position:
                blocks.position += reader.position
            elif blocks.meet_cut() == LARGE:
                blocks.grow()
            else:
                cut = Truncated(position, "the bytes end inside a batch")
                blocks.position = self._corruption.skip(file, piece, position, cut)

    def _decided(self, piece: Slice) -> Slice:
        """Limit a slice to offsets below the last stable offset, if the task has to find that.

        Raises `DataLoss` if `endingOffsets` asks for later offsets and `failOnDataLoss` is set.
        """
        if piece.undecided_below is None:
            return piece
        end = min(piece.end_offset, decided_end(self._options, piece))
        ending = self._options.ending
        if end < piece.end_offset and ending is not None and ending.is_offset_of(piece.partition):
            first = max(end, piece.first_offset)
            offsets = f"Offsets {first} to {piece.end_offset - 1} of {piece.partition}"
            reason = f"{offsets} are not decided: a transaction is open."
            report_data_loss(self._options, piece.partition, first, piece.end_offset, reason)
        return piece._replace(end_offset=end)

    def _fill(self) -> memoryview:
        """Read the next block. The last block of a slice includes the head of the batch after the slice."""
        position, path = self._blocks.position, self._blocks.file.path
        try:
            window = self._blocks.read(behind=HEAD_SIZE)
        except OSError as error:
            # A remote file may have been removed since it was opened. If Spark runs the task again, it reports that, or
            # finds the file that has replaced it.
            raise BadDirectory(path, f"the file cannot be read any more at byte {position}: {error}") from None
        if not window:
            raise BadDirectory(path, f"the file was cut at byte {position} or before while it was read")
        return window


def _stored(options: Options, schema: pa.Schema) -> pa.Schema:
    """Return the columns that have to be read for those of `schema`."""
    if options.typed_values is not None:
        schema = options.typed_values.stored(schema)
    if options.key_filter is not None and "key" not in schema.names:
        schema = schema.append(pa.field("key", pa.binary()))
    return schema


@cache
def spare_the_collector() -> None:
    """Exclude all objects that this worker process has created so far from garbage collection.

    Spark runs the collector after every task, and for Numba's objects that takes a tenth of a second.
    """
    if TaskContext.get() is not None:
        gc.collect()
        gc.freeze()


def _slices_of(wanted: OffsetRange) -> list[Slice]:
    """Do the same as `slices_of`, but raise `_Moved` if a file was removed meanwhile."""
    try:
        return slices_of(wanted)
    except FileNotFoundError:
        raise _Moved from None


def _open_slice(piece: Slice) -> File:
    """Open the file of a slice under the name of its segment. Raises `_Moved`."""
    return _open(piece, piece.folder_path() / file_name(piece.base_offset, LOG))


def _open(piece: Slice, path: Path) -> File:
    """Open the file of a slice, and check that it is the one that was planned. Raises `_Moved` if it is not."""
    storage = piece.root.storage()
    try:
        file = storage.open(path)
    except FileNotFoundError:
        raise _Moved from None
    try:
        if (
            storage.identity(file) == piece.identity
            and file.size() >= piece.end
            and (not piece.head or file.read_at(len(piece.head), piece.position) == piece.head)
        ):
            return file
    except FileNotFoundError:
        pass
    file.close()
    raise _Moved

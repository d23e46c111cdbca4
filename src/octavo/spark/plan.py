"""Decide which task reads which bytes.

Segments are cut into slices where batches begin, so that many tasks can read one large segment. The offset index says
where batches begin; its entries are first checked against the file. Small slices share a task, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from octavo.errors import FormatError
from octavo.log.reading.segment_portions import portions
from octavo.log.segment.batch_walk import walk
from octavo.log.segment.segment import Segment
from octavo.log.view import View
from octavo.records import Batch, read_batches
from octavo.records.layout import BATCH_HEADER, MIN_INT64
from octavo.spark.options import Options
from octavo.spark.ranges import OffsetRange, SourceLog, Sources
from octavo.spark.slices import Slice, Task
from octavo.spark.threads import in_threads

# Measured: smaller tasks cost more than they gain, and larger ones leave cores idle at the end of a job.
MAX_TASK_SIZE: Final = 128 << 20
MIN_TASK_SIZE: Final = 4 << 20
_TASKS: Final = 8  # the number of tasks to aim for if there is little to read
_MOST_SLICES: Final = 4096  # the most slices of one task, however small they are


def plan_tasks(
    options: Options, ranges: Iterable[OffsetRange], task_size: Callable[[int], int] | None = None
) -> list[Task]:
    """Plan the tasks that read these ranges. Raises `FileNotFoundError` if a file was removed meanwhile.

    `task_size` says how many bytes a task should read, of that many in all; by default it is what suits a query.
    """
    ranges = list(ranges)
    sources = {wanted.source.replica.partition: wanted.source for wanted in ranges}
    slices = [piece for wanted in ranges for part in _parts(options, wanted) for piece in _slices(part)]
    total = sum(piece.size for piece in slices)
    size = _task_size(options, total) if task_size is None else task_size(total)
    packed = list(_pack(options, _split(slices, size, sources), size))
    if options.min_partitions is not None:
        _divide(packed, options.min_partitions, sources)
    return [Task([_with_head(piece, sources[piece.partition]) for piece in pieces]) for pieces in packed]


def _task_size(options: Options, total: int) -> int:
    if options.max_bytes_per_partition is not None:
        return options.max_bytes_per_partition
    size = max(MIN_TASK_SIZE, min(MAX_TASK_SIZE, total // _TASKS))
    return size if options.min_partitions is None else max(1, min(size, total // options.min_partitions))


def _parts(options: Options, wanted: OffsetRange) -> Iterator[OffsetRange]:
    """Divide a range into equal parts, so that none has more than `maxRecordsPerPartition` offsets."""
    most = options.max_records_per_partition
    count = wanted.end - wanted.first
    parts = 1 if most is None else max(1, -(-count // most))
    for number in range(parts):
        first = wanted.first + count * number // parts
        yield wanted._replace(first=first, end=wanted.first + count * (number + 1) // parts)


def slices_of(wanted: OffsetRange) -> list[Slice]:
    """Return a slice for every segment that holds part of the range."""
    return list(_slices(wanted))


def _slices(wanted: OffsetRange) -> Iterator[Slice]:
    source, first, end = wanted
    if first >= end:
        return
    view = source.log.view
    for number, begin, stop, is_cut in portions(view, first, end, _end_of_segment(source, first, end)):
        segment = view.segments[number]
        if not source.replica.reads(segment.base_offset):
            continue
        size = view.segment_size(number)
        position, last_offset = 0, MIN_INT64
        if begin > segment.base_offset:
            position, last_offset = _position_of(segment, begin, size)
        if is_cut:
            size = _end_before(segment, stop, size)
        if position < size:
            yield Slice(
                source.replica.partition,
                source.replica.root,
                str(source.replica.folder),
                segment.base_offset,
                source.log.identity(segment.base_offset),
                position,
                size,
                begin,
                stop,
                source.undecided_below,
                last_offset,
            )


def _end_of_segment(source: SourceLog, first: int, end: int) -> Callable[[View, int], int]:
    """Return a function that finds the offset after a segment's last one, for `portions`.

    On a remote file system each result takes requests, so all are found in advance, at the same time.
    """
    replica, view = source.replica, source.log.view
    if replica.root.is_local:
        return replica.offset_after
    numbers = range(view.segment_at(first), view.count_before(end) - 1)
    known = dict(zip(numbers, in_threads(lambda number: replica.offset_after(view, number), numbers), strict=True))
    return lambda _, number: known[number]


def segment_of(source: SourceLog, piece: Slice) -> Segment:
    """Return the segment that a slice is part of."""
    view = source.log.view
    return view.segments[view.segment_at(piece.base_offset)]


def _with_head(piece: Slice, source: SourceLog) -> Slice:
    """Store the first bytes of a slice in it. With them, its task checks that the file is still the same.

    The inode number alone is not enough, because it may be reused for another file. The identity of a remote object is
    never reused.
    """
    if not piece.root.is_local:
        return piece
    size = min(BATCH_HEADER.size, piece.size)
    return piece._replace(head=segment_of(source, piece).file.read_at(size, piece.position))


def _position_of(segment: Segment, first: int, size: int) -> tuple[int, int]:
    """Return the position where reading has to begin to get all offsets from `first` on.

    If `first` may be in damaged bytes, this is where the damage begins, and the task will report it. Also return the
    last offset before the position, if it is known.
    """
    found, damage = segment.find_past_damage(first, size)
    if damage is not None and (found is None or found.base_offset > first):
        return damage
    return (size if found is None else found.position), MIN_INT64


def _end_before(segment: Segment, end: int, size: int) -> int:
    """Return the position where reading has to stop to get all offsets before `end`.

    This is the start of the batch that contains `end`, or its end if some of its offsets are below `end`.
    """
    found, _ = segment.find_past_damage(end, size)
    if found is None:
        return size
    try:
        batch = next(read_batches(segment.file.read_at(found.size, found.position), verify=False), None)
    except FormatError:
        return found.end
    return found.position if batch is None or batch.base_offset >= end else found.end


def _split(slices: Iterable[Slice], size: int, sources: Sources) -> Iterator[Slice]:
    """Cut slices that are too large for one task, at the start of a batch. Yield the others as they are."""
    for piece in slices:
        if piece.size < 2 * size:
            yield piece
        else:
            yield from _cut(piece, size, sources[piece.partition])


def _cut(piece: Slice, size: int, source: SourceLog) -> Iterator[Slice]:
    segment = segment_of(source, piece)
    count = -(-piece.size // size)
    begin, total = piece.position, piece.size
    for number in range(1, count):
        target = begin + total * number // count
        if target <= piece.position:
            continue
        found = boundary_after(segment, piece, target)
        if found is not None:
            position, offset = found
            yield piece._replace(end=position, end_offset=offset)
            piece = piece._replace(position=position, first_offset=offset)
    yield piece


def boundary_after(segment: Segment, piece: Slice, target: int) -> tuple[int, int] | None:
    """Find a position at or after `target` where a batch begins; return it with the batch's base offset."""
    entry = segment.offset_index.behind(target)
    if entry is not None and piece.position < entry.position < piece.end:
        batch = _batch_at(segment, entry.position, piece.end)
        if batch is not None and batch.last_offset <= entry.offset and piece.first_offset < batch.base_offset:
            return entry.position, batch.base_offset
    return _walk_to_boundary(segment, piece, target) if segment.offset_index.count == 0 else None


def _walk_to_boundary(segment: Segment, piece: Slice, target: int) -> tuple[int, int] | None:
    """Find the same as `boundary_after`, without an index, by walking from header to header."""
    try:
        for entry in walk(segment.file, piece.position, piece.end):
            if entry.position >= target:
                batch = _batch_at(segment, entry.position, piece.end)
                if batch is None or piece.first_offset >= batch.base_offset:
                    return None
                return entry.position, batch.base_offset
    except FormatError:
        pass  # the task that reads these bytes reports the damage
    return None


def _batch_at(segment: Segment, position: int, end: int) -> Batch | None:
    """Return the batch at a position; None if there is no batch with the right checksum."""
    try:
        entry = next(walk(segment.file, position, end), None)
        if entry is None:
            return None
        return next(read_batches(segment.file.read_at(entry.size, position)), None)
    except FormatError:
        return None


def _pack(options: Options, slices: Iterable[Slice], size: int) -> Iterator[list[Slice]]:
    """Group slices into tasks. A new task begins when the next slice would exceed a limit."""
    packed: list[Slice] = []
    taken = 0
    offsets = 0
    most = options.max_records_per_partition
    for piece in slices:
        count = piece.end_offset - piece.first_offset
        full = taken + piece.size > size or (most is not None and offsets + count > most)
        if packed and (full or len(packed) >= _MOST_SLICES):
            yield packed
            packed, taken, offsets = [], 0, 0
        packed.append(piece)
        taken += piece.size
        offsets += count
    if packed:
        yield packed


def _divide(packed: list[list[Slice]], count: int, sources: Sources) -> None:
    """Divide the tasks with the most offsets until there are `count` tasks, or no task has more than one offset."""
    while len(packed) < count:
        largest = max(range(len(packed)), key=lambda number: _offsets(packed[number]), default=None)
        if largest is None or _offsets(packed[largest]) < 2:
            return
        pieces = packed[largest]
        if len(pieces) == 1:
            pieces = _halves(pieces[0], segment_of(sources[pieces[0].partition], pieces[0]))
        middle = len(pieces) // 2
        packed[largest : largest + 1] = [pieces[:middle], pieces[middle:]]


def _offsets(pieces: Sequence[Slice]) -> int:
    return sum(piece.end_offset - piece.first_offset for piece in pieces)


def _halves(piece: Slice, segment: Segment) -> list[Slice]:
    """Cut a slice in two at the start of a batch near its middle.

    If there is no such batch, both halves have the same bytes but different offsets.
    """
    middle = (piece.first_offset + piece.end_offset) // 2
    found, _ = segment.find_past_damage(middle, piece.end)
    for position in () if found is None else (found.position, found.end):
        if piece.position < position < piece.end:
            batch = _batch_at(segment, position, piece.end)
            if batch is not None and piece.first_offset < batch.base_offset < piece.end_offset:
                offset = batch.base_offset
                return [
                    piece._replace(end=position, end_offset=offset),
                    piece._replace(position=position, first_offset=offset),
                ]
    return [piece._replace(end_offset=middle), piece._replace(first_offset=middle)]

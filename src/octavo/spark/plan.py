"""Which task reads which bytes.

Segments are cut into slices where batches begin, as the index of a segment tells; what it tells is looked at first. So
one large segment feeds many tasks. Small slices share a task, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from octavo.errors import FormatError
from octavo.log.segment import Segment
from octavo.log.walk import walk
from octavo.records import Batch, read_batches
from octavo.spark.options import Options
from octavo.spark.ranges import OffsetRange, SourceLog
from octavo.spark.slices import Slice, Task

# Measured: smaller tasks cost more than they bring, and larger ones leave cores idle at the end of a job.
MAX_TASK_SIZE: Final = 64 << 20
MIN_TASK_SIZE: Final = 4 << 20
_TASKS: Final = 16  # to aim at where there is little to read
_MOST_SLICES: Final = 4096  # in one task, however small


def plan_tasks(options: Options, ranges: Iterable[OffsetRange]) -> list[Task]:
    """The tasks that read these ranges."""
    ranges = list(ranges)
    slices = [piece for wanted in ranges for part in _parts(options, wanted) for piece in _slices(part)]
    size = _task_size(options, sum(piece.size for piece in slices))
    tasks = list(_pack(options, _split(slices, size, ranges), size))
    if options.min_partitions is not None:
        tasks = _at_least(tasks, options.min_partitions)
    return tasks


def _task_size(options: Options, total: int) -> int:
    if options.max_bytes_per_partition is not None:
        return options.max_bytes_per_partition
    size = max(MIN_TASK_SIZE, min(MAX_TASK_SIZE, total // _TASKS))
    return size if options.min_partitions is None else max(1, min(size, total // options.min_partitions))


def _parts(options: Options, wanted: OffsetRange) -> Iterator[OffsetRange]:
    """The range in parts of equal size, none of which has more offsets than a task may."""
    most = options.max_records_per_partition
    count = wanted.end - wanted.first
    parts = 1 if most is None else max(1, -(-count // most))
    for number in range(parts):
        first = wanted.first + count * number // parts
        yield wanted._replace(first=first, end=wanted.first + count * (number + 1) // parts)


def slices_of(wanted: OffsetRange) -> list[Slice]:
    """The bytes of every segment that holds some of the range."""
    return list(_slices(wanted))


def _slices(wanted: OffsetRange) -> Iterator[Slice]:
    source, first, end = wanted
    if first >= end:
        return
    view = source.log.view
    for number, segment in enumerate(view.segments):
        next_base = view.bases[number + 1] if number + 1 < len(view.bases) else view.end_offset
        if segment.base_offset >= end or (next_base <= first and number + 1 < len(view.bases)):
            continue
        size = view.segment_size(number)
        position = 0
        if first > segment.base_offset:
            position = _position_of(segment, first, size)
        if end < next_base:
            size = _end_before(segment, end, size)
        if position < size:
            yield Slice(
                source.replica.partition,
                source.replica.root,
                str(source.replica.folder),
                segment.base_offset,
                source.log.identity(segment.base_offset),
                position,
                size,
                max(first, segment.base_offset),
                min(end, next_base),
            )


def _position_of(segment: Segment, first: int, size: int) -> int:
    """Where to begin for offsets from `first` on; at the first byte where damage is in the way, of which tasks tell."""
    try:
        found = segment.find(first, size)
    except FormatError:
        return 0
    return size if found is None else found.position


def _end_before(segment: Segment, end: int, size: int) -> int:
    """Where to stop for offsets before `end`: before the batch that has it, or behind where it has some of them too."""
    try:
        found = segment.find(end, size)
        if found is None:
            return size
        batch = next(read_batches(segment.file.read_at(found.size, found.position), verify=False), None)
        return found.position if batch is None or batch.base_offset >= end else found.end
    except FormatError:
        return size


def _split(slices: Iterable[Slice], size: int, ranges: Sequence[OffsetRange]) -> Iterator[Slice]:
    """The slices, those that are larger than a task should be cut where batches begin."""
    logs = {wanted.source.replica.partition: wanted.source for wanted in ranges}
    for piece in slices:
        if piece.size < 2 * size:
            yield piece
        else:
            yield from _cut(piece, size, logs[piece.partition])


def _cut(piece: Slice, size: int, source: SourceLog) -> Iterator[Slice]:
    segment = next(each for each in source.log.segments if each.base_offset == piece.base_offset)
    count = -(-piece.size // size)
    for number in range(1, count):
        target = piece.position + piece.size * number // count
        if target <= piece.position:
            continue
        found = boundary_behind(segment, piece, target)
        if found is not None:
            position, offset = found
            yield piece._replace(end=position, end_offset=offset)
            piece = piece._replace(position=position, first_offset=offset)
    yield piece


def boundary_behind(segment: Segment, piece: Slice, target: int) -> tuple[int, int] | None:
    """A position at or behind `target` where a batch begins, and its first offset."""
    entry = segment.offset_index.behind(target)
    if entry is not None and piece.position < entry.position < piece.end:
        batch = _batch_at(segment, entry.position, piece.end)
        if batch is not None and batch.last_offset <= entry.offset and piece.first_offset < batch.base_offset:
            return entry.position, batch.base_offset
    return _walk_to_boundary(segment, piece, target) if segment.offset_index.count == 0 else None


def _walk_to_boundary(segment: Segment, piece: Slice, target: int) -> tuple[int, int] | None:
    """The same without an index: from header to header."""
    try:
        for entry in walk(segment.file, piece.position, piece.end):
            if entry.position >= target:
                batch = _batch_at(segment, entry.position, piece.end)
                if batch is None or piece.first_offset >= batch.base_offset:
                    return None
                return entry.position, batch.base_offset
    except FormatError:
        pass  # who reads it will say so
    return None


def _batch_at(segment: Segment, position: int, end: int) -> Batch | None:
    """The batch at a position, if there is one, and its checksum is right."""
    try:
        entry = next(walk(segment.file, position, end), None)
        if entry is None:
            return None
        return next(read_batches(segment.file.read_at(entry.size, position)), None)
    except FormatError:
        return None


def _pack(options: Options, slices: Iterable[Slice], size: int) -> Iterator[Task]:
    """Slices together, as long as they are small."""
    packed: list[Slice] = []
    taken = 0
    offsets = 0
    most = options.max_records_per_partition
    for piece in slices:
        count = piece.end_offset - piece.first_offset
        full = taken + piece.size > size or (most is not None and offsets + count > most)
        if packed and (full or len(packed) >= _MOST_SLICES):
            yield Task(packed)
            packed, taken, offsets = [], 0, 0
        packed.append(piece)
        taken += piece.size
        offsets += count
    if packed:
        yield Task(packed)


def _at_least(tasks: list[Task], count: int) -> list[Task]:
    """As many tasks as that, if there are as many offsets: the largest are divided."""
    pieces = [list(task.slices) for task in tasks]
    while len(pieces) < count:
        largest = max(range(len(pieces)), key=lambda number: _offsets(pieces[number]), default=None)
        if largest is None or _offsets(pieces[largest]) < 2:
            break
        chosen = pieces[largest]
        if len(chosen) > 1:
            pieces[largest : largest + 1] = [chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]]
            continue
        piece = chosen[0]
        middle = (piece.first_offset + piece.end_offset) // 2
        pieces[largest : largest + 1] = [[piece._replace(end_offset=middle)], [piece._replace(first_offset=middle)]]
    return [Task(chosen) for chosen in pieces]


def _offsets(pieces: Sequence[Slice]) -> int:
    return sum(piece.end_offset - piece.first_offset for piece in pieces)

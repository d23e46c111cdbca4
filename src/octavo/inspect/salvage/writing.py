"""Write the batches of a salvage as segment files. Opening the log rebuilds everything else from them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from octavo.inspect.salvage.lineage import Replica
from octavo.inspect.salvage.run import Run
from octavo.log.names import LOG, file_name
from octavo.log.storage import File, Storage
from octavo.records import empty_batch
from octavo.records.kernels import scan
from octavo.records.layout import BATCH_HEADER, MAX_INT32, MAX_INT64

_BLOCK: Final = 4 << 20  # bytes
_SEGMENT_SIZE: Final = 1 << 30  # of runs that come from several files; Kafka's default
_LARGEST: Final = MAX_INT32 - (1 << 16)  # Kafka opens no larger file; room is left for an empty batch


class TargetSegment(NamedTuple):
    """A segment that is to be written."""

    base_offset: int
    runs: list[Run]
    filler: bytes = b""  # an empty batch after the runs, with offsets of which nothing is left


def plan_segments(runs: Sequence[Run], leader: Replica) -> list[TargetSegment]:
    """Divide runs among segments, as far as possible as the replica that leads has them.

    A segment gets the name that the source's file has, if its batches agree with that. There is always a segment.
    Offsets that are lost at the end, by names of files and checkpoints, are not used again. An empty batch has
    them, as after a compaction: a reader whose offset no batch has at or after it would wait for the end for ever.
    """
    largest = min(max([_SEGMENT_SIZE, *(file.size for file in leader.files)]), _LARGEST)
    segments: list[TargetSegment] = []
    size, file = 0, None
    for run in (piece for whole in runs for piece in _pieces(whole, largest)):
        is_next = run.file.replica == leader.number and run.file is not file
        is_full = size + run.size > largest
        if not segments or is_next or is_full or run.last - segments[-1].base_offset > MAX_INT32:
            segments.append(TargetSegment(_base_offset(run, segments), []))
            size = 0
        if run.file.replica == leader.number:
            file = run.file
        segments[-1].runs.append(run)
        size += run.size
    if not runs:
        return [TargetSegment(leader.named_end(leader.named_start, MAX_INT64 // 2), [])]
    first, end_offset = runs[-1].last + 1, leader.named_end(runs[-1].last + 1)
    if first < end_offset:
        filler = empty_batch(base_offset=first, last_offset=end_offset - 1, leader_epoch=max(runs[-1].leader_epoch, 0))
        if end_offset - segments[-1].base_offset > MAX_INT32:
            segments.append(TargetSegment(first, []))
        segments[-1] = segments[-1]._replace(filler=filler)
    return segments


def _pieces(run: Run, largest: int) -> list[Run]:
    """Divide a run that is too large for one segment."""
    if run.size <= largest:
        return [run]
    begin, lasts = run.position, []
    for table, shift in run.tables():
        ends = table[:, scan.POSITION] + table[:, scan.SIZE] + shift
        while (at := int(np.searchsorted(ends, begin + largest, side="right"))) < len(table):
            position = int(table[at, scan.POSITION]) + shift
            if position > begin:
                lasts.append(int(table[at, scan.LAST_OFFSET]))
                begin = position
            else:  # one batch that is too large, and cannot be divided: the next one begins a piece
                begin = int(ends[at]) - largest
    return run.split(np.array(lasts, np.int64))


def _base_offset(run: Run, segments: Sequence[TargetSegment]) -> int:
    """Return the base offset of the segment that begins with a run."""
    named, first = run.file.named, run.first_offset()
    end_offset = segments[-1].runs[-1].last + 1 if segments else 0
    is_right = end_offset <= named <= first and run.last - named <= MAX_INT32
    return named if is_right else first


def write_segments(
    storage: Storage, folder: Path, segments: Sequence[TargetSegment], on_bytes: Callable[[int], None]
) -> None:
    """Write the segment files into `folder`. They are not on the disk yet when this returns. Raises `OSError`."""
    room = memoryview(bytearray(_BLOCK))
    for segment in segments:
        target = storage.open_to_write(folder / file_name(segment.base_offset, LOG), create=True)
        size = 0
        for run in segment.runs:
            size += _copy(run, target, size, room, on_bytes)
        if segment.filler:
            target.write_at([segment.filler], size)
        target.begin_sync()
        target.close()


def _copy(run: Run, target: File, at: int, room: memoryview, on_bytes: Callable[[int], None]) -> int:
    """Copy a run to a position of a file. Returns its size."""
    source = run.file.open()
    done = 0
    while done < run.size:
        got = source.read_into(room[: min(len(room), run.size - done)], run.position + done)
        if not got:
            break  # the file was cut meanwhile; opening the log notices it
        if done == 0:
            _correct(run, room)
        target.write_at([room[:got]], at + done)
        on_bytes(got)
        done += got
    return done


def _correct(run: Run, batch: memoryview) -> None:
    """Correct the fields of a batch that no checksum covers."""
    if run.written_base is not None:
        struct.pack_into(">q", batch, BATCH_HEADER.at("base_offset"), run.written_base)
    if run.written_epoch is not None:
        struct.pack_into(">i", batch, BATCH_HEADER.at("leader_epoch"), run.written_epoch)

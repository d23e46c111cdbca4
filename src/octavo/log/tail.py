"""Where the last segment of a log ends that another process writes: behind its last batch that is complete.

What follows that batch is a torn tail, one that is being written or room that was made in advance, unless there is
another complete batch behind it. Then it is damage, the log goes on behind it, and whoever reads that far meets it.
"""

from __future__ import annotations

from typing import NamedTuple

from octavo.errors import FormatError
from octavo.log.damage import BatchSearch
from octavo.log.segment import Segment
from octavo.log.storage import File
from octavo.log.walk import walk
from octavo.records import read_batches
from octavo.records.layout import BATCH_HEADER


class Tail(NamedTuple):
    """Where the last segment ends, and by what its last batch is known again. A header has the checksum of the rest."""

    end_offset: int
    end: int
    position: int = 0
    header: bytes = b""  # nothing where there is no batch
    searched: int = 0  # up to there, no batch was found behind the tail when it was last looked for


def find_tail(active: Segment, file_size: int, before: Tail | None, high_watermark: int) -> Tail:
    """The end of the segment, looked for from the last batch in the index on, or from `before` if that is behind it.

    `high_watermark`, as it was recorded before the file was measured: up to there all had been written by then.
    """
    tail = Tail(active.base_offset, 0) if before is None else before
    if before is None or file_size != before.end:
        active.offset_index.refresh(file_size)
        start = active.last_indexed(file_size)
        found = None
        if start > tail.end:
            found = _walk(active.file, Tail(tail.end_offset, start), file_size, high_watermark)
        if found is None or not found.header:  # it is not worth it, or the index lies
            found = _walk(active.file, tail, file_size, high_watermark)
        tail = found
    if before is None or tail.end != before.end:
        active.refresh(tail.end)
    return tail


def _walk(file: File, tail: Tail, file_size: int, high_watermark: int) -> Tail:
    """Go on from the end of `tail` as long as there are batches whose checksums are right, also behind damage."""
    position: int | None = tail.end
    searched = tail.searched
    search = BatchSearch()
    while position is not None:
        may_be_damage = True
        try:
            for entry in walk(file, position, file_size):
                data = file.read_at(entry.size, entry.position)
                next(read_batches(data), None)
                tail = Tail(entry.last_offset + 1, entry.end, entry.position, data[: BATCH_HEADER.size])
            # A batch that reaches over the end is being written, and what is in it may look like batches.
            may_be_damage = tail.end < file_size and tail.end_offset < high_watermark
        except FormatError:
            pass
        if not may_be_damage or searched >= file_size:
            break
        position = _go_on_behind(search, file, tail, file_size)
        if position is None:
            searched = file_size
    return tail._replace(searched=searched)


def _go_on_behind(search: BatchSearch, file: File, tail: Tail, file_size: int) -> int | None:
    """Where the log goes on behind damage at the end of `tail`; None where nothing there is part of it."""
    position = search.next_batch(file, tail.end, file_size, tail.end_offset - 1)
    try:
        entry = next(walk(file, position, file_size), None)
    except FormatError:
        return None  # the file has changed since
    return None if entry is None or entry.last_offset < tail.end_offset else position

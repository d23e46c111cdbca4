"""Find the end of a log that another process writes: after the last complete batch of its last segment.

Bytes after that batch are a torn batch, a batch that is being written, or preallocated space. But if another complete
batch follows them, they are damage: the log continues after them, and a reader that gets there sees the damage.
"""

from __future__ import annotations

from typing import NamedTuple

from octavo.errors import FormatError
from octavo.log.segment.batch_walk import walk
from octavo.log.segment.damage import BatchSearch
from octavo.log.segment.segment import Segment
from octavo.log.storage import File
from octavo.records import read_batches
from octavo.records.layout import BATCH_HEADER


class Tail(NamedTuple):
    """The end of the last segment, and its last batch."""

    end_offset: int
    end: int  # position after the last batch
    position: int = 0  # position of the last batch
    header: bytes = b""  # header of the last batch, with its checksum; empty if there is no batch
    searched: int = 0  # no batch was found between `end` and this position


def find_tail(active: Segment, file_size: int, before: Tail | None, high_watermark: int) -> Tail:
    """Find the end of the active segment, starting at its last indexed batch, or at `before` if that is further on.

    `high_watermark` was read before the file size, so the file holds everything below it.
    """
    tail = Tail(active.base_offset, 0) if before is None else before
    if before is None or file_size != before.end:
        active.offset_index.refresh(file_size)
        start = active.last_indexed(file_size)
        found = None
        if start > tail.end:
            found = _walk(active.file, Tail(tail.end_offset, start), file_size, high_watermark)
        if found is None or not found.header:  # the index does not lead further, or it lies
            found = _walk(active.file, tail, file_size, high_watermark)
        tail = found
    if before is None or tail.end != before.end:
        active.refresh(tail.end)
    return tail


def _walk(file: File, tail: Tail, file_size: int, high_watermark: int) -> Tail:
    """Advance `tail` over all batches with correct checksums, even those after damage."""
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
            # A batch that reaches beyond the end is being written, and its content may look like batches.
            may_be_damage = tail.end < file_size and tail.end_offset < high_watermark
        except FormatError:
            pass
        if not may_be_damage or searched >= file_size:
            break
        position = _go_on_after_damage(search, file, tail, file_size)
        if position is None:
            searched = file_size
    return tail._replace(searched=searched)


def _go_on_after_damage(search: BatchSearch, file: File, tail: Tail, file_size: int) -> int | None:
    """Return the position of the first batch after the damage at the end of `tail`; None if no such batch follows."""
    position = search.next_batch(file, tail.end, file_size, tail.end_offset - 1)
    try:
        entry = next(walk(file, position, file_size), None)
    except FormatError:
        return None  # the file has changed since
    return None if entry is None or entry.last_offset < tail.end_offset else position

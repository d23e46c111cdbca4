"""Walk the batches of a segment file by their headers, a block of bytes at a time.

This finds one batch among the few after an index entry, in microseconds and without heavy imports. Whole segments are
scanned by kernels (`block_reader`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from octavo.errors import ChecksumMismatch, CorruptFile
from octavo.log.storage import File
from octavo.records.checksum import covered_from, crc32, crc32c, stored_crc_at
from octavo.records.kernels.scan import BROKEN, MORE, header_extent
from octavo.records.layout import BATCH_HEADER, MAGIC_AT, MESSAGE_V1, MIN_SIZE, NO_TIMESTAMP
from octavo.records.offset_order import RULE

_FIRST_BLOCK: Final = 256  # bytes of the first read, enough for a header; every further read is twice as large
_BLOCK: Final = 8192  # bytes of the largest read: a bit more than there is between two index entries by default
_PIECE: Final = 1 << 20  # bytes of a batch in memory at a time, while its checksum is computed
_HEADER: Final = BATCH_HEADER.only("base_offset", "length", "magic", "last_offset_delta", "max_timestamp_ms")
_MESSAGE: Final = MESSAGE_V1.only("timestamp_ms")
_NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call
CUT: Final = "the bytes end inside a batch"


class Entry(NamedTuple):
    """A batch in a file, as its header describes it."""

    position: int
    size: int
    base_offset: int  # of a compressed message of magic 0 or 1, the last offset: the first one is inside
    last_offset: int
    max_timestamp_ms: int

    @property
    def end(self) -> int:
        """The position after the batch."""
        return self.position + self.size


def walk(file: File, position: int, end: int) -> Iterator[Entry]:
    """Yield the batches from `position` on, up to the last that ends at or before `end`.

    Raises `CorruptFile` for bytes that are not a batch.
    """
    block = b""
    block_at = position
    block_size = _FIRST_BLOCK
    while (left := end - position) >= MIN_SIZE:
        at = position - block_at
        if at + _HEADER.size > len(block):
            block = file.read_at(min(block_size, left), position)
            block_size = min(2 * block_size, _BLOCK)
            if len(block) < MIN_SIZE:
                return  # the file was truncated meanwhile
            if len(block) < _HEADER.size:
                block += bytes(_HEADER.size - len(block))
            block_at = position
            at = 0
        base_offset, length, magic, delta, max_timestamp_ms = _HEADER.unpack_from(block, at)
        outcome, size, _ = header_extent(length, magic, left)
        if outcome != MORE:
            if outcome == BROKEN:
                raise CorruptFile(file.path, position, "there is no batch where there should be one")
            return
        if magic < 2:
            delta = 0
            max_timestamp_ms = _MESSAGE.unpack_from(block, at)[0] if magic else NO_TIMESTAMP
        yield _NEW(Entry, (position, size, base_offset, base_offset + delta, max_timestamp_ms))
        position += size


def check(file: File, entry: Entry, room: memoryview | None = None) -> None:
    """Raise `CorruptFile` if a batch is not complete, or its checksum does not match its bytes.

    The batch is read a piece at a time, into `room` if that is given.
    """
    head = file.read_at(BATCH_HEADER.size, entry.position)
    if len(head) < min(entry.size, BATCH_HEADER.size):
        raise CorruptFile(file.path, entry.position, CUT)
    magic = head[MAGIC_AT]
    crc_at = stored_crc_at(magic)
    stored = int.from_bytes(head[crc_at : crc_at + 4], "big")
    at, computed = entry.position + covered_from(magic), 0
    while at < entry.end:
        left = entry.end - at
        data = file.read_at(min(_PIECE, left), at) if room is None else room[: file.read_into(room[:left], at)]
        if not data:
            raise CorruptFile(file.path, entry.position, CUT)
        computed = (crc32c if magic == 2 else crc32)(data, computed)
        at += len(data)
    if computed != stored:
        error = ChecksumMismatch(entry.position, stored, computed)
        raise CorruptFile(file.path, entry.position, error.rule)


def check_between(file: File, position: int, end: int) -> None:
    """Check all batches between two positions, and that their offsets increase. Raises `CorruptFile`."""
    before: int | None = None
    for entry in walk(file, position, end):
        check(file, entry)
        if before is not None and entry.base_offset <= before:
            raise CorruptFile(file.path, entry.position, RULE)
        before, position = entry.last_offset, entry.end
    if position != end:
        raise CorruptFile(file.path, position, CUT)


assert MAGIC_AT < MIN_SIZE

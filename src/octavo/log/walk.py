"""Walk the batches of a segment file by their headers, a block of bytes at a time.

For finding one batch among the few behind an index entry, in microseconds and with nothing imported; whole segments are
scanned by kernels (`octavo.log.scanner`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from octavo.log.small_file import CorruptFile
from octavo.log.storage import File
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD, MAGIC_AT, MESSAGE_V1, MIN_LENGTH, NO_TIMESTAMP

_FIRST_BLOCK: Final = 256  # bytes read at once: a header, where batches are large,
_BLOCK: Final = 8192  # and soon a bit more than lies between two index entries, by default, where they are small
_HEADER: Final = BATCH_HEADER.only("base_offset", "length", "magic", "last_offset_delta", "max_timestamp_ms")
_MESSAGE: Final = MESSAGE_V1.only("timestamp_ms")
_SMALLEST: Final = LOG_OVERHEAD + MIN_LENGTH


class Entry(NamedTuple):
    """A batch in a file, as its header tells it."""

    position: int
    size: int
    base_offset: int  # of an old compressed message: its last, as the first is inside
    last_offset: int
    max_timestamp_ms: int

    @property
    def end(self) -> int:
        """The position behind the batch."""
        return self.position + self.size


def walk(file: File, position: int, end: int) -> Iterator[Entry]:
    """The batches from `position`, up to the last that ends at or before `end`.

    Raises `CorruptFile` where there is no batch.
    """
    block = b""
    block_at = position
    block_size = _FIRST_BLOCK
    while end - position >= _SMALLEST:
        at = position - block_at
        if at + _HEADER.size > len(block):
            block = file.read_at(min(block_size, end - position), position)
            block_size = min(2 * block_size, _BLOCK)
            if len(block) < _SMALLEST:
                return  # the file has been cut since
            if len(block) < _HEADER.size:
                block += bytes(_HEADER.size - len(block))
            block_at = position
            at = 0
        base_offset, length, magic, delta, max_timestamp_ms = _HEADER.unpack_from(block, at)
        size = length + LOG_OVERHEAD
        if length < MIN_LENGTH or not 0 <= magic <= 2 or (magic == 2 and size < BATCH_HEADER.size):
            raise CorruptFile(file.path, position, "there is no batch where there should be one")
        if position + size > end:
            return
        if magic < 2:
            delta = 0
            max_timestamp_ms = _MESSAGE.unpack_from(block, at)[0] if magic else NO_TIMESTAMP
        yield Entry(position, size, base_offset, base_offset + delta, max_timestamp_ms)
        position += size


assert MAGIC_AT < _SMALLEST

"""Walk the batches of a buffer with `read_batches`.

    undamaged     yields every batch, to the end
    torn tail     an incomplete last batch ends the walk; `torn_tail` says where it begins. This is no error: a
                  process died while it wrote, or a fetch was cut to its size
    damage        raises where the damage is; with `resync`, skips it and records it in `damage`

The rules are Kafka's (`ByteBufferLogInputStream`). `entry_extent` decides whether an entry is torn or damaged.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import NamedTuple

from octavo.errors import ChecksumMismatch, FormatError, InvalidInput, Truncated
from octavo.records.batch import Batch
from octavo.records.compression import DEFAULT_LIMIT
from octavo.records.kernels import rules
from octavo.records.kernels.scan import DONE, MORE, TORN, entry_extent
from octavo.records.layout import MAGIC_AT, Buffer
from octavo.records.legacy import Message
from octavo.records.resync import Resync
from octavo.records.v2 import BatchV2


class Damage(NamedTuple):
    """A range of bytes that was skipped, and the error at its first byte."""

    position: int
    size: int
    error: FormatError


def read_batches(
    buffer: Buffer | mmap.mmap,
    *,
    start: int = 0,
    end: int | None = None,
    verify: bool = True,
    resync: bool = False,
    max_decompressed: int = DEFAULT_LIMIT,
) -> BatchReader:
    """Walk the batches of `buffer[start:end]`, of any mix of magics; only their headers are read.

    verify: check each batch's checksum before it is returned
    resync: continue after damage with the next batch whose checksum is right, and record the damage in `damage`
    max_decompressed: refuse to decompress the records of a batch to more bytes than this

    Raises `InvalidInput` for a range outside the buffer and for a buffer that is not contiguous. Iterating raises a
    `FormatError` at damage, unless `resync` is set. Wrong records in a batch whose checksum is right raise when that
    batch is iterated.
    """
    return BatchReader(buffer, start=start, end=end, verify=verify, resync=resync, max_decompressed=max_decompressed)


class BatchReader(Iterator[Batch]):
    """An iterator over the batches of a buffer; `read_batches` creates it."""

    torn_tail: int | None  # start of an incomplete last batch; known when the walk has ended
    position: int  # end of the last batch, or of damage that no batch follows
    damage: list[Damage]  # the damage skipped so far

    def __init__(
        self,
        buffer: Buffer | mmap.mmap,
        *,
        start: int = 0,
        end: int | None = None,
        verify: bool = True,
        resync: bool = False,
        max_decompressed: int = DEFAULT_LIMIT,
    ) -> None:
        view = memoryview(buffer)
        if not view.c_contiguous:
            raise InvalidInput("the buffer's bytes do not lie one after another")
        view = view.cast("B")
        self._end = len(view) if end is None else end
        if not 0 <= start <= self._end <= len(view):
            raise InvalidInput(f"{start} to {self._end} is no range of a buffer of {len(view)} bytes")
        self._view = view
        self._verify = verify
        self._max_decompressed = max_decompressed
        self._resync = Resync(view, start, self._end) if resync else None
        self.position = start
        self.torn_tail = None
        self.damage = []

    def __next__(self) -> Batch:
        position = self.position
        outcome, size, rule = entry_extent(self._view, position, self._end)
        error: FormatError
        if outcome == MORE:
            batch = self._batch(position, size)
            if self._resync is None:
                if self._verify:
                    batch.verify()
                self.position = position + size
                return batch
            if not self._verify or self._resync.checksum(position, size, batch.magic) == batch.crc:
                return self._found(batch, self._resync)
            error = ChecksumMismatch(position, batch.crc, self._resync.checksum(position, size, batch.magic))
        elif outcome == DONE:
            raise StopIteration
        elif outcome == TORN:
            error = Truncated(position, "the bytes end inside a batch")
        else:
            error = rules.broken(rule, position)
        if self._resync is not None:
            return self._next_after_damage(self._resync, error, size if outcome == MORE else 0)
        if outcome == TORN:
            self.torn_tail = position
            raise StopIteration
        raise error

    def go_to(self, position: int, last_offset: int | None) -> None:
        """Continue at the start of another batch; `last_offset` is that of the batch before it, if known."""
        self.position = position
        if self._resync is not None:
            self._resync.last_offset = last_offset

    def _batch(self, position: int, size: int) -> Batch:
        data = self._view[position : position + size]
        kind = BatchV2 if data[MAGIC_AT] == 2 else Message
        return kind(data, position, self._max_decompressed)

    def _found(self, batch: Batch, resync: Resync) -> Batch:
        self.position = batch.position + batch.size
        resync.last_offset = batch.last_offset
        return batch

    def _next_after_damage(self, resync: Resync, error: FormatError, size: int) -> Batch:
        """Return the next batch with a right checksum.

        `size` is the size that the damaged batch declares, or 0 if it is impossible.
        """
        begin = self.position
        found = resync.find(begin, size)
        if found is not None:
            position, found_size = found
            self.damage.append(Damage(begin, position - begin, error))
            return self._found(self._batch(position, found_size), resync)
        if isinstance(error, Truncated):
            self.torn_tail = begin
            raise StopIteration
        # There are no more batches. If the damaged batch's own length leads to what looks like an incomplete batch, the
        # damage ends there and the tail is torn.
        rest = begin + size if size else self._end
        if entry_extent(self._view, rest, self._end)[0] != TORN:
            rest = self._end
        self.damage.append(Damage(begin, rest - begin, error))
        self.position = rest
        if rest < self._end:
            self.torn_tail = rest
        raise StopIteration

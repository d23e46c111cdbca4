"""Limit the size of a micro-batch: the options `maxOffsetsPerTrigger`, `maxBytesPerTrigger`, `minOffsetsPerTrigger`."""

from __future__ import annotations

import math
from typing import Final

from octavo.records.layout import MAX_INT64
from octavo.spark.offsets import Offsets
from octavo.spark.plan import boundary_after, segment_of, slices_of
from octavo.spark.ranges import OffsetRange, SourceLog, Sources
from octavo.spark.slices import Slice


def limit_rows(starts: Offsets, ends: Offsets, limit: int) -> Offsets:
    """Lower `ends` so that a micro-batch has about `limit` offsets.

    As in Spark's Kafka connector, a partition's share is proportional to its new offsets, and is at least one offset.
    """
    sizes = {partition: end - starts[partition] for partition, end in ends.items() if end > starts[partition]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    limited = dict(ends)
    for partition, size in sizes.items():
        share = limit * (size / total)
        count = math.ceil(share) if share < 1 else math.floor(share)
        limited[partition] = min(ends[partition], starts[partition] + min(count, MAX_INT64 - starts[partition]))
    return limited


def limit_bytes(sources: Sources, starts: Offsets, ends: Offsets, limit: int) -> Offsets:
    """Lower `ends` so that a micro-batch has about `limit` bytes, and at least one batch of each partition."""
    slices = {
        partition: slices_of(OffsetRange(sources[partition], starts[partition], end))
        for partition, end in ends.items()
        if partition in sources and end > starts[partition]
    }
    total = sum(piece.size for pieces in slices.values() for piece in pieces)
    if total <= limit:
        return dict(ends)
    limited = dict(ends)
    for partition, pieces in slices.items():
        share = limit * sum(piece.size for piece in pieces) // total
        limited[partition] = min(ends[partition], _offset_behind(sources[partition], pieces, share, ends[partition]))
    return limited


def _offset_behind(source: SourceLog, pieces: list[Slice], size: int, end: int) -> int:
    """Return the offset after the first `size` bytes of the slices, but at least after the first batch."""
    for piece in pieces:
        if size < piece.size:
            found = boundary_after(segment_of(source, piece), piece, max(piece.position + size, piece.position + 1))
            return piece.end_offset if found is None else found[1]
        size -= piece.size
        if size == 0:
            return piece.end_offset
    return end


class Patience:
    """Waits for `minOffsetsPerTrigger`, but no longer than `maxTriggerDelay`."""

    def __init__(self, smallest: int, delay_ms: int) -> None:
        self._smallest: Final = smallest
        self._delay_ms: Final = delay_ms
        self._last_ms: float = -math.inf

    def waits(self, starts: Offsets, ends: Offsets, now_ms: float) -> bool:
        """Whether to wait longer, because there are still too few offsets for a micro-batch."""
        count = sum(end - starts[partition] for partition, end in ends.items())
        if now_ms - self._last_ms < self._delay_ms and count < self._smallest:
            return True
        self._last_ms = now_ms
        return False

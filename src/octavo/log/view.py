"""A snapshot of a log (`View`), and how far readers may read (`Isolation`).

Readers take no lock. They look at a `View`, which the writer replaces as a whole when something has changed, and read
files at positions. A segment that is deleted meanwhile stays readable for everybody who has a view with it. Only a
truncation can remove bytes that somebody is reading, and write others in their place. It changes the view's generation,
so that the reader notices and reads again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from octavo.choices import chosen
from octavo.log.segment.segment import Segment
from octavo.records.layout import NO_OFFSET

End = TypeVar("End")


class Isolation(Enum):
    """How far a reader may read."""

    LOG_END = "log end"  # everything; for replicas
    HIGH_WATERMARK = "high watermark"  # what is on enough replicas; for consumers
    READ_COMMITTED = "read committed"  # the part of that before the first open transaction


ISOLATION_WORDS: Final = {"read_uncommitted": Isolation.HIGH_WATERMARK, "read_committed": Isolation.READ_COMMITTED}


def isolation_of(given: Isolation | str) -> Isolation:
    """Return the isolation that a caller means. Raises `InvalidInput`."""
    return given if type(given) is Isolation else chosen("isolation", given, Isolation, ISOLATION_WORDS)


class SegmentInfo(NamedTuple):
    """One segment of a log: where it begins, its size in bytes, and its file of batches."""

    base_offset: int
    size: int
    path: Path


class View(NamedTuple):
    """A snapshot of a log. The last segment may have grown since; `size` is the size that it has in this view."""

    segments: tuple[Segment, ...]
    bases: tuple[int, ...]
    size: int
    start_offset: int
    end_offset: int
    high_watermark: int
    generation: int  # changes when bytes are removed that somebody may be reading
    first_unstable_offset: int = NO_OFFSET  # of the first undecided transaction; -1 if there is none

    @property
    def last_stable_offset(self) -> int:
        """The offset before which consumers of committed data may read: all transactions before it are decided."""
        if self.first_unstable_offset < 0:
            return self.high_watermark
        return min(max(self.first_unstable_offset, self.start_offset), self.high_watermark)

    def bound(self, isolation: Isolation) -> int:
        """Return the offset before which a reader of this isolation may read."""
        if isolation is Isolation.HIGH_WATERMARK:
            return self.high_watermark
        return self.end_offset if isolation is Isolation.LOG_END else self.last_stable_offset

    def segment_at(self, offset: int) -> int:
        """Return the number of the last segment that begins at or before `offset`; 0 if the first begins after it."""
        return max(0, bisect_right(self.bases, offset) - 1)

    def count_before(self, offset: int) -> int:
        """Return the number of segments that begin before `offset`."""
        return bisect_left(self.bases, offset)

    def segment_end(self, number: int) -> int:
        """Return the offset at which segment `number` ends: the base offset of the next one, or the log end offset."""
        return self.bases[number + 1] if number + 1 < len(self.bases) else self.end_offset

    def segment_size(self, number: int) -> int:
        """Return the number of bytes that segment `number` has in this view."""
        return self.size if number == len(self.segments) - 1 else self.segments[number].size


def segment_ends(segments: Sequence[Segment], end_offset: End) -> list[int | End]:
    """Return the end offset of each segment, as `View.segment_end` does. `end_offset`: that of the last segment."""
    ends: list[int | End] = [segment.base_offset for segment in segments[1:]]
    return [*ends, end_offset] if segments else []

"""What a clean did, how far it has come, and that it was broken off."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from octavo.errors import LogError
from octavo.log.names import TopicPartition


class CompactionAborted(LogError):
    """The log was truncated, deleted from or closed meanwhile. Nothing is lost; what was left is done another time."""


class CompactionStats(NamedTuple):
    """What one clean did (Kafka's `CleanerStats`)."""

    partition: TopicPartition
    first_dirty_offset: int  # from here on keys were put into the map,
    end_offset: int  # up to here; what is before is clean now
    segments_before: int  # that were cleaned,
    segments_after: int  # and what they became
    bytes_read: int  # of what was filtered
    bytes_written: int
    records_read: int
    records_written: int
    records_without_key: int  # which went: a compacted log has no place for them
    map_bytes_read: int  # of what was put into the map
    map_records_read: int
    map_keys: int
    map_utilization: float  # of all slots
    is_complete: bool  # the map had room for all; else there is more to clean right away
    fill_seconds: float
    seconds: float  # with that

    def __str__(self) -> str:
        rate = self.bytes_read / self.seconds / 1e6 if self.seconds else 0.0
        return (
            f"{self.partition}: offsets {self.first_dirty_offset} to {self.end_offset} cleaned in {self.seconds:.1f} s "
            f"({rate:,.0f} MB/s); {self.records_read:,} records in {self.segments_before} segment(s) became "
            f"{self.records_written:,} in {self.segments_after}, {self.bytes_read:,} bytes {self.bytes_written:,}; "
            f"{self.map_keys:,} keys, {self.map_utilization:.0%} of the map"
        )


class CompactionProgress(NamedTuple):
    """How far a clean has come."""

    partition: TopicPartition
    bytes_done: int  # read, in both passes
    bytes_total: int


OnCompaction = Callable[[CompactionProgress], None]

GoOn = Callable[[int, int], None]  # is told how many bytes were read and written, and raises where that was enough

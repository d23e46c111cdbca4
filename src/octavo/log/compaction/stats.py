"""Statistics and progress of the cleaner."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from octavo.log.names import TopicPartition


class CompactionStats(NamedTuple):
    """Statistics of one run of the cleaner over a log (Kafka's `CleanerStats`)."""

    partition: TopicPartition
    first_dirty_offset: int  # first offset whose key was put into the map
    end_offset: int  # offset after the last one in the map; everything before it is clean now
    segments_before: int  # number of segments that were cleaned
    segments_after: int  # number of segments that they became
    bytes_read: int  # bytes that were filtered
    bytes_written: int
    records_read: int
    records_written: int
    records_without_key: int  # records dropped because they had no key: a compacted log cannot keep them
    map_bytes_read: int  # bytes that were read to fill the map
    map_records_read: int
    map_keys: int
    map_utilization: float  # share of all slots that are taken
    is_complete: bool  # whether the map had room for all keys; if not, there is more to clean
    fill_seconds: float
    seconds: float  # including fill_seconds

    def __str__(self) -> str:
        rate = self.bytes_read / self.seconds / 1e6 if self.seconds else 0.0
        return (
            f"{self.partition}: offsets {self.first_dirty_offset} to {self.end_offset} cleaned in {self.seconds:.1f} s "
            f"({rate:,.0f} MB/s); {self.records_read:,} records in {self.segments_before} segment(s) became "
            f"{self.records_written:,} in {self.segments_after}, {self.bytes_read:,} bytes {self.bytes_written:,}; "
            f"{self.map_keys:,} keys, {self.map_utilization:.0%} of the map"
        )


class CompactionProgress(NamedTuple):
    """Progress of one run of the cleaner over a log."""

    partition: TopicPartition
    bytes_done: int  # bytes read, in both passes
    bytes_total: int


OnCompaction = Callable[[CompactionProgress], None]  # called with the progress of the cleaner

GoOn = Callable[[int, int], None]  # called with the bytes read and written; raises to stop

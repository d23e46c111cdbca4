"""Run both passes of the cleaner over one log (Kafka's `Cleaner`).

The log is not locked meanwhile: appends and reads go on. As soon as the output of a group of segments is written, a
callback to the log replaces the group. So if the cleaner is interrupted, the groups that it has finished are clean.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import CorruptFile
from octavo.log.compaction.cleaned_transactions import CleanedTransactions
from octavo.log.compaction.filling import Filling
from octavo.log.compaction.filtering import Filtering
from octavo.log.compaction.grouping import group_segments
from octavo.log.compaction.offset_map import OffsetMap
from octavo.log.compaction.output import CleanedSegment
from octavo.log.compaction.plan import CompactionPlan, LastBatch, segments_between
from octavo.log.compaction.retention import LastBatches
from octavo.log.compaction.source import Source
from octavo.log.compaction.stats import CompactionProgress, CompactionStats, OnCompaction
from octavo.log.compaction.throttle import Throttle
from octavo.log.config.log_config import LogConfig
from octavo.log.names import TopicPartition
from octavo.log.segment.segment import Segment
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.log.storage import Storage
from octavo.log.view import View, segment_ends
from octavo.records.kernels import kernels
from octavo.records.kernels.machine import wrap64

Replace = Callable[[Sequence[Segment], CleanedSegment], None]


class Job(NamedTuple):
    """A log to clean, with its state when the plan was made, and callbacks to the log."""

    storage: Storage
    folder: Path
    partition: TopicPartition
    config: LogConfig
    view: View
    plan: CompactionPlan
    now_ms: int
    last_batches: Callable[[], Mapping[int, LastBatch]]  # returns the last batch of each known producer
    check: Callable[[], None]  # raises if the cleaner has to stop
    replace: Replace  # replaces a group of segments by the output; raises if the group is gone


class Cleaner:
    """One run of the cleaner over one log."""

    def __init__(
        self,
        job: Job,
        *,
        map_memory: int,
        throttle: Throttle | None = None,
        on_progress: OnCompaction | None = None,
    ) -> None:
        plan = job.plan
        self._job = job
        self._throttle = throttle
        self._on_progress = on_progress
        self._kernels: Final = kernels(plan.clean_bytes + 2 * plan.cleanable_bytes)
        self._source: Final = Source(self._kernels)
        self._offsets: Final = OffsetMap(
            map_memory,
            start_offset=plan.first_dirty_offset,
            max_keys=plan.first_uncleanable_offset - plan.first_dirty_offset,
        )
        self._bytes_done = 0
        self._bytes_total = plan.clean_bytes + 2 * plan.cleanable_bytes
        self._segments_before = 0
        self._segments_after = 0

    def run(self) -> CompactionStats:
        """Clean the log. Raises `FormatError` for damaged data, `OSError`, and whatever the callbacks raise."""
        job, plan = self._job, self._job.plan
        began = time.monotonic()
        filling = Filling(self._kernels, self._source, self._offsets, self._transactions(plan.first_dirty_offset))
        dirty = segments_between(job.view, plan.first_dirty_offset, plan.first_uncleanable_offset)
        is_complete = filling.fill(dirty, plan.first_dirty_offset, plan.first_uncleanable_offset, self._go_on)
        filled = time.monotonic()
        end_offset = self._offsets.latest_offset + 1
        filtering = Filtering(
            self._kernels,
            self._source,
            self._offsets,
            CleanedTransactions(),
            upper_bound=plan.first_uncleanable_offset,
            now_ms=job.now_ms,
            horizon_ms=wrap64(job.now_ms + job.config.delete_retention_ms),  # if it overflows: none, as in Kafka
        )
        self._filter_groups(filtering, end_offset)
        return CompactionStats(
            partition=job.partition,
            first_dirty_offset=plan.first_dirty_offset,
            end_offset=end_offset,
            segments_before=self._segments_before,
            segments_after=self._segments_after,
            bytes_read=filtering.bytes_read,
            bytes_written=filtering.bytes_written,
            records_read=filtering.records_read,
            records_written=filtering.records_written,
            records_without_key=filtering.records_without_key,
            map_bytes_read=filling.bytes_read,
            map_records_read=self._offsets.records_read + filling.records_passed,
            map_keys=self._offsets.key_count,
            map_utilization=self._offsets.utilization,
            is_complete=is_complete,
            fill_seconds=filled - began,
            seconds=time.monotonic() - began,
        )

    def _filter_groups(self, filtering: Filtering, end_offset: int) -> None:
        job, plan = self._job, self._job.plan
        clean = segments_between(job.view, 0, plan.first_dirty_offset)
        old_horizon_ms = clean[-1].modified_ms() - job.config.delete_retention_ms if clean else 0
        segments = segments_between(job.view, 0, end_offset)
        for group in group_segments(segments, job.config, plan.first_uncleanable_offset):
            output = CleanedSegment(
                job.storage,
                job.folder,
                group[0].base_offset,
                interval=job.config.index_interval_bytes,
                kernels=self._kernels,
            )
            try:
                modified_ms = self._filter_group(filtering, group, output, old_horizon_ms)
                output.finish(modified_ms)
                job.replace(group, output)
            except BaseException:
                with contextlib.suppress(OSError):  # the next run removes leftovers
                    output.discard()
                raise
            self._segments_before += len(group)
            self._segments_after += 1

    def _filter_group(
        self, filtering: Filtering, group: Sequence[Segment], output: CleanedSegment, old_horizon_ms: int
    ) -> int:
        """Copy what is to be kept of a group to `output`. Return the modification time of the group's last segment."""
        filtering.transactions.index = output.txn_index
        last_batches = LastBatches(self._job.last_batches())
        ends = segment_ends(group, group[-1].end_offset()[0])
        modified_ms = 0
        for segment, end in zip(group, ends, strict=True):
            self._check_end(segment, end)
            filtering.transactions.add(self._aborted(segment.base_offset, end))
            modified_ms = segment.modified_ms()
            filtering.filter(
                segment.file,
                segment.size,
                output,
                last_batches,
                self._go_on,
                old_tombstones_stay=modified_ms > old_horizon_ms,
            )
        return modified_ms

    def _check_end(self, segment: Segment, end: int) -> None:
        """Raise `CorruptFile` if a segment overlaps the next one: merged, their offsets would not be in order."""
        end_offset, position = segment.end_offset()
        if end_offset > end:
            raise CorruptFile(
                segment.path,
                position,
                f"{self._job.partition} cannot be compacted: this segment has offsets up to {end_offset - 1}, and the "
                f"next one begins at {end}",
            )

    def _transactions(self, start_offset: int) -> CleanedTransactions:
        transactions = CleanedTransactions()
        transactions.add(self._aborted(start_offset, self._job.plan.first_uncleanable_offset))
        return transactions

    def _aborted(self, start_offset: int, upper_bound: int) -> list[AbortedEntry]:
        """Return the transactions that were aborted before `upper_bound`.

        Only those are found whose marker is in the segment of `start_offset` or a later one.
        """
        view = self._job.view
        found: list[AbortedEntry] = []
        for segment in segments_between(view, start_offset, view.end_offset + 1):
            if segment.txn_index.collect(view.start_offset, upper_bound, found):
                break
        return found

    def _go_on(self, read: int, written: int) -> None:
        """Count the bytes, wait if that was too fast, and report progress. Raises if the cleaner has to stop."""
        self._job.check()
        self._bytes_done += read
        if self._throttle is not None:
            self._throttle.note(read + written, self._job.check)
        if self._on_progress is not None:
            self._on_progress(CompactionProgress(self._job.partition, self._bytes_done, self._bytes_total))

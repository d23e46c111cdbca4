"""`octavo.log.Log` with answers in the words of `tests.kafka.unified_log`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

from octavo import log as octavo_log
from octavo.log import Log, LogConfig
from octavo.log.producer_state.states import ProducerEntry
from tests.kafka.log_answers import (
    AbortedEntry,
    Appended,
    CachedBatch,
    Cleanable,
    Cleaned,
    Isolation,
    Origin,
    Part,
    Producers,
    ProducerState,
    Segment,
    State,
    TimestampOffset,
)

_ISOLATIONS: Final = {
    "LOG_END": octavo_log.Isolation.LOG_END,
    "HIGH_WATERMARK": octavo_log.Isolation.HIGH_WATERMARK,
    "TXN_COMMITTED": octavo_log.Isolation.READ_COMMITTED,
}


class Ours:
    """One of our logs."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @classmethod
    def open(
        cls,
        folder: Path,
        config: Mapping[str, str],
        *,
        clock: Callable[[], int],
        follows_end: bool = True,
        may_have_gaps: bool = True,
    ) -> Self:
        """Open a log. Kafka does not mind gaps between segments, nor do we, unless told so."""
        settings = LogConfig.from_properties(config)
        log = Log.open(folder, settings, clock=clock, may_have_gaps=may_have_gaps, recover="as-kafka")
        if not follows_end:
            log.advance_high_watermark(log.start_offset)  # as Kafka's is until it is told another
        return cls(log)

    def close(self) -> None:
        self._log.close()

    def append(self, batches: bytes, *, origin: Origin = "CLIENT") -> Appended:
        return Appended(*self._log.append(batches, origin=octavo_log.Origin[origin])[:4])

    def append_as_follower(self, batches: bytes) -> Appended:
        return Appended(*self._log.append_as_follower(batches)[:4])

    def roll(self) -> None:
        self._log.roll()

    def flush(self) -> None:
        self._log.flush()

    def truncate_to(self, offset: int) -> None:
        self._log.truncate_to(offset)

    def delete_records_before(self, offset: int) -> None:
        self._log.delete_records_before(offset)

    def apply_retention(self) -> list[int]:
        return [expired.segment.base_offset for expired in self._log.apply_retention()]

    def delete_files(self) -> None:
        self._log.delete_files()

    def advance_high_watermark(self, offset: int) -> None:
        self._log.advance_high_watermark(offset)

    def become_leader(self, epoch: int) -> None:
        self._log.become_leader(epoch)

    def read(
        self, offset: int, max_bytes: int, *, isolation: Isolation = "HIGH_WATERMARK", at_least_one: bool = True
    ) -> bytes:
        return self.read_part(offset, max_bytes, isolation, at_least_one).records

    def read_part(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool) -> Part:
        result = self._log.read(offset, max_bytes, isolation=_ISOLATIONS[isolation], at_least_one=at_least_one)
        aborted = result.aborted_transactions
        told = None if aborted is None else tuple((each.producer_id, each.first_offset) for each in aborted)
        return Part(bytes(result.records), told)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        found = self._log.offset_for_timestamp(timestamp_ms)
        return None if found is None else TimestampOffset(*found)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        found = self._log.max_timestamp_offset()
        return None if found is None else TimestampOffset(*found)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        end = self._log.end_offset_for_epoch(epoch)
        return None if end == (-1, -1) else (end.epoch, end.end_offset)

    # Producers

    @property
    def producers(self) -> Producers:
        log = self._log
        aborted = tuple(
            AbortedEntry(segment.base_offset, *entry)
            for segment in log._view.segments
            for entry in segment.txn_index.entries()
        )
        unstable = log.first_unstable_offset
        states = states_of(log.producers.entries)
        return Producers(states, log.last_stable_offset, -1 if unstable is None else unstable, aborted)

    def expire_producers(self) -> None:
        self._log.expire_producers()

    # Compacting

    def compact(self, map_memory: int) -> Cleaned | None:
        stats = self._log.compact(map_memory=map_memory, only_if_due=True)
        if stats is None:
            return None
        return Cleaned(
            stats.end_offset,
            stats.bytes_read,
            stats.bytes_written,
            stats.records_read,
            stats.records_written,
            stats.records_without_key,
            stats.map_records_read,
            stats.map_utilization,
        )

    @property
    def cleanable(self) -> Cleanable:
        plan = self._log.compaction_plan()
        return Cleanable(
            plan.first_dirty_offset,
            plan.first_uncleanable_offset,
            plan.clean_bytes,
            plan.cleanable_bytes,
            plan.dirty_ratio,
            plan.delay_ms,
            plan.checkpoint_is_wrong,
        )

    @property
    def recovery_point(self) -> int:
        return self._log.recovery_point

    @property
    def state(self) -> State:
        log = self._log
        segments = tuple(Segment(segment.base_offset, segment.size) for segment in log.segments)
        return State(log.start_offset, log.end_offset, log.high_watermark, segments)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        return [(entry.epoch, entry.start_offset) for entry in self._log.epochs]


def states_of(entries: Mapping[int, ProducerEntry]) -> tuple[ProducerState, ...]:
    """Producers in Kafka's words, by their ids."""
    return tuple(
        ProducerState(
            producer_id,
            entry.epoch,
            entry.coordinator_epoch,
            entry.last_timestamp_ms,
            entry.txn_first_offset,
            tuple(
                CachedBatch(b.first_sequence, b.last_sequence, b.first_offset, b.last_offset, b.timestamp_ms)
                for b in entry.batches
            ),
        )
        for producer_id, entry in sorted(entries.items())
    )

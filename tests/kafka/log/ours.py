"""`octavo.log.Log` with answers in the words of `tests.kafka.unified_log`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

from octavo import log as octavo_log
from octavo.log import Log, LogConfig
from tests.kafka.unified_log import Appended, Isolation, Origin, Segment, State, TimestampOffset

_ISOLATIONS: Final = {
    "LOG_END": octavo_log.Isolation.LOG_END,
    "HIGH_WATERMARK": octavo_log.Isolation.HIGH_WATERMARK,
}


class Ours:
    """One of our logs."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @classmethod
    def open(
        cls, folder: Path, config: Mapping[str, str], *, clock: Callable[[], int], follows_end: bool = True
    ) -> Self:
        # Kafka does not mind gaps between segments, nor shall we here.
        log = Log.open(folder, LogConfig.from_properties(config), clock=clock, may_have_gaps=True)
        if not follows_end:
            log.advance_high_watermark(log.start_offset)  # as Kafka's is until it is told another
        return cls(log)

    def close(self) -> None:
        self._log.close()

    def append(self, batches: bytes, *, origin: Origin = "CLIENT") -> Appended:
        return Appended(*self._log.append(batches, origin=octavo_log.Origin[origin]))

    def append_as_follower(self, batches: bytes) -> Appended:
        return Appended(*self._log.append_as_follower(batches))

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
        result = self._log.read(offset, max_bytes, isolation=_ISOLATIONS[isolation], at_least_one=at_least_one)
        return bytes(result.records)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        found = self._log.offset_for_timestamp(timestamp_ms)
        return None if found is None else TimestampOffset(*found)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        found = self._log.max_timestamp_offset()
        return None if found is None else TimestampOffset(*found)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        end = self._log.end_offset_for_epoch(epoch)
        return None if end == (-1, -1) else (end.epoch, end.end_offset)

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
        return [(entry.epoch, entry.start_offset) for entry in self._log.epochs.entries]

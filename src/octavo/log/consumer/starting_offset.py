"""Where a consumer begins to read a partition: at the group's committed offset, or where `auto.offset.reset` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from octavo.errors import NoOffset
from octavo.log.consumer.assignment import Assigned
from octavo.log.consumer.committed_offsets import GroupOffsets
from octavo.log.consumer.config import EARLIEST, LATEST, NONE, OffsetReset
from octavo.log.consumer.consumed_logs import ConsumedLogs
from octavo.log.names import TopicPartition


class StartingOffset:
    """Finds the position at which to begin in a partition, and a new one if the position is out of range."""

    def __init__(self, logs: ConsumedLogs, group: GroupOffsets, reset: OffsetReset, now_ms: Callable[[], int]) -> None:
        self._logs: Final = logs
        self._group: Final = group
        self._reset: Final = reset
        self._now_ms: Final = now_ms

    @property
    def can_reset(self) -> bool:
        """Whether `auto.offset.reset` is anything but `none`."""
        return self._reset.where != NONE

    def find(self, state: Assigned) -> None:
        """Move a partition to its committed offset, or `reset` it. Raises `NoOffset` if neither is possible."""
        known = self._group.starting_offset(state.partition)
        if known is not None:
            state.move(known.offset)
            state.committed = known.offset
            state.leader_epoch = known.leader_epoch
            return
        if not self.can_reset:
            raise NoOffset(state.partition)
        self.reset(state)

    def reset(self, state: Assigned) -> None:
        """Move a partition to where `auto.offset.reset` says."""
        state.move(self._reset_offset(state.partition))

    def _reset_offset(self, partition: TopicPartition) -> int:
        where, duration_ms = self._reset
        if where == EARLIEST:
            return self._logs.start_offset(partition)
        if where == LATEST:
            return self._logs.end_offset(partition)
        return self._logs.offset_since(partition, max(0, self._now_ms() - duration_ms))

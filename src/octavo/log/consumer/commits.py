"""Commit the positions of a consumer, on request and automatically."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from octavo.errors import MemberFenced
from octavo.log.consumer.assignment import Assigned, Assignment
from octavo.log.consumer.committed_offsets import GroupOffsets
from octavo.log.consumer.consumed_logs import ConsumedLogs
from octavo.log.consumer.hand_out import HandOut
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata


class Commits:
    """Commits the positions after all records that were handed out."""

    def __init__(
        self,
        assignment: Assignment,
        hand_out: HandOut,
        logs: ConsumedLogs,
        group: GroupOffsets,
        *,
        interval_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        """`interval_ms` (`auto.commit.interval.ms`): how often `commit_if_due` commits, if auto-commit is on."""
        self._assignment: Final = assignment
        self._hand_out: Final = hand_out
        self._logs: Final = logs
        self._group: Final = group
        self._is_automatic: Final = group.is_automatic
        self._interval_ms: Final = interval_ms
        self._now_ms: Final = now_ms
        self._next_ms = now_ms() + interval_ms

    def is_due(self) -> bool:
        """Whether an automatic commit is due."""
        return self._is_automatic and self._now_ms() >= self._next_ms

    def commit_if_due(self) -> None:
        """Commit if an automatic commit is due."""
        if self.is_due():
            self._next_ms = self._now_ms() + self._interval_ms
            self.commit()

    def commit_if_automatic(self) -> None:
        """Commit if auto-commit is on. Call this before the assignment changes."""
        if self._is_automatic:
            self.commit()

    def commit_at_end(self) -> None:
        """Commit as `commit_if_automatic` does, but not if others have the partitions already."""
        with suppress(MemberFenced):
            self.commit_if_automatic()

    def commit(self) -> None:
        """Commit the positions that changed since the last commit. Raises `ConsumerError` without a group."""
        positions = self._positions()
        self._group.commit({state.partition: position for state, position in positions.items()})
        for state, position in positions.items():
            state.committed = position.offset

    def _positions(self) -> dict[Assigned, OffsetAndMetadata]:
        found = {}
        for state in self._assignment:
            position = self._hand_out.position(state)
            if position is not None and position != state.committed and self._logs.has_partition(state.partition):
                found[state] = OffsetAndMetadata(position, leader_epoch=self._hand_out.leader_epoch(state))
        return found

"""Hands out fetched records one by one, to an iteration or to polls for a single record: `HandOut`.

Records are taken from the fetched ones many at a time. Each counts as read when it is handed out, not before: the
position is computed from the number of records that are left. The next call of another method takes these back.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import Final, NamedTuple

from octavo.log.consumer.assignment import Assigned, Assignment
from octavo.log.consumer.record import ConsumerRecord


class _Taken(NamedTuple):
    """Records of one partition, of which some have been handed out."""

    state: Assigned
    records: list[ConsumerRecord]
    left: Iterator[ConsumerRecord]

    @property
    def left_count(self) -> int:
        return length_hint(self.left) if self.records else 0

    @property
    def last(self) -> ConsumerRecord | None:
        """The record that was handed out last."""
        left = self.left_count
        return self.records[-1 - left] if left < len(self.records) else None


class HandOut:
    """The fetched records that a consumer is handing out, one by one."""

    __slots__ = ("_assignment", "_taken", "single")

    def __init__(self, assignment: Assignment) -> None:
        self._assignment: Final = assignment
        self._taken: _Taken | None = None
        self.single: Iterator[ConsumerRecord] = iter(())  # records left for polls that ask for one

    @property
    def is_under_way(self) -> bool:
        """Whether records were taken that may not have been handed out."""
        return self._taken is not None

    def begin(self, state: Assigned, count: int) -> Iterator[ConsumerRecord]:
        """Take up to `count` fetched records of a partition. Return an iterator that hands them out."""
        assert state.fetched is not None
        records = state.fetched.take(count)
        self._taken = _Taken(state, records, iter(records))
        return self._taken.left

    def position(self, state: Assigned) -> int | None:
        """The offset after the last record of a partition that was handed out."""
        taken = self._taken
        if taken is None or taken.state is not state or state.fetched is None:
            return state.position
        return state.fetched.offset_at(taken.left_count)

    def leader_epoch(self, state: Assigned) -> int:
        """The leader epoch of the last record of a partition that was handed out."""
        taken = self._taken
        last = None if taken is None or taken.state is not state else taken.last
        return state.leader_epoch if last is None else last.leader_epoch

    def settle(self) -> None:
        """Take back the records that have not been handed out. This ends the iteration over them."""
        taken, self._taken = self._taken, None
        self.single = iter(())
        if taken is None or taken.state.fetched is None:
            return
        if taken.last is not None:
            taken.state.leader_epoch = taken.last.leader_epoch
        taken.state.fetched.give_back(taken.left_count)
        taken.state.go_on(taken.state.fetched.next_offset)
        taken.records.clear()
        self._assignment.end_turn(taken.state)

"""Hands out fetched records one by one, to an iteration or to polls for a single record: `HandOut`.

Records are taken from the fetched ones many at a time. Each counts as read when it is handed out, not before: the
position is computed from the number of records that are left. The next call of another method takes these back.

What a poll returns counts as read when it is returned. An exception from outside may come before that, when the
position is behind the records already. So the poll notes where it began, and forgets the note as the last thing.
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


class _Before(NamedTuple):
    """Where a partition was before a poll took records of it."""

    state: Assigned
    position: int | None
    segment: int | None
    leader_epoch: int


class HandOut:
    """The fetched records that a consumer is handing out, one by one."""

    __slots__ = ("_assignment", "_returning", "_taken", "single")

    def __init__(self, assignment: Assignment) -> None:
        self._assignment: Final = assignment
        self._taken: _Taken | None = None
        self._returning: tuple[_Before, ...] = ()  # partitions of which a poll takes records, and has not returned them
        self.single: Iterator[ConsumerRecord] = iter(())  # records left for polls that ask for one

    @property
    def is_under_way(self) -> bool:
        """Whether records were taken that may not have been handed out."""
        return self._taken is not None or bool(self._returning)

    def note(self, state: Assigned) -> None:
        """Note, before a poll takes records of a partition, where that is, unless the poll did so before."""
        if not any(each.state is state for each in self._returning):
            before = _Before(state, state.position, state.segment, state.leader_epoch)
            self._returning = (*self._returning, before)

    def returned(self) -> None:
        """Forget what was noted: a poll returns its records, and does nothing else in between."""
        self._returning = ()

    def _before(self, state: Assigned) -> _Before | None:
        return next((each for each in self._returning if each.state is state), None)

    def begin(self, state: Assigned, count: int) -> Iterator[ConsumerRecord]:
        """Take up to `count` fetched records of a partition. Return an iterator that hands them out."""
        assert state.fetched is not None
        self.note(state)
        records = state.fetched.take(count)
        taken = _Taken(state, records, iter(records))
        self._taken = taken
        self._returning = ()  # no signal is handled between these lines
        return taken.left

    def position(self, state: Assigned) -> int | None:
        """The offset after the last record of a partition that was handed out."""
        before = self._before(state) if self._returning else None
        if before is not None:
            return before.position
        taken = self._taken
        if taken is None or taken.state is not state or state.fetched is None:
            return state.position
        return state.fetched.offset_at(taken.left_count)

    def leader_epoch(self, state: Assigned) -> int:
        """The leader epoch of the last record of a partition that was handed out."""
        before = self._before(state) if self._returning else None
        if before is not None:
            return before.leader_epoch
        taken = self._taken
        last = None if taken is None or taken.state is not state else taken.last
        return state.leader_epoch if last is None else last.leader_epoch

    def settle(self) -> None:
        """Take back the records that have not been handed out. This ends the iteration over them.

        May be repeated after an exception in the middle.
        """
        self.single = iter(())
        if self._returning:  # a poll, or a call of this, was interrupted: fetch again from where it began
            for before in self._returning:
                before.state.move(before.position, before.segment)
                before.state.leader_epoch = before.leader_epoch
            self._taken = None
            self._returning = ()
        taken = self._taken
        if taken is None:
            return
        state = taken.state
        if state.fetched is not None:
            self._returning = (_Before(state, self.position(state), state.segment, self.leader_epoch(state)),)
            state.leader_epoch = self._returning[0].leader_epoch
            state.fetched.give_back(taken.left_count)
            state.go_on(state.fetched.next_offset)
            taken.records.clear()
            self._assignment.end_turn(state)
        self._taken = None
        self._returning = ()

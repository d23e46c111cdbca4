"""A shard, its timers, and outcomes that are kept or undone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.coordinator.journal import Journal, Table
from octavo.coordinator.shard import Now, Origin, Producer, Shard
from octavo.coordinator.timers import Key, Timers
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataKey
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue


class Counting(Shard):
    """A shard that counts how often a group was written."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Table[str, int] = Table(self.journal)
        self.origins: list[Origin] = []
        self.waiting: Table[str, Any] = Table(self.journal)

    def count(self, *groups: str) -> None:
        for group in groups:
            self.write(GroupMetadataKey(group=group), None)

    @property
    def size(self) -> int:
        return len(self.counts)

    def wait(self, ticket: Any, until_ms: int) -> None:
        self.waiting["one"] = ticket
        self.timers.set(("wait", "one"), until_ms)

    def apply(self, key: CoordinatorKey[Any], value: CoordinatorValue | None, origin: Origin) -> None:
        assert isinstance(key, GroupMetadataKey)
        self.counts[key.group] = self.counts.get(key.group, 0) + 1
        self.origins.append(origin)

    def apply_marker(self, producer: Producer, *, commit: bool) -> None:
        raise AssertionError("there are no markers here")

    def loaded(self) -> None:
        raise AssertionError("nothing is loaded here")

    def resign(self) -> None:
        raise AssertionError("nobody else takes over here")

    def expired(self, key: Key) -> None:
        self.count("expired")
        self.answer(self.waiting.pop("one"), "too late")


def test_an_outcome_is_kept_or_undone() -> None:
    shard = Counting()
    shard.end_offset = 10
    outcome = shard.run(lambda: shard.count("a", "b"), Now(1, 1))
    assert [len(key) for key, _ in outcome.records] == [5, 5]
    assert shard.origins == [Origin(10), Origin(11)]
    shard.undo(outcome.mark)
    assert shard.counts == {}
    shard.keep(shard.run(lambda: shard.count("a"), Now(1, 1)))
    shard.undo(0)
    assert shard.counts == {"a": 1}


def test_records_of_a_transaction() -> None:
    shard = Counting()
    producer = Producer(7, 1)

    def write() -> None:
        shard.write_for(producer)
        shard.count("a")
        shard.decide()

    outcome = shard.run(write, Now(1, 1))
    assert (outcome.producer, outcome.is_decision, shard.origins) == (producer, True, [Origin(0, producer)])
    assert shard.run(lambda: None, Now(1, 1)).producer is None


def test_an_exception_undoes_everything() -> None:
    shard = Counting()

    def fail() -> None:
        shard.count("a")
        shard.timers.set(("wait", "one"), 5)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        shard.run(fail, Now(1, 1))
    assert shard.counts == {}
    assert shard.timers.next_ms is None


def test_somebody_waits_until_the_time_has_come_and_the_log_takes_it() -> None:
    shard = Counting()
    told: list[str] = []
    shard.keep(shard.run(lambda: shard.wait(told.append, 5), Now(0, 0)))
    assert shard.tick(Now(0, 4)) is None
    failed = shard.tick(Now(0, 5))
    assert failed is not None
    assert len(failed.answers) == 1
    shard.undo(failed.mark)
    assert shard.counts == {}
    again = shard.tick(Now(0, 5))
    assert again is not None
    shard.keep(again)
    for ticket, answer in again.answers:
        ticket(answer)
    assert told == ["too late"]
    assert shard.tick(Now(0, 100)) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 30)), max_size=200))
def test_timers_come_in_the_order_of_their_times(changes: list[tuple[int, int]]) -> None:
    timers = Timers(Journal())
    expected: dict[int, int] = {}
    for key, at_ms in changes:
        if at_ms < 0:
            timers.cancel((key,))
            expected.pop(key, None)
        else:
            timers.set((key,), at_ms)
            expected[key] = at_ms
    assert timers.next_ms == min(expected.values(), default=None)
    taken: list[int] = []
    while (due := timers.take_due(20)) is not None:
        taken.append(expected.pop(due[0]))  # type: ignore[call-overload] # the keys here are numbers
    assert taken == sorted(taken)
    assert all(at_ms > 20 for at_ms in expected.values())

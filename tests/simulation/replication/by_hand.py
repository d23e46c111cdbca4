"""Sequences of requests for a controller that are made by hand, see `sequences.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.simulation.replication.elections import elr_of
from tests.simulation.replication.sequences import BROKERS, PARTITIONS, Asker, Elect, Sequence, Silence, Step


def all_leave_and_come_back_cleanly(ask: Asker) -> Iterator[Step]:
    """The last in sync are eligible, and lead again when they are back."""
    yield from ask.begin()
    for broker in (3, 2, 1):
        yield ask.heartbeat(broker, want_shut_down=True)
        yield ask.heartbeat(broker, want_shut_down=True)
    assert elr_of(ask.model.partitions[PARTITIONS[0]])
    yield Silence(frozenset(BROKERS))
    for broker in (2, 1, 3):
        yield ask.register(broker, ask.epoch(broker))
        yield ask.heartbeat(broker, offset=0)
        yield ask.heartbeat(broker)


def all_crash(ask: Asker) -> Iterator[Step]:
    """Nobody is eligible who may have lost something; the last known leader is elected uncleanly in the end."""
    yield from ask.begin()
    yield Silence(frozenset(BROKERS))
    for broker in (2, 1, 3):
        yield ask.register(broker, -1)
        yield ask.heartbeat(broker)
    leader = ask.model.partitions[PARTITIONS[0]].leader
    yield ask.alter((leader,), recovery_state=1)
    yield ask.alter(BROKERS, recovery_state=1)
    yield ask.alter(BROKERS)


def a_crash_after_a_clean_stop_of_others(ask: Asker) -> Iterator[Step]:
    """The last one in sync crashes, and those that are eligible have left before it."""
    yield from ask.begin()
    yield ask.heartbeat(3, want_fence=True)
    yield ask.heartbeat(2, want_fence=True)
    yield Silence(frozenset({1, 2}))
    yield ask.register(1, -1)
    yield ask.heartbeat(1)
    yield ask.register(2, ask.epoch(2))
    yield ask.heartbeat(2)
    yield ask.alter((2, 1))


def old_epochs_do_not_join(ask: Asker) -> Iterator[Step]:
    """A replica that has come back is not let in with the epoch of its last life."""
    yield from ask.begin()
    old = ask.epoch(3)
    yield Silence(frozenset({3}))
    yield ask.alter((1, 2, 3))
    yield ask.register(3, old)
    yield ask.alter((1, 2, 3), epochs={3: old})
    yield ask.alter((1, 2, 3))
    yield ask.heartbeat(3)
    yield ask.alter((1, 2, 3), epochs={3: old})
    yield ask.alter((1, 2, 3), epochs={3: -1})
    yield ask.heartbeat(3, epoch=old)


def a_shutdown_waits_for_the_others(ask: Asker) -> Iterator[Step]:
    """A broker may go when all who are active know that it leads nothing."""
    yield from ask.begin()
    yield ask.heartbeat(2, offset=0)
    yield ask.heartbeat(1, want_shut_down=True)
    yield ask.heartbeat(1, want_shut_down=True)
    yield ask.heartbeat(1)
    yield ask.alter((2, 1))
    yield ask.heartbeat(2)
    yield ask.heartbeat(1, want_shut_down=True)
    yield ask.heartbeat(1, want_shut_down=True)
    yield ask.heartbeat(1)
    yield ask.alter((2, 1))
    yield ask.alter((2, 3), 1)


def the_same_members_in_another_order(ask: Asker) -> Iterator[Step]:
    """What changes nothing is no change, and another order is one."""
    yield from ask.begin()
    yield ask.alter((1, 2, 3))
    yield ask.alter((3, 1, 2))
    yield ask.alter((3, 1, 2), partition_epoch=-1)
    yield ask.alter((1, 1))
    yield ask.alter(())
    yield Elect(PARTITIONS[0])
    yield ask.alter((1,))
    yield ask.alter((1,))
    yield ask.alter((2, 1))


def a_new_incarnation_in_the_session(ask: Asker) -> Iterator[Step]:
    """It is refused as long as the old one has a session, and taken before the first heartbeat."""
    yield from ask.begin(1, 2)
    yield ask.register(3)
    yield ask.register(3, is_again=True)
    yield ask.heartbeat(3, want_fence=True)
    yield ask.register(3)
    yield ask.register(3, is_again=True)
    yield Silence(frozenset({3}))
    yield ask.register(3, 5)
    yield ask.heartbeat(3)
    yield ask.alter((1, 2, 3))


BY_HAND: Final[tuple[Sequence, ...]] = (
    all_leave_and_come_back_cleanly,
    all_crash,
    a_crash_after_a_clean_stop_of_others,
    old_epochs_do_not_join,
    the_same_members_in_another_order,
    a_new_incarnation_in_the_session,
)
ALONE: Final[tuple[Sequence, ...]] = (a_shutdown_waits_for_the_others,)  # would hold up brokers of other sequences

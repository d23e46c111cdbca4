"""Each anomaly of transactions is found in a small history that has it, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.history import Client, FetchOffsets, History, Kind, Promises, Removals, Transaction, check, test_planted

IN = ("in", 0)
P = ("events", 0)
Q = ("events", 1)
GROUP = "group"


class Story:
    """A history with a producer, and a consumer that reads everything from the start."""

    def __init__(self) -> None:
        self.history = History()
        self.producer = self.history.client(Promises.IDEMPOTENT)
        self.reader = self.history.client()
        self.reader.assign({IN: 0, P: 0, Q: 0})

    def begin(self, *places: tuple[tuple[str, int], int, int]) -> Transaction:
        """Begin a transaction that writes values at these partitions and offsets."""
        transaction = self.producer.begin()
        for partition, offset, value in places:
            self.producer.send(partition, value, transaction=transaction).succeed(offset)
        return transaction

    def commit(self, *places: tuple[tuple[str, int], int, int]) -> Transaction:
        """Have such a transaction committed."""
        transaction = self.begin(*places)
        transaction.commit()
        transaction.succeed()
        return transaction

    def derive(self, offsets: list[int], *places: tuple[tuple[str, int], int, int]) -> Transaction:
        """Begin a transaction that is made of records of the first partition, and ask for its commit."""
        transaction = self.begin(*places)
        poll = self.history.client().poll(transaction=transaction)
        poll.succeed({IN: [(offset, offset) for offset in offsets]})
        transaction.send_offsets(GROUP, {IN: offsets[-1] + 1})
        transaction.commit()
        return transaction

    def enter(self, count: int) -> None:
        """Write values that groups can read, without a transaction."""
        for offset in range(count):
            self.producer.send(IN, offset).succeed(offset)
        self.read(IN, *((offset, offset) for offset in range(count)))

    def read(self, partition: tuple[str, int], *records: tuple[int, int], by: Client | None = None) -> None:
        (by or self.reader).poll().succeed({partition: records})

    def fetch(self, offset: int | None) -> FetchOffsets:
        fetch = self.reader.fetch_offsets(GROUP)
        fetch.succeed({IN: offset})
        return fetch


def lost_of_a_commit() -> History:
    story = Story()
    story.commit((P, 0, 10), (Q, 0, 11))
    story.commit((Q, 2, 12))
    story.read(P, (0, 10))
    story.reader.seek({Q: None})
    story.read(Q, (2, 12))
    return story.history


def unseen_of_a_commit() -> History:
    story = Story()
    story.commit((P, 0, 10), (Q, 0, 11))
    story.read(P, (0, 10))
    return story.history


def skipped_of_an_unknown() -> History:
    story = Story()
    story.begin((P, 0, 10)).commit()
    story.commit((P, 2, 12))
    story.read(P, (2, 12))
    story.reader.seek({P: 0})
    story.read(P, (0, 10))
    return story.history


def duplicate_of_a_commit() -> History:
    story = Story()
    story.commit((P, 0, 10))
    story.read(P, (0, 10), (1, 10))
    return story.history


def another_than_that_of_an_aborted() -> History:
    story = Story()
    story.begin((P, 0, 10)).fail()
    story.history.client().send(P, 11)
    story.read(P, (0, 11))
    return story.history


def aborted_read() -> History:
    story = Story()
    story.begin((P, 0, 10)).fail()
    story.read(P, (0, 10))
    return story.history


def read_of_what_was_never_committed() -> History:
    story = Story()
    story.begin((P, 0, 10))
    story.read(P, (0, 10))
    return story.history


def aborted_although_a_commit_was_asked_for() -> History:
    story = Story()
    transaction = story.begin((P, 0, 10))
    transaction.commit()
    transaction.fail()
    story.read(P, (0, 10))
    return story.history


def dirty_read() -> History:
    story = Story()
    transaction = story.begin((P, 0, 10))
    story.read(P, (0, 10))
    transaction.commit()
    transaction.succeed()
    return story.history


def dirty_read_of_an_unknown() -> History:
    story = Story()
    transaction = story.begin((P, 0, 10))
    story.read(P, (0, 10))
    transaction.commit()
    return story.history


def torn() -> History:
    story = Story()
    story.begin((P, 0, 10), (Q, 0, 11)).commit()
    story.commit((Q, 2, 12))
    story.read(P, (0, 10))
    story.read(Q, (2, 12))
    return story.history


def torn_of_its_offsets() -> History:
    story = Story()
    story.enter(2)
    story.derive([0, 1], (P, 0, 10))
    story.fetch(2)
    return story.history


def cycle() -> History:
    """Two transactions have read from each other, by clocks that do not agree with that."""
    story = Story()
    first = story.begin((P, 0, 10))
    other = story.history.client(Promises.IDEMPOTENT)
    second = other.begin()
    other.send(Q, 11, transaction=second).succeed(0)
    for transaction, partition, value in ((first, Q, 11), (second, P, 10)):
        transaction.send_offsets(GROUP, {partition: 1})
        transaction.commit(at_ns=0)
        story.history.client().poll(transaction=transaction).succeed({partition: [(0, value)]})
    first.succeed()
    second.succeed()
    story.read(P, (0, 10))
    story.read(Q, (0, 11))
    return story.history


def cycle_over_offsets() -> History:
    """The transaction that goes on from an offset is read by the one that has committed it."""
    story = Story()
    story.enter(2)
    first = story.derive([0], (P, 0, 10))
    other = story.history.client(Promises.IDEMPOTENT)
    second = other.begin()
    other.send(Q, 11, transaction=second).succeed(0)
    story.history.client().poll(transaction=second).succeed({IN: [(1, 1)]})
    second.send_offsets(GROUP, {IN: 2})
    second.commit(at_ns=0)
    story.history.client().poll(transaction=first).succeed({Q: [(0, 11)]})
    first.send_offsets(GROUP, {Q: 1})
    story.read(P, (0, 10))
    story.read(Q, (0, 11))
    return story.history


def offsets_of_an_aborted() -> History:
    story = Story()
    story.enter(2)
    story.derive([0, 1], (P, 0, 10)).fail()
    story.fetch(2)
    return story.history


def offsets_of_nobody() -> History:
    story = Story()
    story.enter(2)
    story.fetch(1)
    return story.history


def lost_offsets() -> History:
    story = Story()
    story.enter(2)
    story.derive([0, 1], (P, 0, 10)).succeed()
    story.read(P, (0, 10))
    story.fetch(None)
    return story.history


def lost_offsets_of_an_unknown() -> History:
    """Its value was read, so it is committed, and its offset must be there, too."""
    story = Story()
    story.enter(2)
    story.derive([0], (P, 0, 10)).succeed()
    story.derive([1], (P, 2, 11))
    story.read(P, (0, 10), (2, 11))
    story.fetch(1)
    return story.history


def processed_twice() -> History:
    story = Story()
    story.enter(2)
    story.derive([0], (P, 0, 10)).succeed()
    story.derive([0, 1], (P, 2, 11)).succeed()
    story.read(P, (0, 10), (2, 11))
    return story.history


def processed_never() -> History:
    story = Story()
    story.enter(3)
    story.derive([0], (P, 0, 10)).succeed()
    story.derive([2], (P, 2, 11)).succeed()
    story.read(P, (0, 10), (2, 11))
    return story.history


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lost_of_a_commit, Kind.LOST),
        (unseen_of_a_commit, Kind.UNSEEN),
        (skipped_of_an_unknown, Kind.SKIPPED),
        (duplicate_of_a_commit, Kind.DUPLICATE),
        (another_than_that_of_an_aborted, Kind.INCONSISTENT),
        (aborted_read, Kind.ABORTED_READ),
        (read_of_what_was_never_committed, Kind.ABORTED_READ),
        (aborted_although_a_commit_was_asked_for, Kind.ABORTED_READ),
        (dirty_read, Kind.DIRTY_READ),
        (dirty_read_of_an_unknown, Kind.DIRTY_READ),
        (torn, Kind.TORN),
        (torn_of_its_offsets, Kind.TORN),
        (cycle, Kind.CYCLE),
        (cycle_over_offsets, Kind.CYCLE),
        (offsets_of_an_aborted, Kind.PHANTOM_OFFSETS),
        (offsets_of_nobody, Kind.PHANTOM_OFFSETS),
        (lost_offsets, Kind.LOST_OFFSETS),
        (lost_offsets_of_an_unknown, Kind.LOST_OFFSETS),
        (processed_twice, Kind.PROCESSED_TWICE),
        (processed_never, Kind.PROCESSED_NEVER),
    ],
)
def test_an_anomaly_is_found(make: Callable[[], History], kind: Kind) -> None:
    report = check(make())
    assert report.kinds == {kind}, report
    assert len(report.anomalies) == 1, report
    assert kind.value in str(report)


def test_every_kind_is_planted() -> None:
    tests = (test_an_anomaly_is_found, test_planted.test_an_anomaly_is_found)
    marks = [test.pytestmark[0] for test in tests]  # type: ignore[attr-defined]  # pytest sets it
    assert {kind for mark in marks for _, kind in mark.args[1]} == set(Kind)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    story = Story()
    story.enter(3)
    story.begin((P, 0, 10), (Q, 0, 11)).fail()  # aborted, and nobody sees it
    story.begin((P, 2, 12)).commit()  # nobody knows, and nobody sees it
    story.begin((P, 4, 13), (Q, 2, 14)).commit()  # nobody knows, and it is there
    story.derive([0, 1], (P, 6, 15)).fail()
    story.fetch(None)
    story.derive([0], (P, 8, 16)).succeed()
    story.fetch(1)
    story.derive([1], (P, 10, 17))  # nobody knows, and it is there
    story.fetch(2)
    story.derive([2], (P, 12, 18)).succeed()
    story.read(P, (4, 13), (8, 16), (10, 17), (12, 18))
    story.read(Q, (2, 14))
    assert check(story.history).is_clean, check(story.history)


def test_writes_of_transactions_may_be_interleaved() -> None:
    story = Story()
    other = story.history.client(Promises.IDEMPOTENT)
    first, second = story.producer.begin(), other.begin()
    story.producer.send(P, 10, transaction=first).succeed(0)
    other.send(P, 11, transaction=second).succeed(1)
    other.send(Q, 12, transaction=second).succeed(0)
    story.producer.send(Q, 13, transaction=first).succeed(1)
    for transaction in (first, second):
        transaction.commit()
        transaction.succeed()
    story.read(P, (0, 10), (1, 11))
    story.read(Q, (0, 12), (1, 13))
    assert check(story.history).is_clean


def test_a_reader_may_see_one_partition_of_a_transaction_before_the_other() -> None:
    story = Story()
    transaction = story.begin((P, 0, 10), (Q, 0, 11))
    transaction.commit()
    story.read(P, (0, 10))
    transaction.succeed()
    story.read(Q, (0, 11))
    assert check(story.history).is_clean


def test_what_retention_has_removed_of_a_transaction_does_not_tear_it() -> None:
    story = Story()
    story.begin((P, 0, 10), (Q, 0, 11)).commit()
    story.read(P, (0, 10))
    assert check(story.history).kinds == {Kind.TORN}
    assert check(story.history, Removals(starts={Q: 1})).is_clean

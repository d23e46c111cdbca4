"""Each anomaly is found in a small history that has it, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.history import Client, History, Kind, Promises, Removals, check

P = ("events", 0)
OTHER = ("events", 1)


def written(*values: int, promises: Promises = Promises.IDEMPOTENT) -> tuple[History, Client]:
    """A history in which a producer has written these values at 0, 1, 2 and so on, and a consumer that begins at 0."""
    history = History()
    producer = history.client(promises)
    for offset, value in enumerate(values):
        producer.send(P, value).succeed(offset)
    consumer = history.client()
    consumer.assign({P: 0})
    return history, consumer


def given(consumer: Client, *records: tuple[int, int]) -> None:
    consumer.poll().succeed({P: records})


def lost() -> History:
    history, consumer = written(10, 11)
    consumer.assign({P: None})
    given(consumer, (1, 11))
    return history


def lost_without_an_offset() -> History:
    history, consumer = written(10)
    history.client().send(P, 11).succeed()
    given(consumer, (0, 10))
    return history


def unseen() -> History:
    history, consumer = written(10, 11)
    given(consumer, (0, 10))
    return history


def duplicate() -> History:
    history, consumer = written(10)
    given(consumer, (0, 10), (1, 10))
    return history


def elsewhere_than_acknowledged() -> History:
    history, consumer = written(10)
    consumer.seek({P: None})
    given(consumer, (0, 10))
    history.client(Promises.IDEMPOTENT).send(P, 11).succeed(1)
    given(consumer, (1, 11), (2, 11))
    return history


def two_acknowledged_at_one_offset() -> History:
    history, consumer = written(10)
    given(consumer, (0, 10))
    history.client().send(P, 11).succeed(0)
    return history


def read_differently() -> History:
    history, consumer = written(10)
    history.client().send(P, 11)
    given(consumer, (0, 10))
    consumer.seek({P: 0})
    given(consumer, (0, 11))
    return history


def another_than_acknowledged() -> History:
    history, consumer = written(10)
    history.client().send(P, 11)
    given(consumer, (0, 11))
    return history


def phantom() -> History:
    history, consumer = written(10)
    given(consumer, (0, 10), (1, 99))
    return history


def in_the_wrong_partition() -> History:
    history, consumer = written(10)
    history.client().send(OTHER, 11)
    given(consumer, (0, 10), (1, 11))
    return history


def failed_but_there() -> History:
    history, consumer = written(10)
    history.client().send(P, 11).fail()
    given(consumer, (0, 10), (1, 11))
    return history


def nonmonotonic_send() -> History:
    history = History()
    producer, consumer = history.client(Promises.IDEMPOTENT), history.client()
    producer.send(P, 10).succeed(1)
    producer.send(P, 11).succeed(0)
    consumer.assign({P: 0})
    given(consumer, (0, 11), (1, 10))
    return history


def reorder() -> History:
    history = History()
    producer, consumer = history.client(Promises.ORDER), history.client()
    producer.send(P, 10)
    producer.send(P, 11)
    consumer.assign({P: 0})
    given(consumer, (0, 11), (1, 10))
    return history


def out_of_time() -> History:
    history = History()
    consumer = history.client()
    history.client().send(P, 10, at_ns=0).succeed(1, at_ns=5)
    history.client().send(P, 11, at_ns=6).succeed(0, at_ns=9)
    consumer.assign({P: 0})
    given(consumer, (0, 11), (1, 10))
    return history


def nonmonotonic_poll() -> History:
    history, consumer = written(10, 11)
    given(consumer, (0, 10), (1, 11))
    given(consumer, (1, 11))
    return history


def nonmonotonic_within_a_poll() -> History:
    history, consumer = written(10, 11)
    given(consumer, (0, 10), (1, 11), (0, 10))
    return history


def before_the_position() -> History:
    history, consumer = written(10, 11)
    consumer.seek({P: 1})
    given(consumer, (0, 10), (1, 11))
    return history


def skipped() -> History:
    history, consumer = written(10, 11, 12)
    given(history.client(), (0, 10), (1, 11), (2, 12))
    given(consumer, (0, 10))
    given(consumer, (2, 12))
    return history


def skipped_within_a_poll() -> History:
    history, consumer = written(10, 11, 12)
    given(history.client(), (0, 10), (1, 11), (2, 12))
    given(consumer, (0, 10), (2, 12))
    return history


def skipped_after_a_seek() -> History:
    history, consumer = written(10, 11, 12)
    given(history.client(), (0, 10), (1, 11), (2, 12))
    consumer.seek({P: 1})
    given(consumer, (2, 12))
    return history


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lost, Kind.LOST),
        (lost_without_an_offset, Kind.LOST),
        (unseen, Kind.UNSEEN),
        (duplicate, Kind.DUPLICATE),
        (elsewhere_than_acknowledged, Kind.DUPLICATE),
        (two_acknowledged_at_one_offset, Kind.INCONSISTENT),
        (read_differently, Kind.INCONSISTENT),
        (another_than_acknowledged, Kind.INCONSISTENT),
        (phantom, Kind.PHANTOM),
        (in_the_wrong_partition, Kind.PHANTOM),
        (failed_but_there, Kind.FAILED_BUT_THERE),
        (nonmonotonic_send, Kind.NONMONOTONIC_SEND),
        (reorder, Kind.REORDER),
        (out_of_time, Kind.OUT_OF_TIME),
        (nonmonotonic_poll, Kind.NONMONOTONIC_POLL),
        (nonmonotonic_within_a_poll, Kind.NONMONOTONIC_POLL),
        (before_the_position, Kind.NONMONOTONIC_POLL),
        (skipped, Kind.SKIPPED),
        (skipped_within_a_poll, Kind.SKIPPED),
        (skipped_after_a_seek, Kind.SKIPPED),
    ],
)
def test_an_anomaly_is_found(make: Callable[[], History], kind: Kind) -> None:
    report = check(make())
    assert report.kinds == {kind}, report
    assert len(report.anomalies) == 1, report
    assert kind.value in str(report)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    history, consumer = written(10, 11, 12)
    history.client().send(P, 13)  # nobody knows, and nobody sees it
    given(consumer, (0, 10), (1, 11))
    consumer.seek({P: 0})
    given(consumer, (0, 10))
    consumer.poll()  # no answer
    given(consumer, (1, 11), (2, 12))
    assert check(history).is_clean
    assert str(check(history)) == "no anomalies"


def test_a_producer_without_idempotence_may_write_twice() -> None:
    history, consumer = written(10, promises=Promises.ORDER)
    given(consumer, (0, 10), (1, 10))
    assert check(history).is_clean


def test_a_producer_with_several_requests_in_flight_may_change_their_order() -> None:
    history = History()
    producer, consumer = history.client(), history.client()
    first, second = producer.send(P, 10, at_ns=0), producer.send(P, 11, at_ns=1)
    first.succeed(1, at_ns=9)
    second.succeed(0, at_ns=8)
    consumer.assign({P: 0})
    given(consumer, (0, 11), (1, 10))
    assert check(history).is_clean


def test_what_retention_has_removed_is_not_lost() -> None:
    history, consumer = written(10, 11, 12)
    given(consumer, (2, 12))
    assert check(history).kinds == {Kind.LOST, Kind.SKIPPED}
    assert check(history, Removals(starts={P: 2})).is_clean


def test_compaction_may_remove_all_but_the_last_of_a_key() -> None:
    history = History()
    producer, consumer = history.client(Promises.IDEMPOTENT), history.client()
    for offset, (key, value) in enumerate([("a", 10), ("b", 11), ("a", 12), ("b", 13)]):
        producer.send(P, value, key=key).succeed(offset)
    consumer.assign({P: 0})
    given(consumer, (2, 12), (3, 13))
    assert check(history, Removals(compacted=frozenset({"events"}))).is_clean
    lacking = History()
    producer, consumer = lacking.client(Promises.IDEMPOTENT), lacking.client()
    for offset, (key, value) in enumerate([("a", 10), ("b", 11), ("a", 12)]):
        producer.send(P, value, key=key).succeed(offset)
    consumer.assign({P: 0})
    given(consumer, (2, 12))
    assert check(lacking, Removals(compacted=frozenset({"events"}))).kinds == {Kind.LOST, Kind.SKIPPED}

"""Histories of a correct log are clean, and become guilty of exactly what is done to them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history import History, Kind, Outcome, Partition, Poll, Promises, Send, check
from tests.history.operations import Value
from tests.soak.plugin import Soak

PARTITIONS: list[Partition] = [("a", 0), ("a", 1), ("b", 0)]
seeds = st.integers(0, 2**32)


def simulate(seed: int, steps: int) -> History:
    """Let clients use a log that is correct, with retries that write twice and answers that are lost."""
    random = Random(seed)
    history = History()
    logs: dict[Partition, list[Value]] = {partition: [] for partition in PARTITIONS}
    producers = [(history.client(promises), promises) for promises in (Promises.IDEMPOTENT, Promises.ORDER)]
    consumers = [history.client() for _ in range(2)]
    places: list[dict[Partition, int]] = []
    for consumer in consumers:
        places.append({partition: random.randrange(3) for partition in PARTITIONS})
        consumer.assign(dict(places[-1]))
    for value in range(steps):
        partition = random.choice(PARTITIONS)
        log = logs[partition]
        if random.random() < 0.7:
            producer, promises = random.choice(producers)
            send = producer.send(partition, value)
            fate = random.choice(["fine"] * 5 + ["written twice", "refused", "no answer", "no answer, not there"])
            if fate == "refused":
                send.fail()
            elif fate != "no answer, not there":
                log += [value] * (1 + (fate == "written twice" and promises is Promises.ORDER))
                if fate != "no answer":
                    send.succeed(len(log) - 1)
            continue
        number = random.randrange(len(consumers))
        if random.random() < 0.2:
            places[number][partition] = random.randrange(len(log) + 1)
            consumers[number].seek({partition: places[number][partition]})
        poll = consumers[number].poll()
        if random.random() < 0.8:
            at = places[number][partition]
            end = min(len(log), at + random.randrange(8))
            poll.succeed({partition: [(offset, log[offset]) for offset in range(at, end)]} if end > at else {})
            places[number][partition] = max(at, end)
    last = history.client()
    last.assign(dict.fromkeys(PARTITIONS, 0))
    last.poll().succeed({partition: list(enumerate(log)) for partition, log in logs.items()})
    return history


@given(seeds, st.integers(0, 200))
def test_a_correct_log_is_clean(seed: int, steps: int) -> None:
    report = check(simulate(seed, steps))
    assert report.is_clean, report


def last_poll(history: History) -> Poll:
    *_, last = history
    assert isinstance(last, Poll)
    return last


@given(seeds, st.data())
def test_a_value_that_is_taken_out_of_everything_read_is_lost_or_unseen(seed: int, data: st.DataObject) -> None:
    history = simulate(seed, 60)
    acknowledged = [each for each in history if isinstance(each, Send) and each.outcome is Outcome.OK]
    gone = data.draw(st.sampled_from(acknowledged))
    for poll in [each for each in history if isinstance(each, Poll)]:
        poll.records = {
            partition: [record for record in records if partition != gone.partition or record[1] != gone.value]
            for partition, records in poll.records.items()
        }
    assert check(history).kinds & {Kind.LOST, Kind.UNSEEN}


@given(seeds, st.data())
def test_two_records_that_change_places_are_noticed(seed: int, data: st.DataObject) -> None:
    poll = last_poll(history := simulate(seed, 60))
    records = dict(poll.records)
    long_enough = [partition for partition in PARTITIONS if len({value for _, value in records[partition]}) > 1]
    partition = data.draw(st.sampled_from(long_enough))
    mine = list(records[partition])
    at = data.draw(st.sampled_from([at for at in range(len(mine) - 1) if mine[at][1] != mine[at + 1][1]]))
    as_records = data.draw(st.booleans())
    if as_records:  # the consumer is given them in another order
        mine[at], mine[at + 1] = mine[at + 1], mine[at]
        expected = {Kind.NONMONOTONIC_POLL}
    else:  # they stand elsewhere in the log
        (one, first), (two, second) = mine[at], mine[at + 1]
        mine[at], mine[at + 1] = (one, second), (two, first)
        expected = {Kind.INCONSISTENT, Kind.REORDER, Kind.DUPLICATE}
    poll.records = {**records, partition: mine}
    found = check(history).kinds
    values = {first for _, first in mine[at : at + 2]}
    sends = [each for each in history if isinstance(each, Send) and each.value in values]
    if as_records or any(each.outcome is Outcome.OK for each in sends) or len({each.process for each in sends}) == 1:
        assert found & expected


@given(seeds, st.data())
def test_a_record_that_a_consumer_does_not_get_is_skipped(seed: int, data: st.DataObject) -> None:
    history = simulate(seed, 60)
    everything = last_poll(history).records
    partition = data.draw(st.sampled_from([each for each in PARTITIONS if len(everything[each]) > 2]))
    records = list(everything[partition])
    at = data.draw(st.integers(0, len(records) - 2))
    consumer = history.client()
    consumer.assign({partition: 0})
    for one in (records[:at], records[at + 1 :]):
        consumer.poll().succeed({partition: one})
    assert check(history).kinds == {Kind.SKIPPED}


@given(seeds, st.data())
def test_what_was_never_sent_is_a_phantom(seed: int, data: st.DataObject) -> None:
    poll = last_poll(history := simulate(seed, 60))
    partition = data.draw(st.sampled_from(PARTITIONS))
    poll.records = {**poll.records, partition: [*poll.records[partition], (len(poll.records[partition]), "damaged")]}
    assert check(history).kinds == {Kind.PHANTOM}


@pytest.mark.soak
def test_very_many_operations_are_checked(soak: Soak) -> None:
    for seed in soak.seeds():
        assert check(simulate(seed, 200_000)).is_clean

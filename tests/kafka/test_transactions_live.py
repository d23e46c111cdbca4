"""Transactions of a live broker are watched; after its crash Octavo goes on with them, and a later broker then."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest

from octavo.log import DataDirectory, Isolation
from octavo.log.consumer import Consumer
from octavo.log.coordinator import Coordinator
from octavo.log.metadata import handover
from octavo.log.names import TopicPartition
from octavo.log.segment.batch_walk import walk
from octavo.log.storage import DISK
from octavo.log.watched.watched_directory import WatchedDirectory
from octavo.log.watched.watched_log import WatchedLog
from tests.kafka.bare_producer import BareProducer, check_refusals
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge
from tests.kafka.serving import Known, assert_taken_over, known_to_octavo, read_by_octavo
from tests.kafka.written import KEPT

LIVE: Final = TopicPartition("live", 0)


def watch(java: JavaClients, log: WatchedLog) -> Known:
    """What a watched log shows is what consumers are given, as soon as the broker has noted how much they are."""
    told = Known(java.read(*LIVE), java.read(*LIVE, committed=False), [])
    deadline = time.monotonic() + 60
    while log.high_watermark < told.end_offset:
        assert time.monotonic() < deadline
        log.refresh()
    assert Known(read_by_octavo(log), read_by_octavo(log, Isolation.HIGH_WATERMARK), []) == told
    return told


def write_live(java: JavaClients, log: WatchedLog) -> None:
    """Transactions of two producers that go on at the same time, each step of them watched; one is left open."""
    first, second = (java.producer(**{"transactional.id": name}) for name in ("first", "second"))
    first.init()
    second.init()
    with java.producer(**{"compression.type": "zstd"}) as plain:
        for number in range(3):
            first.begin()
            first.send(*LIVE, [b"first %d" % number] * 20)
            undecided = watch(java, log).committed
            second.begin()
            second.send(*LIVE, [b"second %d" % number] * 20)
            plain.send(*LIVE, [b"plain %d" % number])
            assert watch(java, log).committed == undecided
            (first.abort if number % 2 else first.commit)()
            assert b"plain %d" % number not in watch(java, log).committed.values
            if number == 2:
                break
            (second.commit if number % 2 else second.abort)()
            shown = watch(java, log).committed.values
            decided = (b"first %d" % number, b"second %d" % number)
            assert [value in shown for value in decided] == [number % 2 == 0, number % 2 == 1]
            assert b"plain %d" % number in shown
    second.abandon()
    first.close()


def consume(data: WatchedDirectory, group_id: str) -> list[bytes]:
    """What a consumer of Octavo reads of what a broker writes, from where a group is that the broker knows."""
    with Consumer(data, {"group.id": group_id, "isolation.level": "read_committed"}) as consumer:
        consumer.assign([LIVE])
        values: list[bytes] = []
        while records := consumer.poll():
            values += [record.value for record in records]
        assert consumer.position(LIVE) == data.log(*LIVE).last_stable_offset
    return values


def commit_last(java: JavaClients) -> None:
    with java.producer(**{"transactional.id": "third"}) as third:
        third.init()
        third.begin()
        third.send(*LIVE, [b"third"])
        third.commit()


def lose_last_batch(folder: Path) -> None:
    """Cut the log as a loss of power may."""
    newest = max(folder.glob("*.log"))
    *_, last = walk(DISK.open(newest), 0, newest.stat().st_size)
    os.truncate(newest, last.position)


def go_on(data: DataDirectory) -> None:
    """What was decided is committed, what was open aborted; and a transactional id goes on."""
    coordinator = Coordinator.of(data)
    log = data.log(*LIVE)
    before = read_by_octavo(log)
    coordinator.finish_prepared()
    assert log.first_unstable_offset == before.end_offset  # of the open one, which was the first
    second = coordinator.init_producer_id("second")
    assert log.last_stable_offset == log.high_watermark
    coordinator.add_partitions("second", second, [LIVE])
    BareProducer(log, *second, transactional=True).append(b"by Octavo")
    coordinator.end_transaction("second", second, commit=True)
    assert read_by_octavo(log).values == [*before.values, b"plain 2", b"third", b"by Octavo"]


@pytest.mark.exhaustive
def test_transactions_of_a_live_broker_are_watched_and_after_its_crash_octavo_goes_on_with_them(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    folder = tmp_path / "data"
    old = new_broker(folder, release="legacy", settings={"replica.high.watermark.checkpoint.interval.ms": "20"})
    old.format()
    old.start()
    java = JavaClients(kafka_broker, old)
    java.create_topic(LIVE.topic, 1, KEPT | {"segment.ms": "1"})
    with java.producer() as producer:
        producer.send(*LIVE, [b"begin"])
    assert [record.value for record in java.join("readers", LIVE.topic)] == [b"begin"]
    with DataDirectory.open(folder, read_only=True) as watched:
        write_live(java, watched.log(*LIVE))
        known = java.known(*LIVE)
        assert consume(watched, "readers") == known.committed.values[1:]
    commit_last(java)
    third = java.transaction("third")
    old.kill()
    for name in (str(LIVE), "__transaction_state-0"):  # the marker, and that it was written
        lose_last_batch(folder / name)

    with DataDirectory.open(folder) as data:
        log = data.log(*LIVE)
        assert len(log.segments) > 2
        assert not log.recovery.was_clean
        assert log.recovery.cuts == []
        [undone] = [state for state in known_to_octavo(log).producers if state not in known.producers]
        assert (undone.producer_id, undone.txn_first_offset) == (third.producer_id, known.end_offset)
        assert known_to_octavo(log).producers == sorted([*known.producers, undone])
        assert known_to_octavo(log).committed == known.committed
        go_on(data)
        check_refusals(log, next(state for state in known.producers if state.coordinator_epoch < 0))
        known = known_to_octavo(log)
    handover([folder])
    new = new_broker(folder)
    new.start()
    assert_taken_over(new, {LIVE: known})
    assert JavaClients(kafka_broker, new).known(*LIVE) == known
    new.stop()

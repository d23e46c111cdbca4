"""`octavo verify` beside a broker that writes, rolls, deletes and compacts: none of that is a problem."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException, Producer

from octavo.inspect.verify import Problem
from octavo.inspect.verify.tasks import check, find_tasks
from tests.kafka.broker import Broker
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge
from tests.soak.plugin import Soak

BUSY: Final = {
    "log.cleaner.backoff.ms": "20",
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}
SMALL: Final = {"segment.index.bytes": "400", "index.interval.bytes": "500", "file.delete.delay.ms": "50"}
TOPICS: Final = {
    "events": {**SMALL, "retention.bytes": "100000"},
    "table": {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"},
    "deals": {**SMALL, "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.01"},
    "whole": {"preallocate": "true"},
}
ROLLS: Final = 4  # segments to see at least
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@contextmanager
def load_on(broker: Broker) -> Iterator[None]:
    """Produce to all topics, in and out of transactions, until the block ends."""
    stop = threading.Event()
    failed: list[Exception] = []

    def produce(codec: str, transactional_id: str | None) -> None:
        config = {"bootstrap.servers": broker.address, "compression.type": codec, "linger.ms": 2}
        config |= {"enable.idempotence": True} if transactional_id is None else {"transactional.id": transactional_id}
        try:
            while not stop.is_set():
                with suppress(KafkaException):  # on a slow machine, a transaction may take too long
                    _produce(Producer(config), stop, is_transactional=transactional_id is not None)
        except Exception as error:  # to be raised where the test sees it
            failed.append(error)

    threads = [threading.Thread(target=produce, args=(codec, None)) for codec in CODECS]
    threads += [threading.Thread(target=produce, args=("none", f"deals-{number}")) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert not failed


def _produce(producer: Producer, stop: threading.Event, *, is_transactional: bool) -> None:
    if is_transactional:
        producer.init_transactions(30)
    for number in itertools.count():
        if stop.is_set():
            break
        _send(producer, number, is_transaction=is_transactional)
    producer.flush(30)


def _send(producer: Producer, number: int, *, is_transaction: bool) -> None:
    if is_transaction:
        producer.begin_transaction()
    for topic in TOPICS:
        for record in range(10):
            key = None if topic == "events" else b"%d" % (number * record % 37)
            value = None if topic == "table" and record % 7 == 0 else b"value %d " % number * (record + 1)
            producer.produce(topic, value, key, partition=0)
    if not is_transaction:
        producer.flush(30)
    elif number % 3:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def problems(directory: Path) -> list[Problem]:
    found = []
    for task in find_tasks(directory):
        checked = check(task)
        assert checked.error is None
        found += checked.problems
    return found


def watch(new_broker: NewBroker, judge: Judge, tmp_path: Path, seconds: float, rounds: int) -> Broker:
    """Check again and again while the broker works, at least so often and so long; and once more after it is killed."""
    directory = tmp_path / "data"
    broker = new_broker(directory, settings=BUSY)
    broker.format()
    broker.start()
    java = JavaClients(judge, broker)
    for topic, settings in TOPICS.items():
        java.create_topic(topic, 1, settings)
    seen: set[str] = set()
    with load_on(broker):
        deadline = time.monotonic() + seconds
        done = 0
        while done < rounds or time.monotonic() < deadline or len(seen) < ROLLS:  # it has to roll meanwhile
            assert problems(directory) == []
            seen |= {path.name for path in directory.glob("table-0/*.log")}
            done += 1
    broker.kill()
    assert problems(directory) == []
    return broker


def test_a_directory_that_a_broker_is_writing_has_no_problems(
    new_broker: NewBroker, kafka_broker: Judge, tmp_path: Path
) -> None:
    watch(new_broker, kafka_broker, tmp_path, seconds=2, rounds=4)


@pytest.mark.soak(40)
def test_a_directory_that_a_broker_is_writing_for_long_has_no_problems(
    new_broker: NewBroker, kafka_broker: Judge, tmp_path: Path, soak: Soak
) -> None:
    broker = watch(new_broker, kafka_broker, tmp_path, soak.whole(), rounds=4)
    broker.start()  # which recovers the logs
    assert problems(broker.folders[0]) == []
    broker.stop()
    assert problems(broker.folders[0]) == []

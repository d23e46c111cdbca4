"""Compacted directories that go both ways: where Octavo's cleaner was Kafka's goes on, and the reverse."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from octavo.log import DataDirectory, Isolation, Log
from octavo.log.metadata import handover
from octavo.log.names import DELETED, SNAPSHOT, TXN_INDEX, TopicPartition
from tests.kafka.bare_producer import BareProducer, check_refusals
from tests.kafka.broker import Broker
from tests.kafka.client import Produced, produce
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge
from tests.kafka.serving import (
    WRONG,
    Partition,
    assert_taken_over,
    dump_log,
    known_to_octavo,
    last_batch_of,
    read_by_octavo,
)

PLACE: Final = TopicPartition("compacted", 0)
CONFIG: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "4000",
    "index.interval.bytes": "200",
}
KEYS: Final = [b"key %d" % number for number in range(30)]
PRODUCER: Final = 700_000


def table_of(read: Partition) -> dict[bytes | None, bytes]:
    """The last value of each key, but for those that are deleted."""
    last = {record.key: record.value for record in read.records}
    return {key: value for key, value in last.items() if value is not None}


def write(log: Log) -> tuple[bytes, int]:
    """All keys several times, by producers of every kind; the last batch of one of which nothing will be left."""
    silenced = BareProducer(log, PRODUCER)
    committed = BareProducer(log, PRODUCER + 1, transactional=True)
    aborted = BareProducer(log, PRODUCER + 2, transactional=True)
    for number in range(3):
        silenced.append_pairs([(key, b"silenced %d" % number) for key in KEYS])
        aborted.append_pairs([(key, b"aborted %d" % number) for key in KEYS])
        aborted.end(commit=False)
        committed.append_pairs([(key, b"committed %d" % number) for key in KEYS])
        log.roll()
        committed.end(commit=True)
    BareProducer(log, PRODUCER + 3).append_pairs([(key, None) for key in KEYS[::3]])
    last = last_batch_of(log, PRODUCER)
    log.roll()
    return last


def has_empty_batch(log: Log, producer_id: int) -> bool:
    batches = [batch for batch in log.reader(isolation=Isolation.LOG_END) if batch.producer_id == producer_id]
    return [batch.count for batch in batches] == [0]


def check_files(broker: Broker, folder: Path) -> None:
    """What `kafka-dump-log` says of all files: that offsets are missing, and that empty batches have no timestamps."""
    suffixes = (".log", ".index", ".timeindex", SNAPSHOT, TXN_INDEX)
    files = sorted(path for suffix in suffixes for path in folder.glob("*" + suffix))
    told = dump_log(broker, files, "--deep-iteration")
    wrong = [line for line in told.splitlines() if WRONG.search(line) and "is followed by" not in line]
    assert [line for line in wrong if not line.startswith("Found timestamp mismatch in :")] == []
    assert set(re.findall(r"Index timestamp: \d+, (.*)", told)) <= {"log timestamp: -1"}


def go_on_with_kafka(java: JavaClients, broker: Broker) -> None:
    """Java producers write, and the broker's cleaner cleans what they have written, without being told."""
    with java.producer() as plain, java.producer(**{"transactional.id": "t"}) as transactional:
        transactional.init()
        for number in range(3):
            plain.send_pairs(*PLACE, [(key, b"Java %d" % number) for key in KEYS[::2]])
            transactional.begin()
            transactional.send_pairs(*PLACE, [(key, b"Java's transaction %d" % number) for key in KEYS[1::4]])
            (transactional.abort if number == 1 else transactional.commit)()
    with java.producer() as last:  # each takes a segment, and the cleaner may have what is before
        [_, active] = [last.send_pairs(*PLACE, [(b"large", bytes(3500))])[0] for _ in range(2)]
    checkpoint = broker.folders[0] / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + 60
    while cleaned_offset(checkpoint) < active:
        assert time.monotonic() < deadline, checkpoint.read_text()


def cleaned_offset(checkpoint: Path) -> int:
    found = re.search(rf"^{PLACE.topic} {PLACE.partition} (\d+)$", checkpoint.read_text(), re.MULTILINE)
    return -1 if found is None else int(found[1])


@pytest.mark.exhaustive
def test_compacted_logs_go_to_kafka_and_back_and_each_cleans_on_where_the_other_was(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        data.create_topic(PLACE.topic, 1, CONFIG)
        log = data.log(*PLACE)
        batch, offset = write(log)
        table = table_of(read_by_octavo(log))
        size = log.size
        assert log.compact() is not None
        assert log.size < size / 2
        assert table_of(read_by_octavo(log)) == table
        assert has_empty_batch(log, PRODUCER)
        known = known_to_octavo(log)
    handover([folder])
    broker = new_broker(folder, settings={"log.cleaner.backoff.ms": "100"})
    check_files(broker, folder / str(PLACE))
    broker.start()
    assert_taken_over(broker, {PLACE: known})
    java = JavaClients(kafka_broker, broker)
    assert java.known(*PLACE) == known
    assert produce(broker.port, *PLACE, batch) == Produced(0, offset)
    go_on_with_kafka(java, broker)
    known = java.known(*PLACE)
    assert table_of(known.committed) == table | {
        **dict.fromkeys(KEYS[::2], b"Java 2"),
        **dict.fromkeys(KEYS[1::4], b"Java's transaction 2"),
        b"large": bytes(3500),
    }
    broker.stop()
    check_files(broker, folder / str(PLACE))

    with DataDirectory.open(folder, broker_config=broker.settings) as data:
        log = data.log(*PLACE)
        assert log.recovery.was_clean
        assert all(name.endswith(DELETED) for name in log.recovery.removed)  # which Kafka leaves to the next start
        assert replace(log.recovery, removed=[]).is_unremarkable
        assert known_to_octavo(log) == known
        assert has_empty_batch(log, PRODUCER)
        assert log.compaction_plan().first_dirty_offset == cleaned_offset(folder / "cleaner-offset-checkpoint")
        log.roll()
        assert log.compact() is not None
        assert table_of(read_by_octavo(log)) == table_of(known.committed)
        assert known_to_octavo(log).producers == known.producers
        javas = (state for state in known.producers if state.producer_id > PRODUCER + 3)  # ids that Kafka gave out
        check_refusals(log, max(javas))
        known = known_to_octavo(log)
    check_files(broker, folder / str(PLACE))
    handover([folder])
    broker.start()
    assert_taken_over(broker, {PLACE: known})
    assert java.known(*PLACE) == known
    broker.stop()

"""Logs that Octavo wrote, served by a real broker; and back, and again. The whole way, with real clients."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.log import DataDirectory, Isolation, Log
from octavo.log.metadata import handover
from octavo.log.reading.readable_log import ReadableLog
from octavo.records import BatchBuilder, Codec, TimestampType
from tests.kafka import releases
from tests.kafka.broker import Broker
from tests.kafka.client import OLD_RESOURCES, KafkaProducer
from tests.kafka.conftest import NewBroker
from tests.kafka.consuming import read_by_client
from tests.kafka.serving import Seen, assert_at_home, check_files, read_by_octavo

pytestmark = OLD_RESOURCES

TIME_MS: Final = 1_700_000_000_000
KEPT: Final = {"retention.ms": "-1", "index.interval.bytes": "200"}
TOPICS: Final = {codec.name.lower(): codec for codec in Codec}
PARTITIONS: Final = 2


def batch(codec: Codec, first: int, count: int) -> bytes:
    builder = BatchBuilder(codec=codec)
    for number in range(first, first + count):
        key = None if number % 7 == 0 else b"key %d" % number
        value = None if key and number % 11 == 0 else b"value %d " % number * (number % 40)
        headers = [("number", b"%d" % number)] * (number % 3)
        builder.append(key, value, timestamp_ms=TIME_MS + 10 * number, headers=headers)
    return builder.build()


def fill(log: Log, codec: Codec) -> None:
    """Segments of several batches; the oldest two go, and of the third only a part is left to see."""
    for number in range(0, 600, 20):
        log.append(batch(codec, number, 20))
        if number % 120 == 100:
            log.roll()
    log.delete_records_before(250)
    assert [expired.segment.base_offset for expired in log.apply_retention()] == [0, 120]
    assert (log.start_offset, log.end_offset, len(log.segments)) == (250, 600, 4)


def seen_by_octavo(log: ReadableLog) -> list[Seen]:
    return read_by_octavo(log, Isolation.LOG_END).records


def produce(broker: Broker, topic: str, partition: int, numbers: Iterable[int], codec: str | None) -> None:
    producer: Any = KafkaProducer(bootstrap_servers=broker.address, compression_type=codec, linger_ms=5)
    for number in numbers:
        producer.send(topic, partition=partition, key=b"from a client", value=b"%d" % number)
    producer.flush()
    producer.close()


def test_what_octavo_wrote_kafka_serves_and_adds_to_and_both_go_on(tmp_path: Path, new_broker: NewBroker) -> None:
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        for topic, codec in TOPICS.items():
            data.create_topic(topic, PARTITIONS, KEPT)
            for partition in range(PARTITIONS):
                fill(data.log(topic, partition), codec)
    places = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
    with DataDirectory.open(folder, read_only=True) as watched:
        expected = {place: seen_by_octavo(watched.log(*place)) for place in places}
        ids = {name: topic.id for name, topic in watched.topics.items()}
    assert all(seen[0].offset == 250 and seen[-1].offset == 599 for seen in expected.values())

    handover([folder])
    broker = new_broker(folder)
    check_files(broker, folder)
    broker.start()
    assert {place: read_by_client(broker, place) for place in places} == expected
    for topic, partition in places:
        produce(broker, topic, partition, range(30), None if topic == "none" else topic)
    after = {place: read_by_client(broker, place) for place in places}
    broker.stop()
    assert_at_home(broker)

    with DataDirectory.open(folder) as data:
        assert {name: topic.id for name, topic in data.topics.items()} == ids
        assert all(report.was_clean and report.is_unremarkable for report in data.reports)
        for topic, partition in places:
            log = data.log(topic, partition)
            assert seen_by_octavo(log) == after[topic, partition]
            assert log.config.retention_ms == -1
            first = log.end_offset
            log.append(batch(TOPICS[topic], first, 5))
            log.roll()
            log.append(batch(TOPICS[topic], first + 5, 5))
        expected = {place: seen_by_octavo(data.log(*place)) for place in places}
    assert all(len(expected[place]) == len(after[place]) + 10 for place in places)
    check_files(broker, folder)

    handover([folder])
    broker.start()
    assert {place: read_by_client(broker, place) for place in places} == expected
    broker.stop()
    assert_at_home(broker)


def test_a_live_broker_is_watched_and_a_killed_ones_logs_are_recovered(tmp_path: Path, new_broker: NewBroker) -> None:
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        data.create_topic("live", 1, KEPT)
    handover([folder])
    broker = new_broker(folder)
    broker.start()
    with DataDirectory.open(folder, read_only=True) as watched:
        for round_ in range(5):
            produce(broker, "live", 0, range(20), "lz4" if round_ % 2 else None)
            assert len(seen_by_octavo(watched.log("live", 0))) == 20 * (round_ + 1)
        expected = read_by_client(broker, ("live", 0))
        assert seen_by_octavo(watched.log("live", 0)) == expected
    broker.kill()
    with DataDirectory.open(folder) as data:
        report = data.log("live", 0).recovery
        assert not report.was_clean
        assert report.cuts == []
        assert seen_by_octavo(data.log("live", 0)) == expected
        data.log("live", 0).append(batch(Codec.NONE, 0, 3))
        expected = seen_by_octavo(data.log("live", 0))
    handover([folder])
    broker.start()
    assert read_by_client(broker, ("live", 0)) == expected
    broker.stop()
    assert_at_home(broker)


def test_kafka_recovers_what_an_octavo_that_crashed_left(tmp_path: Path, new_broker: NewBroker) -> None:
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        data.create_topic("crashed", 1, KEPT)
        fill(data.log("crashed", 0), Codec.ZSTD)
        expected = seen_by_octavo(data.log("crashed", 0))
    (folder / ".kafka_cleanshutdown").unlink()
    (folder / "recovery-point-offset-checkpoint").unlink()
    newest = max((folder / "crashed-0").glob("*.log"))
    with newest.open("ab") as file:
        file.write(bytes(100))
    handover([folder])
    broker = new_broker(folder)
    broker.start()
    assert read_by_client(broker, ("crashed", 0)) == expected
    broker.stop()
    check_files(broker, folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize("release", ["legacy"])
def test_logs_of_an_older_kafka_open(tmp_path: Path, new_broker: NewBroker, release: releases.Name) -> None:
    folder = tmp_path / "data"
    old = new_broker(folder, release=release, settings={"num.partitions": "1", "auto.create.topics.enable": "true"})
    old.format()
    old.start()
    for codec in ("gzip", "lz4", "snappy", None):
        produce(old, "old", 0, range(25), codec)
    expected = read_by_client(old, ("old", 0))
    old.stop()
    with DataDirectory.open(folder) as data:
        log = data.log("old", 0)
        assert log.recovery.was_clean
        assert log.recovery.is_unremarkable
        assert seen_by_octavo(log) == expected
        assert next(iter(log.reader())).timestamp_type is TimestampType.CREATE_TIME
        log.append(batch(Codec.NONE, 100, 5))
        expected = seen_by_octavo(log)
    old.start()
    assert read_by_client(old, ("old", 0)) == expected
    old.stop()
    assert_at_home(old)

"""Octavo's producer and consumer, and those of Kafka after and before them: the same ids, groups and partitions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import pytest

from octavo.errors import ProducerFenced
from octavo.log import DataDirectory
from octavo.log.consumer import Consumer
from octavo.log.coordinator import OffsetAndMetadata
from octavo.log.metadata import handover
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from octavo.log.producer import Producer
from tests.kafka.broker import Broker
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge
from tests.kafka.serving import Seen, assert_at_home, read_by_octavo
from tests.kafka.written import KEPT

TOPIC: Final = "events"
PARTITIONS: Final = 3
KEYS: Final = [b"key %d" % number for number in range(20)]
ID: Final = {"transactional.id": "embedded"}
GROUP: Final = {"group.id": "readers", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}


def places_of_keys(records: Iterable[tuple[int, Seen]]) -> dict[bytes | None, set[int]]:
    """The partitions in which each key is found."""
    places: dict[bytes | None, set[int]] = {}
    for partition, record in records:
        places.setdefault(record.key, set()).add(partition)
    return places


def write_by_octavo(data: DataDirectory) -> None:
    """Two rounds of all keys, with one between them that is aborted; a group reads the first."""
    with Producer(data, ID | {"compression.type": "lz4"}) as producer:
        producer.init_transactions()
        for value, commit in ((b"first", True), (b"aborted", False)):
            producer.begin_transaction()
            for key in KEYS:
                producer.send(TOPIC, value, key=key)
            (producer.commit_transaction if commit else producer.abort_transaction)()
        with Consumer(data, GROUP) as consumer:
            consumer.subscribe([TOPIC])
            read: list[bytes] = []
            while len(read) < len(KEYS):
                read += [record.value for record in consumer.poll(timeout=10)]
            assert read == [b"first"] * len(KEYS)
            consumer.commit({TopicPartition(TOPIC, 0): 0})
            consumer.commit()
        producer.begin_transaction()
        for key in KEYS:
            producer.send(TOPIC, b"second", key=key)
        producer.send_offsets_to_transaction({TopicPartition("elsewhere", 0): OffsetAndMetadata(7, "seen")}, "movers")
        producer.commit_transaction()


def compact_state(data: DataDirectory) -> None:
    """Have the state of groups and transactions compacted, which nobody is to notice."""
    for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE):
        log = data.log(topic, 0)
        size = log.size
        log.roll()
        assert log.compact() is not None
        assert log.size < size


def write_by_librdkafka(broker: Broker, value: bytes) -> None:
    producer: Any = confluent_kafka.Producer({"bootstrap.servers": broker.address, **ID, "partitioner": "murmur2"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for key in KEYS:
        producer.produce(TOPIC, value, key)
    producer.commit_transaction(30)


def test_kafkas_clients_go_on_where_octavos_were_and_octavos_where_they_were(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        data.create_topic("elsewhere", 1, KEPT)
        data.create_topic(TOPIC, PARTITIONS, KEPT)
        write_by_octavo(data)
        compact_state(data)
    handover([folder])
    broker = new_broker(folder)
    broker.start()
    assert_at_home(broker)
    java = JavaClients(kafka_broker, broker)
    assert java.committed("movers") == {"elsewhere-0": (7, "seen")}
    assert [record.value for record in java.join("readers", TOPIC)] == [b"second"] * len(KEYS)
    with java.producer(**ID) as producer:
        producer.init()
        producer.begin()
        producer.send_pairs(TOPIC, None, [(key, b"by Java") for key in KEYS])
        producer.commit()
    new_kind = {"group.protocol": "consumer"}
    assert [record.value for record in java.join("readers", TOPIC, **new_kind)] == [b"by Java"] * len(KEYS)
    java.delete_group("movers")
    write_by_librdkafka(broker, b"by librdkafka")
    java.wait_for_end("embedded")
    with java.producer(**ID) as producer:
        producer.init()
        producer.begin()
        producer.send_pairs(TOPIC, None, [(key, b"open") for key in KEYS])
        producer.abandon()
    expected = {number: java.read(TOPIC, number) for number in range(PARTITIONS)}
    places = places_of_keys((number, seen) for number, read in expected.items() for seen in read.records)
    assert {len(each) for each in places.values()} == {1}  # all producers have a key in the same place
    assert set(places) == set(KEYS)
    before = java.transaction("embedded")
    assert before.state == "Ongoing"
    broker.kill()

    with DataDirectory.open(folder, broker_config=broker.settings) as data:
        compact_state(data)
        assert data.coordinator.groups() == ["readers"]
        assert {number: read_by_octavo(data.log(TOPIC, number)) for number in range(PARTITIONS)} == expected
        with Consumer(data, GROUP) as consumer, Producer(data, ID) as producer, Producer(data, ID) as other:
            consumer.subscribe([TOPIC])
            producer.init_transactions()
            producer.begin_transaction()
            futures = [producer.send(TOPIC, b"third", key=key) for key in KEYS]
            assert {future.result(10).partition for future in futures} == set(range(PARTITIONS))
            read: list[bytes] = []
            while records := consumer.poll():
                read += [record.value for record in records]
            assert read == [b"by librdkafka"] * len(KEYS)
            other.init_transactions()
            with pytest.raises(ProducerFenced):
                producer.commit_transaction()
        after = data.coordinator.transaction("embedded")
        assert after is not None
        assert after.producer_id == before.producer_id
        assert after.producer_epoch > before.epoch
        assert {number: read_by_octavo(data.log(TOPIC, number)).values for number in range(PARTITIONS)} == {
            number: read.values for number, read in expected.items()
        }

"""Committed offsets, transactions and producer ids: Kafka goes on with Octavo's, and Octavo with Kafka's."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import confluent_kafka
import pytest

from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.requests import EndRequest
from octavo.coordinator.transactions.transaction_shard import TransactionShard
from octavo.log import DataDirectory, Isolation
from octavo.log.coordinator import OffsetAndMetadata, ProducerIdentity
from octavo.log.metadata import handover
from octavo.log.names import TopicPartition
from octavo.records import BatchBuilder, read_batches
from octavo.schemas.transaction_state import TransactionState
from tests.kafka.broker import Broker
from tests.kafka.client import (
    OLD_RESOURCES,
    CoordinatorLoadInProgressError,
    KafkaAdminClient,
    KafkaConsumer,
    NotCoordinatorError,
)
from tests.kafka.conftest import NewBroker
from tests.kafka.consuming import read_by_client

pytestmark = OLD_RESOURCES

T0: Final = TopicPartition("t", 0)
T1: Final = TopicPartition("t", 1)
GROUP: Final = "the group"
ID: Final = "the id"


def send(data: DataDirectory, producer: ProducerIdentity, place: TopicPartition, value: bytes, sequence: int) -> None:
    builder = BatchBuilder(
        producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=sequence, transactional=True
    )
    builder.append(b"key", value, timestamp_ms=data.now_ms())
    data.log(*place).append(builder.build())


def committed_values(data: DataDirectory, place: TopicPartition) -> list[bytes | None]:
    return [record.value for record in data.log(*place).reader(isolation=Isolation.READ_COMMITTED).records()]


def seen_by_client(broker: Broker, place: TopicPartition) -> list[bytes | None]:
    """What a client that reads committed data gets, up to what is decided."""
    return [record.value for record in read_by_client(broker, place, "read_committed")]


def transactional(broker: Broker, transactional_id: str = ID) -> Any:
    producer: Any = confluent_kafka.Producer(
        {"bootstrap.servers": broker.address, "transactional.id": transactional_id, "linger.ms": 0}
    )
    producer.init_transactions(30)
    return producer


def last_batch(data: DataDirectory, place: TopicPartition, value: bytes) -> ProducerIdentity:
    """Who wrote a value."""
    [found] = [
        ProducerIdentity(batch.producer_id, batch.producer_epoch)
        for batch in read_batches(data.log(*place).read(0, 1 << 20, isolation=Isolation.LOG_END).records)
        if not batch.is_control and any(record.value == value for record in batch)
    ]
    return found


def offsets_of(admin: Any) -> Any:
    """The positions of the group, once the broker has read them."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return admin.list_group_offsets(GROUP)[GROUP]
        except (CoordinatorLoadInProgressError, NotCoordinatorError):  # it does not lead the partition yet, or reads it
            assert time.monotonic() < deadline


def test_kafka_goes_on_where_octavos_groups_left_off_and_octavo_where_kafkas_did(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        data.create_topic("t", 2)
        for place in (T0, T1):
            for number in range(10):
                builder = BatchBuilder()
                builder.append(None, b"%d" % number, timestamp_ms=data.now_ms())
                data.log(*place).append(builder.build())
        coordinator = data.coordinator
        coordinator.commit_offsets(GROUP, {T0: OffsetAndMetadata(3, "as text", 0), T1: OffsetAndMetadata(5)})
        producer = coordinator.init_producer_id(ID)
        coordinator.commit_offsets(GROUP, {T1: OffsetAndMetadata(8, "in a transaction")}, ID, producer)
        coordinator.end_transaction(ID, producer, commit=True)
        coordinator.commit_offsets(GROUP, {T0: OffsetAndMetadata(9, "aborted")}, ID, producer)
        coordinator.end_transaction(ID, producer, commit=False)
        expected = {T0: (3, "as text"), T1: (8, "in a transaction")}
    handover([folder])
    broker = new_broker(folder)
    broker.start()
    admin: Any = KafkaAdminClient(bootstrap_servers=broker.address)
    told = offsets_of(admin)
    assert {TopicPartition(*place): (each.offset, each.metadata) for place, each in told.items()} == expected
    admin.close()
    consumer: Any = KafkaConsumer("t", bootstrap_servers=broker.address, group_id=GROUP, enable_auto_commit=False)
    first: dict[TopicPartition, int] = {}
    while len(first) < 2:
        for place, records in consumer.poll(1_000).items():
            first.setdefault(TopicPartition(place.topic, place.partition), records[0].offset)
    assert first == {T0: 3, T1: 8}
    consumer.commit()
    consumer.close()
    broker.stop()
    with DataDirectory.open(folder) as data:
        positions = {
            place: position.offset for place, position in data.coordinator.committed(GROUP).items() if position
        }
        assert positions == {T0: 10, T1: 10}


def test_kafka_ends_what_octavo_left_open_and_finishes_what_it_had_decided(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        data.create_topic("t", 2)
        coordinator = data.coordinator
        producer = coordinator.init_producer_id(ID)
        coordinator.add_partitions(ID, producer, [T0, T1])
        for place in (T0, T1):
            send(data, producer, place, b"committed", 0)
        coordinator.end_transaction(ID, producer, commit=True)
        coordinator.add_partitions(ID, producer, [T0, T1])
        for place in (T0, T1):
            send(data, producer, place, b"left open", 1)
        decided = coordinator.init_producer_id("decided")
        coordinator.add_partitions("decided", decided, [T0, T1])
        for place in (T0, T1):
            send(data, decided, place, b"decided", 0)
        dies = patch("octavo.log.coordinator.markers.write_marker", side_effect=OSError("it dies"))
        with dies, pytest.raises(OSError, match="it dies"):
            coordinator.end_transaction("decided", decided, commit=True)
    handover([folder])
    broker = new_broker(folder)
    broker.start()
    client = transactional(broker)
    client.begin_transaction()
    client.produce("t", b"from the client", partition=0)
    client.commit_transaction(30)
    for place, expected in ((T0, [b"committed", b"decided", b"from the client"]), (T1, [b"committed", b"decided"])):
        assert seen_by_client(broker, place) == expected
    broker.stop()
    with DataDirectory.open(folder) as data:
        theirs = last_batch(data, T0, b"from the client")
        assert theirs.producer_id == producer.producer_id
        assert theirs.epoch > producer.epoch
        assert committed_values(data, T0) == [b"committed", b"decided", b"from the client"]
        # And Octavo takes over again.
        known = data.coordinator.transaction(ID)
        assert known is not None
        assert known.transaction_status == TransactionState.COMPLETE_COMMIT
        again = data.coordinator.init_producer_id(ID)
        assert again.producer_id == producer.producer_id
        assert again.epoch > theirs.epoch
        data.coordinator.add_partitions(ID, again, [T0])
        send(data, again, T0, b"again", 0)
        data.coordinator.end_transaction(ID, again, commit=True)
        assert committed_values(data, T0)[-1] == b"again"
        plain = data.coordinator.init_producer_id()
    handover([folder])
    broker.start()
    assert seen_by_client(broker, T0)[-1] == b"again"
    client = transactional(broker, "another id")
    client.begin_transaction()
    client.produce("t", b"another", partition=1)
    client.commit_transaction(30)
    broker.stop()
    with DataDirectory.open(folder) as data:
        assert last_batch(data, T1, b"another").producer_id > plain.producer_id


@pytest.mark.exhaustive
@pytest.mark.parametrize("stop", ["kill", "stop"])
def test_octavo_aborts_what_kafkas_clients_left_open(tmp_path: Path, new_broker: NewBroker, stop: str) -> None:
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        data.create_topic("t", 2)
    handover([folder])
    broker = new_broker(folder)
    broker.start()
    client = transactional(broker)
    for value, commit in ((b"first", True), (b"second", False), (b"third", True)):
        client.begin_transaction()
        client.produce("t", value, partition=0)
        client.flush(30)
        client.commit_transaction(30) if commit else client.abort_transaction(30)
    client.begin_transaction()
    for partition in (0, 1):
        client.produce("t", b"open", partition=partition)
    assert client.flush(30) == 0
    broker.stop() if stop == "stop" else broker.kill()
    with DataDirectory.open(folder) as data:
        theirs = last_batch(data, T0, b"open")
        ours = data.coordinator.init_producer_id(ID)
        assert ours.producer_id == theirs.producer_id
        assert ours.epoch > theirs.epoch
        data.coordinator.add_partitions(ID, ours, [T0])
        send(data, ours, T0, b"ours", 0)
        data.coordinator.end_transaction(ID, ours, commit=True)
        assert committed_values(data, T0) == [b"first", b"third", b"ours"]
        assert committed_values(data, T1) == []
        assert _are_decided(data, [T0, T1])
        assert data.coordinator.init_producer_id().producer_id > theirs.producer_id
    handover([folder])
    broker.start()
    assert seen_by_client(broker, T0) == [b"first", b"third", b"ours"]
    assert seen_by_client(broker, T1) == []
    broker.stop()


def _are_decided(data: DataDirectory, places: Sequence[TopicPartition]) -> bool:
    return all(data.log(*place).last_stable_offset == data.log(*place).end_offset for place in places)


def _decide(data: DataDirectory, transactional_id: str, *, version: int, marked: bool) -> ProducerIdentity:
    """Leave a transaction that was decided to be aborted, as a crash does before, or after, its markers are written."""
    coordinator = data.coordinator
    producer = coordinator.init_producer_id(transactional_id)
    coordinator.add_partitions(transactional_id, producer, [T0, T1])
    for place in (T0, T1):
        send(data, producer, place, b"aborted", 0)
    request = EndRequest(transactional_id, Producer(*producer), committed=False, transaction_version=version)
    if marked:
        dies = patch.object(TransactionShard, "markers_written", side_effect=OSError("it dies"))
    else:
        dies = patch("octavo.log.coordinator.markers.write_marker", side_effect=OSError("it dies"))
    with dies, pytest.raises(OSError, match="it dies"):
        coordinator._transactions.host_for(transactional_id).run(lambda shard: shard.end(lambda answer: None, request))
    value = coordinator.transaction(transactional_id)
    assert value is not None
    assert value.transaction_status == TransactionState.PREPARE_ABORT
    assert value.producer_epoch == producer.epoch + (version == 2)  # that of the next transaction
    return ProducerIdentity(value.producer_id, value.producer_epoch)


def _markers(folder: Path) -> Counter[tuple[TopicPartition, int, int]]:
    """How many markers each producer has, by its epoch, in each partition."""
    with DataDirectory.open(folder, read_only=True) as watched:
        return Counter(
            (place, batch.producer_id, batch.producer_epoch)
            for place in (T0, T1)
            for batch in watched.log(*place).reader(isolation=Isolation.LOG_END)
            if batch.is_control
        )


def test_a_decided_transaction_gets_as_many_markers_as_from_kafka(tmp_path: Path, new_broker: NewBroker) -> None:
    """Also in partitions that have theirs: who was killed has not told how far it came, and a second does no harm.

    Kafka may write fewer after a crash: until its broker is registered again it may find no leader of a partition, take
    the partition for deleted and complete the transaction without a marker. Its data then stay undecided for ever.
    """
    with DataDirectory.open(tmp_path / "ours") as data:
        data.create_topic("t", 2)
        before = {
            _decide(data, f"{version} {marked}", version=version, marked=marked): marked
            for version in (1, 2)
            for marked in (False, True)
        }
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    with DataDirectory.open(tmp_path / "ours") as data:
        data.coordinator.finish_prepared()
        assert _are_decided(data, [T0, T1])
    broker = new_broker(tmp_path / "theirs")
    broker.start()
    for transactional_id in ("1 False", "1 True", "2 False", "2 True"):
        transactional(broker, transactional_id)  # waits until the one before has ended
    broker.stop()
    expected = {(place, *producer): 1 + marked for producer, marked in before.items() for place in (T0, T1)}
    assert _markers(tmp_path / "ours") == expected
    assert _markers(tmp_path / "theirs") == expected

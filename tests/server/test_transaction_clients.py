"""Clients that we did not write use transactions: commit, abort, move records between topics, and are fenced."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaException, Producer

from octavo.log import Isolation
from octavo.log.names import TopicPartition
from octavo.server.serving import Server, serve

PATIENCE_S = 30


@pytest.fixture
def broker() -> Iterator[Server]:
    with serve(config={"group.initial.rebalance.delay.ms": "0"}) as server:
        for topic in ("in", "out"):
            server.directory.create_topic(topic, 1)
        yield server


def seen(server: Server, topic: str) -> list[bytes | None]:
    reader = server.directory.log(topic, 0).reader(isolation=Isolation.READ_COMMITTED)
    return [record.value for record in reader.records()]


def new_producer(server: Server) -> Producer:
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "transactional.id": "mover"})
    producer.init_transactions(PATIENCE_S)
    return producer


def test_librdkafka_consumes_transforms_and_produces_once(broker: Server) -> None:
    producer = new_producer(broker)
    for values, commit in (([b"a", b"b"], True), ([b"lost"], False), ([b"c"], True)):
        producer.begin_transaction()
        for value in values:
            producer.produce("in", value)
        producer.flush(PATIENCE_S)
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_S)
    assert seen(broker, "in") == [b"a", b"b", b"c"]
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", **settings})
    consumer.subscribe(["in"])
    producer.begin_transaction()
    for _ in range(3):
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        producer.produce("out", b"of " + (message.value() or b""))
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), PATIENCE_S)
    assert broker.directory.coordinator.committed("g") == {}
    producer.commit_transaction(PATIENCE_S)
    consumer.close()
    assert seen(broker, "out") == [b"of a", b"of b", b"of c"]
    position = broker.directory.coordinator.committed("g")[TopicPartition("in", 0)]
    assert position is not None
    assert position.offset == positions[0].offset


def test_librdkafka_fences_a_zombie(broker: Server) -> None:
    zombie = new_producer(broker)
    zombie.begin_transaction()
    zombie.produce("out", b"zombie")
    zombie.flush(PATIENCE_S)
    producer = new_producer(broker)
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(PATIENCE_S)
    assert fenced.value.args[0].fatal()
    producer.begin_transaction()
    producer.produce("out", b"kept")
    producer.commit_transaction(PATIENCE_S)
    assert seen(broker, "out") == [b"kept"]


def test_aiokafka_commits_and_aborts(broker: Server) -> None:
    async def work() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="aio")
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait("out", b"kept")
                await producer.send_offsets_to_transaction({AioPartition("in", 0): 3}, "g")
            await producer.begin_transaction()
            await producer.send_and_wait("out", b"lost")
            await producer.abort_transaction()
        finally:
            await producer.stop()

    asyncio.run(work())
    assert seen(broker, "out") == [b"kept"]
    position = broker.directory.coordinator.committed("g")[TopicPartition("in", 0)]
    assert position is not None
    assert position.offset == 3

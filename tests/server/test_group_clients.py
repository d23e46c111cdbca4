"""Consumers of real clients share topics in groups: two join, one leaves, and what they commit outlives the broker."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition

from octavo.records import BatchBuilder
from octavo.server.serving import Server, serve

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    from kafka import KafkaConsumer
    from kafka import TopicPartition as PythonPartition

CONFIG = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
PARTITIONS = 4
EACH = 25
PATIENCE_S = 30
HEARTBEAT_MS = 100
SESSION_MS = 6_000


def fill(server: Server) -> None:
    """Create the topic, with records in each partition."""
    server.directory.create_topic("t", PARTITIONS)
    for partition in range(PARTITIONS):
        builder = BatchBuilder()
        for number in range(EACH):
            builder.append(None, b"%d" % number, timestamp_ms=number)
        server.directory.log("t", partition).append(builder.build())


@pytest.fixture(scope="module")
def broker() -> Iterator[Server]:
    with serve(config=CONFIG) as server:
        fill(server)
        yield server


def until(is_true: Callable[[], bool], step: Callable[[], object]) -> None:
    """Take steps until something is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline
        step()


def librdkafka(address: str, group: str, **settings: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            **settings,
        }
    )
    consumer.subscribe(["t"])
    return consumer


def read_all(consumer: Consumer) -> None:
    """Consume everything, and commit it."""
    offsets: list[int | None] = []

    def step() -> None:
        message = consumer.poll(0.05)
        if message is not None:
            assert message.error() is None
            offsets.append(message.offset())

    until(lambda: len(offsets) == PARTITIONS * EACH, step)
    consumer.commit(asynchronous=False)


def test_librdkafka(broker: Server) -> None:
    first = librdkafka(broker.bootstrap_servers, "librdkafka")
    read_all(first)
    second = librdkafka(broker.bootstrap_servers, "librdkafka", **{"partition.assignment.strategy": "range"})
    both = [first, second]
    until(
        lambda: all(len(each.assignment()) == PARTITIONS // 2 for each in both),
        lambda: [each.poll(0.02) for each in both],
    )
    assert not {str(each) for each in first.assignment()} & {str(each) for each in second.assignment()}
    second.close()
    until(lambda: len(first.assignment()) == PARTITIONS, lambda: first.poll(0.02))
    first.close()


def test_librdkafka_cooperates(broker: Server) -> None:
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    first = librdkafka(broker.bootstrap_servers, "cooperative", **strategy)
    until(lambda: len(first.assignment()) == PARTITIONS, lambda: first.poll(0.02))
    second = librdkafka(broker.bootstrap_servers, "cooperative", **strategy)
    both = [first, second]
    until(
        lambda: all(len(each.assignment()) == PARTITIONS // 2 for each in both),
        lambda: [each.poll(0.02) for each in both],
    )
    for each in both:
        each.close()


def test_a_static_member_keeps_its_partitions(broker: Server) -> None:
    settings = {"group.instance.id": "one"}
    first = librdkafka(broker.bootstrap_servers, "static", **settings)
    until(lambda: len(first.assignment()) == PARTITIONS, lambda: first.poll(0.02))
    first.close()  # static members do not leave
    again = librdkafka(broker.bootstrap_servers, "static", **settings)
    until(lambda: len(again.assignment()) == PARTITIONS, lambda: again.poll(0.02))
    again.close()


def test_commits_outlive_the_broker(tmp_path: Path) -> None:
    with serve(tmp_path / "data", config=CONFIG) as server:
        fill(server)
        consumer = librdkafka(server.bootstrap_servers, "durable")
        read_all(consumer)
        consumer.close()
    with serve(tmp_path / "data", config=CONFIG) as server:
        consumer = librdkafka(server.bootstrap_servers, "durable")
        partitions = [TopicPartition("t", number) for number in range(PARTITIONS)]
        assert [each.offset for each in consumer.committed(partitions, timeout=PATIENCE_S)] == [EACH] * PARTITIONS
        consumer.close()


def test_kafka_python(broker: Server) -> None:
    def consumer() -> KafkaConsumer:
        return KafkaConsumer(
            "t",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="kafka-python",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )

    first = consumer()
    numbers: list[int] = []
    until(
        lambda: sum(numbers) == PARTITIONS * EACH,
        lambda: numbers.append(sum(map(len, first.poll(100).values()))),
    )
    first.commit()
    second = consumer()
    until(
        lambda: len(first.assignment()) == len(second.assignment()) == PARTITIONS // 2,
        lambda: [first.poll(20), second.poll(20)],
    )
    second.close()
    until(lambda: len(first.assignment()) == PARTITIONS, lambda: first.poll(20))
    assert [first.committed(PythonPartition("t", number)) for number in range(PARTITIONS)] == [EACH] * PARTITIONS
    first.close()


def test_aiokafka(broker: Server) -> None:
    def consumer() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            "t",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="aiokafka",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )

    async def share() -> None:
        first, second = consumer(), consumer()
        await first.start()
        try:
            for _ in range(PARTITIONS * EACH):
                await first.getone()
            await first.commit()
            await second.start()
            while not len(first.assignment()) == len(second.assignment()) == PARTITIONS // 2:
                await first.getmany(timeout_ms=20)
                await second.getmany(timeout_ms=20)
            await second.stop()
            while len(first.assignment()) != PARTITIONS:
                await first.getmany(timeout_ms=20)
            for each in first.assignment():
                assert await first.committed(each) == EACH
        finally:
            await first.stop()

    asyncio.run(asyncio.wait_for(share(), PATIENCE_S))

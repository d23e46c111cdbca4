"""A consumer in the serving process and clients of the broker share the partitions of a topic, in one group."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer as Librdkafka

from octavo.log import Consumer, TopicPartition
from octavo.log.coordinator.coordinator import group_hosts
from octavo.records import BatchBuilder
from octavo.server.serving import Server, serve

CONFIG = {
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS = 4
PATIENCE_S = 60
NUMBERS = itertools.count()
PROTOCOLS = ("classic", "cooperative", "consumer")

# How often members ask whether there is something new, and how they share partitions.
_CLASSIC = {"heartbeat.interval.ms": "50", "session.timeout.ms": "60000"}
SETTINGS = {
    "classic": _CLASSIC,
    "cooperative": {**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}

Offset = tuple[int, int]  # partition and offset


@pytest.fixture(scope="module")
def broker() -> Iterator[Server]:
    with serve(config=CONFIG) as server:
        yield server


class Topic:
    """A topic of its own, and the records that members of a group have read of it."""

    def __init__(self, server: Server) -> None:
        self.name = f"t{next(NUMBERS)}"
        self.group = f"group-of-{self.name}"
        self.server = server
        self.found: list[Offset] = []
        self.written = 0  # in each partition
        server.directory.create_topic(self.name, PARTITIONS)

    def write(self, count: int) -> None:
        """Append records to each partition."""
        for partition in range(PARTITIONS):
            builder = BatchBuilder()
            for number in range(count):
                builder.append(None, b"%d" % number, timestamp_ms=number)
            self.server.directory.log(self.name, partition).append(builder.build())
        self.written += count

    @property
    def is_read(self) -> bool:
        """Whether everything was read, and nothing twice."""
        found = Counter(self.found)
        assert not found or max(found.values()) == 1, found.most_common(3)
        return len(found) == PARTITIONS * self.written

    @property
    def is_settled(self) -> bool:
        """Whether all members of the group have what they shall have."""
        host = group_hosts(self.server.directory).host_for(self.group)
        return host.ask(lambda shard: shard.groups[self.group].listed().group_state == "Stable")

    def embedded(self) -> Consumer:
        settings = {"group.id": self.group, "auto.offset.reset": "earliest"}
        consumer = Consumer(self.server.directory, settings)
        consumer.subscribe([self.name])
        return consumer

    def poll(self, consumer: Consumer) -> None:
        records = consumer.poll(timeout=0.02, max_records=3)
        self.found.extend((record.partition, record.offset) for record in records)

    def librdkafka(self, protocol: str) -> Librdkafka:
        consumer = Librdkafka(
            {
                "bootstrap.servers": self.server.bootstrap_servers,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                **SETTINGS[protocol],
            }
        )
        consumer.subscribe([self.name])
        return consumer

    def poll_librdkafka(self, consumer: Librdkafka) -> None:
        message = consumer.poll(0.02)
        if message is not None:
            assert message.error() is None, message.error()
            self.found.append((message.partition() or 0, message.offset() or 0))

    def assigned(self, *counts: int) -> bool:
        """Return whether the members have as many partitions as that together."""
        return sum(counts) == PARTITIONS and min(counts) > 0


@pytest.fixture
def topic(broker: Server) -> Topic:
    return Topic(broker)


def until(is_true: Callable[[], bool], step: Callable[[], object]) -> None:
    """Take steps until something is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline
        step()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_joins_an_embedded_consumer_and_leaves(topic: Topic, protocol: str) -> None:
    topic.write(5)
    with topic.embedded() as embedded:
        until(lambda: topic.is_read, lambda: topic.poll(embedded))
        client = topic.librdkafka(protocol)

        def both() -> None:
            topic.poll(embedded)
            topic.poll_librdkafka(client)

        until(lambda: topic.assigned(len(embedded.assignment()), len(client.assignment())), both)
        topic.write(5)
        until(lambda: topic.is_read, both)
        client.close()
        until(lambda: len(embedded.assignment()) == PARTITIONS, lambda: topic.poll(embedded))
        topic.write(5)
        until(lambda: topic.is_read, lambda: topic.poll(embedded))
    partitions = [TopicPartition(topic.name, number) for number in range(PARTITIONS)]
    committed = topic.server.directory.coordinator.committed(topic.group, partitions)
    assert {each.offset for each in committed.values() if each is not None} == {15}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_embedded_consumer_joins_a_client_and_leaves(topic: Topic, protocol: str) -> None:
    topic.write(5)
    client = topic.librdkafka(protocol)
    until(lambda: topic.is_read, lambda: topic.poll_librdkafka(client))
    with topic.embedded() as embedded:

        def both() -> None:
            topic.poll(embedded)
            topic.poll_librdkafka(client)

        until(lambda: topic.assigned(len(embedded.assignment()), len(client.assignment())), both)
        topic.write(5)
        until(lambda: topic.is_read, both)
    until(lambda: len(client.assignment()) == PARTITIONS, lambda: topic.poll_librdkafka(client))
    topic.write(5)
    until(lambda: topic.is_read, lambda: topic.poll_librdkafka(client))
    client.close()


class Worker(threading.Thread):
    """A member in a thread of its own, which notes what it reads until it is told to leave."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(daemon=True)
        self.is_over = threading.Event()
        self.has_read = threading.Event()
        self.failure: BaseException | None = None
        self._topic = topic
        self.start()

    def run(self) -> None:
        try:
            self.consume(self._topic)
        except BaseException as error:
            self.failure = error
            raise

    def consume(self, topic: Topic) -> None:
        raise NotImplementedError

    def note(self, offsets: list[Offset]) -> None:
        self._topic.found.extend(offsets)
        if offsets:
            self.has_read.set()

    def leave(self) -> None:
        self.is_over.set()
        self.join()


class Embedded(Worker):
    def consume(self, topic: Topic) -> None:
        with topic.embedded() as consumer:
            while not self.is_over.is_set():
                self.note([(each.partition, each.offset) for each in consumer.poll(timeout=0.02, max_records=3)])


class Classic(Worker):
    protocol = "classic"

    def consume(self, topic: Topic) -> None:
        consumer = topic.librdkafka(self.protocol)
        while not self.is_over.is_set():
            message = consumer.poll(0.02)
            if message is not None:
                assert message.error() is None, message.error()
                self.note([(message.partition() or 0, message.offset() or 0)])
        consumer.close()


class ConsumerProtocol(Classic):
    protocol = "consumer"


class Aiokafka(Worker):
    def consume(self, topic: Topic) -> None:
        asyncio.run(self._consume(topic))

    async def _consume(self, topic: Topic) -> None:
        consumer = AIOKafkaConsumer(
            topic.name,
            bootstrap_servers=topic.server.bootstrap_servers,
            group_id=topic.group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=50,
            session_timeout_ms=60_000,
        )
        await consumer.start()
        try:
            while not self.is_over.is_set():
                for records in (await consumer.getmany(timeout_ms=20)).values():
                    self.note([(each.partition, each.offset) for each in records])
        finally:
            await consumer.stop()


@pytest.mark.parametrize(
    "kinds",
    [(Embedded, Classic, Embedded, Aiokafka), (ConsumerProtocol, Embedded, Aiokafka, Embedded)],
    ids=["embedded first", "client first"],
)
def test_members_of_all_kinds_come_and_go_while_records_come(topic: Topic, kinds: tuple[type[Worker], ...]) -> None:
    workers: list[Worker] = []

    def go_on() -> None:
        topic.write(1)
        time.sleep(0.001)  # others want to run, too
        assert [each.failure for each in workers if each.failure is not None] == []

    for kind in kinds:
        worker = kind(topic)
        workers.append(worker)
        until(worker.has_read.is_set, go_on)
    for worker in list(workers):
        # If the last member of the consumer protocol left before that, classic members would begin anew, as in Kafka.
        until(lambda: topic.is_settled, lambda: time.sleep(0.01))
        worker.leave()
        workers.remove(worker)
        for left in workers:
            left.has_read.clear()
            until(left.has_read.is_set, go_on)
        if workers:
            until(lambda: topic.is_read, lambda: time.sleep(0.01))
    assert topic.is_read

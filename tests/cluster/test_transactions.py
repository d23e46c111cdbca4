"""Transactions with leaders of both kinds; Apache Kafka coordinates them."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from octavo.errors import ErrorCode
from tests.cluster.data_questions import (
    Topic,
    add_partitions,
    elect,
    end_transaction,
    init_producer,
    produce_in,
    reassign,
)
from tests.cluster.nodes import COORDINATOR, PATIENCE_S, Cluster, wait_until
from tests.cluster.questions import Asking
from tests.cluster.replicas import expect_equal_replicas
from tests.cluster.test_leaders import KAFKA, OCTAVO, Led
from tests.kafka.java_clients import JavaClients, JavaProducer
from tests.kafka.judge import Judge

TOPIC = "spanned"
PARTITIONS = range(3)  # each of which another broker leads


class Librdkafka:
    """A producer of the first version: it tells the coordinator beforehand which partitions it writes to."""

    def __init__(self, address: str) -> None:
        self._producer = Producer({"bootstrap.servers": address, "transactional.id": "of-c", "log_level": 0})

    def init(self) -> None:
        self._producer.init_transactions(PATIENCE_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, values: list[bytes]) -> None:
        for value in values:
            self._producer.produce(topic, value, partition=partition)
        assert self._producer.flush(PATIENCE_S) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE_S)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_S)


def read_committed(address: str) -> list[list[bytes]]:
    """What consumers see of each partition, in its order."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in PARTITIONS])
    found: list[list[bytes]] = [[] for _ in PARTITIONS]
    left = set(PARTITIONS)
    while left:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{left} do not end"
        error, partition, value = message.error(), message.partition(), message.value()
        assert partition is not None
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            left.discard(partition)
        else:
            assert isinstance(value, bytes)
            found[partition].append(value)
    consumer.close()
    return found


def move_leaders(cluster: Cluster, turn: int) -> None:
    """Have other brokers lead, one each, and return when all of them know."""
    client = Asking(cluster.brokers[OCTAVO].address)
    topic = Topic(TOPIC, b"")
    for number in PARTITIONS:
        leader = 1 + (number + turn) % 3
        replicas = [leader, *(each for each in cluster.brokers if each != leader)]
        for question in (reassign(topic, replicas, partition=number), elect(topic, partition=number)):
            assert client.answer(question).error_code == 0
        for broker in cluster.brokers.values():
            wait_until(
                lambda: cluster.partitions(TOPIC, asked=broker)[number].leader == leader,  # noqa: B023 (called at once)
                f"{leader} is not made the leader",
            )
    client.close()


def test_transactions_span_leaders_of_both_kinds(cluster: Cluster, clients_of_java: Judge) -> None:
    """Also if other brokers lead before a transaction ends."""
    cluster.create(TOPIC, len(PARTITIONS))
    java = JavaClients(clients_of_java, cluster.address)
    expected: list[list[bytes]] = [[] for _ in PARTITIONS]
    producers: list[JavaProducer | Librdkafka] = [
        java.producer(**{"transactional.id": "of-java"}),
        Librdkafka(cluster.address),
    ]
    for producer in producers:
        producer.init()
    for turn in range(6):
        producer = producers[turn % 2]
        producer.begin()
        for number in PARTITIONS:
            values = [f"{turn}-{each}".encode() for each in range(3)]
            producer.send(TOPIC, number, values)
            if turn not in (2, 3):
                expected[number] += values
        if turn in (1, 2, 5):
            move_leaders(cluster, turn)
        if turn in (2, 3):
            producer.abort()
        else:
            producer.commit()
    assert read_committed(cluster.address) == expected
    cluster.await_in_sync(TOPIC)
    expect_equal_replicas(cluster, [TOPIC])


def answers_of(cluster: Cluster, leader: int) -> list[tuple[int, str | None]]:
    """What a leader answers to records of a transaction that its coordinator does not know yet, and then does."""
    coordinator = Asking(cluster.brokers[COORDINATOR].address)
    led = Led(cluster, f"verified-{leader}", leader, {"retention.ms": "-1"})
    name = f"transaction-{leader}"
    producer = (-1, -1)
    while producer[0] < 0:  # until the coordinator has loaded its topic
        answer = coordinator.answer(init_producer(name))
        producer = (answer.producer_id, answer.producer_epoch)
    newer = (producer[0], producer[1] + 5)
    told: list[tuple[int, str | None]] = []

    def produce(version: int, who: tuple[int, int] = producer, *, sequence: int = 0, as_: str = name) -> None:
        question = produce_in(led.topic, as_, who, sequence=sequence, version=version)
        [topic] = led.asking.answer(question).responses
        [result] = topic.partition_responses
        told.append((result.error_code, getattr(result, "error_message", None)))

    for version in (3, 8, 10, 11):  # before the partition was added
        produce(version)
    for version in (9, 11, 12):
        produce(version, as_="nobody-knows")
        produce(version, newer)
    assert coordinator.answer(add_partitions(led.topic, name, producer)).results_by_topic_v3_and_below
    for number, version in enumerate((3, 11, 9)):
        produce(version, sequence=number)
    wait_until(
        lambda: coordinator.answer(end_transaction(name, producer, committed=True)).error_code == 0,
        "the transaction cannot be ended",
    )
    led.close()
    coordinator.close()
    return told


def test_leaders_refuse_what_the_coordinator_does_not_know(cluster: Cluster) -> None:
    """An Octavo broker asks the coordinator as Apache Kafka does, and tells clients the same."""
    told = answers_of(cluster, OCTAVO)
    assert told == answers_of(cluster, KAFKA)
    assert {code for code, _ in told} > {0, ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE}

"""Consume-transform-produce with exactly-once semantics, by real clients that go on whatever happens to the broker.

Each has a thread, in which it reads `IN` as a member of a group and writes to a topic of its own, in transactions with
the offsets: `LibrdkafkaTransformer` (version 1 of transactions) and `JavaTransformer` (version 2).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.faults.broker_process import PATIENCE_S
from tests.kafka.answers import KafkaError as JavaError
from tests.kafka.java_clients import JavaClients, JavaMember, JavaProducer
from tests.kafka.judge import Judge

IN: Final = "in"
PARTITIONS: Final = 4
_BATCH: Final = 10
_QUICK: Final[dict[str, str | int | float | bool]] = {
    # Else librdkafka 2.16 drops a broker that is away, and waits for ever to send a group's offsets to it.
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 5,
    "log_level": 0,
}


class Transformer(ABC):
    """A client in a thread. It ends when it leaves a `with`."""

    def __init__(self, address: str, name: str, out: str) -> None:
        self.address: Final = address
        self.name: Final = name  # of the transactional id
        self.out: Final = out  # the topic that it writes to; that is also its group
        self.transformed = 0  # records, in transactions that were committed to its knowledge
        self.troubles: Final[list[str]] = []  # what it has met, and gone on after
        self.error: BaseException | None = None
        self._is_over: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self.work(self._is_over)
        except BaseException as error:  # for the thread that asks
            self.error = error

    @abstractmethod
    def work(self, is_over: threading.Event) -> None:
        """Open clients and use them, until they are of no more use or it is over."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"


class LibrdkafkaTransformer(Transformer):
    """A consumer and a producer of librdkafka."""

    def work(self, is_over: threading.Event) -> None:
        common = {"bootstrap.servers": self.address, **_QUICK}
        consumer = Consumer(
            {
                **common,
                "group.id": self.out,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 6000,
            }
        )
        producer = Producer({**common, "transactional.id": self.name, "transaction.timeout.ms": 20_000})
        try:
            producer.init_transactions(PATIENCE_S)
            consumer.subscribe([IN])
            while not is_over.is_set():
                messages = [each for each in consumer.consume(_BATCH, 0.1) if each.error() is None]
                if messages:
                    self._transform(consumer, producer, messages)
        except KafkaException as failure:
            self.troubles.append(str(failure))  # both are made anew
        finally:
            consumer.close()

    def _transform(self, consumer: Consumer, producer: Producer, messages: list[Message]) -> None:
        try:
            producer.begin_transaction()
            for message in messages:
                partition = message.partition()
                assert partition is not None
                producer.produce(self.out, message.value(), partition=partition)
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), PATIENCE_S
            )
            _again(lambda: producer.commit_transaction(PATIENCE_S))
        except KafkaException as failure:
            problem = failure.args[0]
            if not (isinstance(problem, KafkaError) and problem.txn_requires_abort()):
                raise
            self.troubles.append(str(problem))
            _again(lambda: producer.abort_transaction(PATIENCE_S))
            _rewind(consumer)
        else:
            self.transformed += len(messages)


def _again(end: object) -> None:
    """End a transaction, and ask again if that could not be said in time."""
    assert callable(end)
    while True:
        try:
            end()
        except KafkaException as failure:
            problem = failure.args[0]
            if not (isinstance(problem, KafkaError) and problem.retriable()):
                raise
        else:
            return


def _rewind(consumer: Consumer) -> None:
    """Read again what was not committed."""
    for each in consumer.committed(consumer.assignment(), PATIENCE_S):
        consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))


class JavaTransformer(Transformer):
    """A KafkaConsumer of the consumer protocol and a KafkaProducer."""

    def __init__(self, judge: Judge, address: str, name: str, out: str) -> None:
        super().__init__(address, name, out)
        self._clients: Final = JavaClients(judge, address)

    def work(self, is_over: threading.Event) -> None:
        settings = {"linger.ms": "0", "reconnect.backoff.max.ms": "50", "transaction.timeout.ms": "20000"}
        producer: JavaProducer | None = None
        member: JavaMember | None = None
        try:
            producer = self._clients.producer(**{"transactional.id": self.name, **settings})
            producer.init()
            member = self._clients.member(
                self.out, IN, **{"group.protocol": "consumer", "max.poll.records": str(_BATCH)}
            )
            while not is_over.is_set():
                self.transformed += member.transform(producer, self.out)
        except JavaError as failure:
            self.troubles.append(str(failure))  # both are made anew
        finally:
            if producer is not None:
                producer.abandon()
            if member is not None:
                member.close()

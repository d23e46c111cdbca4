"""Clients that use transactions, and write down what they see: `TransactionLoad`.

Some enter values in transactions, some make values of those that were entered, together with the offsets of their
group. They commit, abort, do not wait for the answer, or are replaced by another producer with the same id, and try to
commit after that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Final, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.faults.client_threads import PATIENCE_S, ClientThreads
from tests.faults.load import SMALL, LoadedTopic, create
from tests.faults.readers import (
    CONSUMER,
    QUICK,
    by_partition,
    follow_with_kafka_python,
    follow_with_librdkafka,
    read_all,
)
from tests.faults.transactional import (
    Broken,
    JavaProducer,
    LibrdkafkaProducer,
    MustAbort,
    TransactionalProducer,
    Unanswered,
)
from tests.faults.values import encode
from tests.history import Client, Partition, Promises, Transaction
from tests.kafka.judge import Judge

ENTERED: Final = LoadedTopic("entered", 3, SMALL)
DERIVED: Final = LoadedTopic("derived", 2, SMALL)
ALL: Final = [*ENTERED.all, *DERIVED.all]
GROUP: Final = "deriving"
_FATES: Final = ["commit"] * 12 + ["abort"] * 3 + ["replace", "forget"]

NewProducer = Callable[[str], TransactionalProducer]  # takes the transactional id


class TransactionLoad(ClientThreads):
    """The clients of one broker, from the beginning of a `with` to its end."""

    def __init__(self, address: str, random: Random, judge: Judge) -> None:
        super().__init__(address)
        self._random: Final = random
        self._judge: Final = judge

    def __enter__(self) -> Self:
        create(self.address, [ENTERED, DERIVED])
        for number in range(2):
            self.run(Worker(self, f"entering-{number}", self._librdkafka, None, self._seed()).work)
        for number, new in enumerate([self._librdkafka, self._librdkafka, self._java]):
            self.run(Worker(self, f"deriving-{number}", new, ENTERED.all[number], self._seed()).work)
        self.run(self._produce)
        for turns in (0, 20):
            self.run(self._follow, turns)
        self.run(follow_with_kafka_python, self.address, self.history.client(), ALL, self.stop)
        return self

    def _seed(self) -> int:
        return self._random.randrange(1 << 30)

    def _librdkafka(self, transactional_id: str) -> TransactionalProducer:
        return LibrdkafkaProducer(self.address, transactional_id)

    def _java(self, transactional_id: str) -> TransactionalProducer:
        return JavaProducer(self._judge, self.address, transactional_id)

    def _follow(self, turns: int) -> None:
        follow_with_librdkafka(self.address, self.history.client(), ALL, self.stop, turns=turns)

    def _produce(self) -> None:
        """Write values without transactions between the others, one at a time."""
        client = self.history.client(Promises.IDEMPOTENT)
        producer = Producer({"bootstrap.servers": self.address, "enable.idempotence": True, **QUICK})
        random = Random(self._seed())
        while not self.stop.wait(0.02):
            topic, number = partition = random.choice(ALL)
            send = client.send(partition, value := self.numbers.take())
            producer.produce(
                topic,
                encode(value),
                partition=number,
                on_delivery=lambda _, message: send.succeed(message.offset()),  # noqa: B023 (flushed at once)
            )
            assert producer.flush(PATIENCE_S) == 0

    def read_everything(self, address: str) -> None:
        """Read all that is there into the history, when no transaction is open, and where the group goes on."""
        client = self.history.client()
        read_all(address, client, ALL)
        fetch_offsets(address, client, ENTERED.all)


def fetch_offsets(address: str, client: Client, partitions: list[Partition]) -> dict[Partition, int | None]:
    """Ask where the group goes on, and note the answer in a history."""
    consumer = Consumer({"bootstrap.servers": address, **CONSUMER, **QUICK, "group.id": GROUP})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < deadline, "nobody tells where the group is"
        fetch = client.fetch_offsets(GROUP)
        try:
            told = consumer.committed([TopicPartition(*each) for each in partitions], PATIENCE_S)
        except KafkaException:  # the broker was killed
            continue
        assert all(each.error is None for each in told), told
        offsets = {(each.topic, each.partition): each.offset if each.offset >= 0 else None for each in told}
        fetch.succeed(offsets)
        consumer.close()
        return offsets


class Worker:
    """One transactional id, with one producer after the other, and a consumer if it has a partition to read."""

    def __init__(
        self, load: TransactionLoad, name: str, new_producer: NewProducer, source: Partition | None, seed: int
    ) -> None:
        self._load, self._name, self._source = load, name, source
        self._new_producer: Final = new_producer
        self._random: Final = Random(seed)
        self._reader: Final = load.history.client()
        self._consumer: Final = Consumer({"bootstrap.servers": load.address, **CONSUMER, **QUICK})

    def work(self) -> None:
        """Make one transaction after the other."""
        self._renew()
        self._go_back()
        while not self._load.stop.is_set():
            transaction = self._take() if self._source is not None else self._client.begin()
            if transaction is not None:
                fate = self._random.choice(_FATES)
                if not self._make(transaction, fate):
                    self._go_back()
                elif self._random.random() < 0.2:
                    self._go_back()  # to where it is, if the broker knows that too
        self._renew()  # so that nothing is open
        self._producer.abandon()
        self._consumer.close()

    def _renew(self) -> None:
        """Have a new producer with the same id, after which the old one can do nothing."""
        while True:
            self._producer = self._new_producer(self._name)
            self._client = self._load.history.client(Promises.IDEMPOTENT)
            try:
                self._producer.init()
            except Broken:
                continue
            return

    def _go_back(self) -> None:
        """Go on from where the group is."""
        if self._source is not None:
            position = fetch_offsets(self._load.address, self._reader, [self._source])[self._source] or 0
            self._consumer.assign([TopicPartition(*self._source, position)])
            self._reader.assign({self._source: position})

    def _take(self) -> Transaction | None:
        """Begin a transaction for the next records, if there are any."""
        poll = self._reader.poll()
        records = by_partition(self._consumer.consume(self._random.choice([1, 5, 30]), 0.05))
        poll.succeed(records)
        if not records:
            return None
        assert self._source is not None
        transaction = poll.transaction = self._client.begin()
        transaction.send_offsets(GROUP, {self._source: records[self._source][-1][0] + 1})
        return transaction

    def _make(self, transaction: Transaction, fate: str) -> bool:
        """Go through a transaction. Returns whether it is committed."""
        producer = self._producer
        try:
            producer.begin()
            targets = ALL if self._source is None else DERIVED.all
            for _ in range(self._random.randrange(1, 4)):
                places = self._random.choices(targets, k=self._random.randrange(1, 4))
                producer.send(
                    [self._client.send(each, self._load.numbers.take(), transaction=transaction) for each in places]
                )
            if self._source is not None:
                producer.send_offsets(GROUP, transaction.offsets)
            if fate == "replace":
                self._renew()
            if fate != "abort":
                transaction.commit()
                producer.commit_hastily() if fate == "forget" else producer.commit()
                if fate == "replace":
                    self._load.errors.append(f"a producer that was replaced has committed {transaction!r}")
                transaction.succeed()
                self._load.note_done()
                return True
            producer.abort()
            transaction.fail()
        except MustAbort:
            self._abort(transaction, producer)
        except Unanswered:
            self._renew()
        except Broken:
            if producer is self._producer:
                self._renew()
            else:  # nothing was asked for before it was replaced
                transaction.fail()
        finally:
            if producer is not self._producer:
                producer.abandon()
        return False

    def _abort(self, transaction: Transaction, producer: TransactionalProducer) -> None:
        try:
            producer.abort()
            transaction.fail()
        except (MustAbort, Broken):
            if producer is self._producer:
                self._renew()
            else:
                transaction.fail()

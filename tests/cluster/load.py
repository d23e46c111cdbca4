"""Clients that write to and read from a cluster, of librdkafka and of Java, and note what they see: `ClusterLoad`.

Every producer asks for acks=all and is idempotent or transactional, so nothing may be lost, doubled or out of order,
whatever happens to a minority of the replicas.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final, Self

from confluent_kafka import KafkaError, Message, Producer

from tests.cluster.nodes import Cluster
from tests.faults.client_threads import PATIENCE_S, ClientThreads
from tests.faults.load import LoadedTopic
from tests.faults.readers import QUICK, Config, follow_with_kafka_python, follow_with_librdkafka, read_all
from tests.faults.transactional import Broken, LibrdkafkaProducer, MustAbort, TransactionalProducer
from tests.faults.values import decode, encode
from tests.history import Client, Partition, Promises, Send
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge

_OUTSTANDING: Final = 200
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# A broker that hangs is noticed by time-outs only; they are shorter than the defaults so that no test waits for long.
_IMPATIENT: Final[Config] = {"request.timeout.ms": 3_000, "socket.timeout.ms": 4_000}
_JAVA: Final = {
    "acks": "all",
    "enable.idempotence": "true",
    "linger.ms": "0",
    "request.timeout.ms": "3000",
    "delivery.timeout.ms": "120000",
    "max.block.ms": "120000",
    "reconnect.backoff.ms": "5",
    "reconnect.backoff.max.ms": "50",
    "retry.backoff.ms": "5",
}
_numbers: Final = itertools.count(1)


class ClusterLoad(ClientThreads):
    """Clients of a cluster, from the beginning of a `with` to its end, on topics of their own."""

    def __init__(self, cluster: Cluster, judge: Judge, *, seed: int = 18, transactions: bool = False) -> None:
        """`judge` is the Java process of the clients, which nobody else may ask meanwhile."""
        super().__init__(cluster.address)
        self._cluster: Final = cluster
        self._judge: Final = judge
        self._random: Final = Random(seed)
        self._transactions: Final = transactions
        number = next(_numbers)
        self.plain: Final = LoadedTopic(f"plain-{number}", 3)
        self.mixed: Final = LoadedTopic(f"mixed-{number}", 3)  # transactions and what is written between them
        self._acknowledged: Final[Counter[Partition]] = Counter()
        self._more: Final = threading.Condition()

    @property
    def topics(self) -> list[str]:
        """The names of its topics."""
        return [self.plain.name, *([self.mixed.name] if self._transactions else [])]

    @property
    def partitions(self) -> list[Partition]:
        """All its partitions. Each broker of three leads one of a topic at first."""
        return [*self.plain.all, *(self.mixed.all if self._transactions else [])]

    def __enter__(self) -> Self:
        for topic in self.topics:
            self._cluster.create(topic, 3)
        for codec in self._random.sample(_CODECS, 2):
            self.run(self._produce, self.history.client(Promises.IDEMPOTENT), codec, self._seed())
        self.run(self._produce_with_java, self.history.client(Promises.IDEMPOTENT), self._seed())
        self.run(follow_with_librdkafka, self.address, self.history.client(), self.partitions, self.stop)
        if self._transactions:
            self.run(self._transact, self._seed())
            self.run(follow_with_kafka_python, self.address, self.history.client(), self.partitions, self.stop)
        return self

    def _seed(self) -> int:
        return self._random.randrange(1 << 30)

    # -------------------------------------------------------------------------------------------------------- producers

    def _produce(self, client: Client, codec: str, seed: int) -> None:
        random = Random(seed)
        config: Config = {"enable.idempotence": True, "compression.type": codec, "linger.ms": 5}
        producer = Producer({"bootstrap.servers": self.address} | QUICK | _IMPATIENT | config)
        while not self.stop.wait(0.02):
            for _ in range(random.randrange(1, 30)):
                topic, number = partition = random.choice(self.partitions)
                send = client.send(partition, value := self.numbers.take())
                producer.produce(topic, encode(value), partition=number, on_delivery=self._delivered(send))
            producer.poll(0)
            while len(producer) > _OUTSTANDING and not self.stop.is_set():
                producer.poll(0.02)
        if producer.flush(PATIENCE_S):
            self.errors.append(f"not all sends of process {client.process} were answered")

    def _delivered(self, send: Send) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.errors.append(f"{send!r}: {error}")
                return
            offset = message.offset()
            send.succeed(offset if offset is not None and offset >= 0 else None)
            self._note(send.partition)

        return delivered

    def _produce_with_java(self, client: Client, seed: int) -> None:
        random = Random(seed)
        java = JavaClients(self._judge, self.address)
        with java.producer(**_JAVA, **{"compression.type": random.choice(_CODECS)}) as producer:
            while not self.stop.wait(0.02):
                topic, number = partition = random.choice(self.partitions)
                sends = [client.send(partition, self.numbers.take()) for _ in range(random.randrange(1, 20))]
                offsets = producer.send(topic, number, [encode(_number(send)) for send in sends])
                for send, offset in zip(sends, offsets, strict=True):
                    send.succeed(offset)
                    self._note(partition)

    def _transact(self, seed: int) -> None:
        random = Random(seed)
        producer, client = self._transactional()
        while not self.stop.wait(0.01):
            transaction = client.begin()
            try:
                producer.begin()
                places = random.choices(self.mixed.all, k=random.randrange(1, 6))
                producer.send([client.send(each, self.numbers.take(), transaction=transaction) for each in places])
                if random.random() < 0.2:
                    producer.abort()
                    transaction.fail()
                    continue
                transaction.commit()
                producer.commit()
                transaction.succeed()
                self.note_done()
            except MustAbort:
                with suppress(MustAbort, Broken):
                    producer.abort()
                    transaction.fail()
                    continue
                producer, client = self._transactional()
            except Broken:  # for librdkafka, an answer that was lost when the coordinator was stopped
                producer, client = self._transactional()
        producer.abandon()

    def _transactional(self) -> tuple[TransactionalProducer, Client]:
        """A new producer with the one transactional id."""
        while True:
            producer = LibrdkafkaProducer(self.address, f"of-{self.mixed.name}")
            with suppress(Broken):
                producer.init()
                return producer, self.history.client(Promises.IDEMPOTENT)

    # ---------------------------------------------------------------------------------------------------------- waiting

    def _note(self, partition: Partition) -> None:
        with self._more:
            self._acknowledged[partition] += 1
            self._more.notify_all()
        self.note_done()

    def wait_for_all(self, count: int = 20) -> None:
        """Return when so much more is acknowledged in each partition."""
        with self._more:
            wanted = {each: self._acknowledged[each] + count for each in self.partitions}
            done = self._more.wait_for(
                lambda: self.errors or all(self._acknowledged[each] >= least for each, least in wanted.items()),
                PATIENCE_S,
            )
        assert done, f"nothing is acknowledged any more in some of {wanted}: {self._acknowledged}"
        assert not self.errors, self.errors

    def await_sends(self, partitions: Sequence[Partition]) -> float:
        """Return when something that is sent from now on is acknowledged in each partition; how long that took, in ms.

        Of the time that a partition's clients had to wait, this is the longest.
        """
        now_ns, seen = time.monotonic_ns(), len(self.history)
        first: dict[Partition, int] = {}

        def look() -> bool:
            for operation in itertools.islice(self.history, seen, None):
                if isinstance(operation, Send) and operation.completed_ns is not None:
                    at = first.get(operation.partition, operation.completed_ns)
                    first[operation.partition] = min(at, operation.completed_ns)
            return all(each in first for each in partitions)

        with self._more:
            done = self._more.wait_for(lambda: self.errors or look(), PATIENCE_S)
        assert done, f"nothing is acknowledged any more in some of {partitions}"
        assert not self.errors, self.errors
        return (max(first[each] for each in partitions) - now_ns) / 1e6

    # ---------------------------------------------------------------------------------------------------------- the end

    def read_everything(self) -> None:
        """Read all that is there into the history, with librdkafka and with Java."""
        read_all(self.address, self.history.client(), self.partitions)
        java, client = JavaClients(self._judge, self.address), self.history.client()
        for partition in self.partitions:
            client.assign({partition: 0})
            poll = client.poll()
            found = java.read(*partition).records
            poll.succeed({partition: [(each.offset, decode(each.value)) for each in found]})


def _number(send: Send) -> int:
    assert isinstance(send.value, int)
    return send.value

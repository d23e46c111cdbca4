"""Clients that produce, consume and administer at once, and write down what they see: `Load`."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.faults.values import Numbers, decode, encode
from tests.history import Client, History, Partition, Promises, Removals, Send

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    from kafka import KafkaConsumer
    from kafka import TopicPartition as KafkaTopicPartition

Config = dict[str, str | int | float | bool]

logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it tells of every attempt to reach a killed broker

PATIENCE_S: Final = 60
_OUTSTANDING: Final = 400
_QUICK: Final[Config] = {
    "log_level": 0,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 5,
}
_SMALL: Final = {"internal.segment.bytes": "100000", "index.interval.bytes": "500", "file.delete.delay.ms": "10"}


@dataclass(frozen=True)
class LoadedTopic:
    """A topic of the load."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def all(self) -> list[Partition]:
        """All its partitions."""
        return [(self.name, number) for number in range(self.partitions)]


PLAIN: Final = LoadedTopic("plain", 3, _SMALL)
COMPACTED: Final = LoadedTopic(
    "compacted", 2, {**_SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
)
RETAINED: Final = LoadedTopic("retained", 1, {**_SMALL, "retention.bytes": "300000"})
TOPICS: Final = (PLAIN, COMPACTED, RETAINED)
BROKER: Final = {"log.retention.check.interval.ms": "300", "log.initial.task.delay.ms": "0"}

# Without idempotence, librdkafka may also change the order when it tries again.
PRODUCERS: Final[tuple[tuple[Promises, Config], ...]] = (
    (Promises.IDEMPOTENT, {"enable.idempotence": True, "compression.type": "none"}),
    (Promises.IDEMPOTENT, {"enable.idempotence": True, "compression.type": "snappy", "linger.ms": 0}),
    (Promises.NOTHING, {"acks": "1", "compression.type": "zstd"}),
    (Promises.NOTHING, {"acks": "all", "max.in.flight": 1, "compression.type": "gzip", "linger.ms": 20}),
    (Promises.NOTHING, {"acks": "1", "compression.type": "snappy", "linger.ms": 1}),
)


class Load:
    """The clients of one broker, each in a thread, from the beginning of a `with` to its end."""

    def __init__(self, address: str, random: Random) -> None:
        self.history: Final = History()
        self.errors: Final[list[str]] = []  # of clients: what should not happen
        self._address: Final = address
        self._random: Final = random
        self._numbers: Final = Numbers()
        self._acknowledged = 0
        self._changed: Final = threading.Condition()
        self._stop: Final = threading.Event()
        self._threads: Final[list[threading.Thread]] = []

    def __enter__(self) -> Self:
        create(self._address, TOPICS)
        for promises, config in PRODUCERS:
            self._run(self._produce, self.history.client(promises), config, self._random.randrange(1 << 30))
        self._run(self._consume_with_librdkafka)
        self._run(self._consume_with_kafka_python)
        self._run(self._administer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the clients. The broker has to serve, so that everything can be acknowledged."""
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE_S)
            if thread.is_alive():
                self.errors.append(f"{thread.name} does not end")

    def wait_for(self, count: int) -> None:
        """Return when so many more sends are acknowledged."""
        with self._changed:
            wanted = self._acknowledged + count
            done = self._changed.wait_for(lambda: self._acknowledged >= wanted or self.errors, PATIENCE_S)
        assert done, "nothing is acknowledged any more"
        assert not self.errors, self.errors

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        def guarded() -> None:
            try:
                work(*arguments)
            except Exception as error:  # it would be lost in the thread
                self.errors.append(repr(error))

        thread = threading.Thread(target=guarded, name=work.__name__, daemon=True)
        self._threads.append(thread)
        thread.start()

    # -------------------------------------------------------------------------------------------------------- clients

    def _produce(self, client: Client, config: Config, seed: int) -> None:
        random = Random(seed)
        producer = Producer({"bootstrap.servers": self._address, "batch.size": 16_000} | _QUICK | config)
        partitions = [each for topic in TOPICS for each in topic.all]
        while not self._stop.is_set():
            for _ in range(random.randrange(1, 60)):
                topic, number = partition = random.choice(partitions)
                value = self._numbers.take()
                key = b"%d" % random.randrange(40)
                send = client.send(partition, value, key=key)
                producer.produce(topic, encode(value), key, number, on_delivery=self._delivered(send))
            producer.poll(0)
            while len(producer) > _OUTSTANDING and not self._stop.is_set():
                producer.poll(0.02)
        if producer.flush(PATIENCE_S):
            self.errors.append(f"not all sends of process {client.process} were answered")

    def _delivered(self, send: Send) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                # On a slow machine, a producer may be kept from its turn by kill after kill until it gives up.
                if error.code() != KafkaError._MSG_TIMED_OUT or send.promises is not Promises.NOTHING:
                    self.errors.append(f"{send!r}: {error}")
                return
            offset = message.offset()
            send.succeed(offset if offset is not None and offset >= 0 else None)
            with self._changed:
                self._acknowledged += 1
                self._changed.notify_all()

        return delivered

    def _consume_with_librdkafka(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._address, "auto.offset.reset": "earliest"} | _CONSUMER | _QUICK)
        partitions = [*PLAIN.all, *RETAINED.all]
        client = self.history.client()
        consumer.assign([TopicPartition(topic, number, 0) for topic, number in partitions])
        client.assign(dict.fromkeys(partitions, 0))
        while not self._stop.is_set():
            poll = client.poll()
            poll.succeed(by_partition(consumer.consume(500, 0.1)))
        consumer.close()

    def _consume_with_kafka_python(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._address,
            auto_offset_reset="earliest",
            reconnect_backoff_ms=5,
            reconnect_backoff_max_ms=50,
            retry_backoff_ms=5,
        )
        partitions = [*PLAIN.all, *COMPACTED.all]
        client = self.history.client()
        assigned = [KafkaTopicPartition(topic, number) for topic, number in partitions]
        consumer.assign(assigned)
        for each in assigned:
            consumer.seek(each, 0)
        client.assign(dict.fromkeys(partitions, 0))
        while not self._stop.is_set():
            poll = client.poll()
            batches = consumer.poll(100)
            poll.succeed(
                {
                    (where.topic, where.partition): [(each.offset, decode(each.value)) for each in records]
                    for where, records in batches.items()
                }
            )
        consumer.close()

    def _administer(self) -> None:
        """Create, change and delete topics. A killed broker does not answer; then it is not known what happened."""
        admin = AdminClient({"bootstrap.servers": self._address, **_QUICK})
        for number in range(1 << 30):
            if self._stop.is_set():
                return
            name = f"passing-{number}"
            entry = ConfigEntry("retention.ms", str(10**9 + number), incremental_operation=AlterConfigOpType.SET)
            changed = ConfigResource(ResourceType.TOPIC, PLAIN.name, incremental_configs=[entry])
            for future in (
                admin.create_topics([NewTopic(name, 2, 1)], operation_timeout=1, request_timeout=2)[name],
                admin.incremental_alter_configs([changed], request_timeout=2)[changed],
                admin.delete_topics([name], operation_timeout=1, request_timeout=2)[name],
            ):
                with contextlib.suppress(KafkaException):  # the broker was killed, or the topic is there or gone
                    future.result(PATIENCE_S)

    # --------------------------------------------------------------------------------------------------------- the end

    def read_everything(self, address: str) -> Removals:
        """Read all that is there into the history. Returns where values may be gone on purpose."""
        starts = read_all(address, self.history.client(), [each for topic in TOPICS for each in topic.all])
        return Removals({each: start for each, start in starts.items() if each[0] == RETAINED.name}, _COMPACTED)


_COMPACTED: Final = frozenset({COMPACTED.name})
_CONSUMER: Final = {"group.id": "none", "enable.auto.commit": False, "enable.partition.eof": False}


def create(address: str, topics: Sequence[LoadedTopic]) -> None:
    """Create topics."""
    admin = AdminClient({"bootstrap.servers": address})
    new = [NewTopic(each.name, each.partitions, 1, config=dict(each.config)) for each in topics]
    for future in admin.create_topics(new).values():
        future.result(PATIENCE_S)


def by_partition(messages: Sequence[Message]) -> dict[Partition, list[tuple[int, int | bytes | None]]]:
    """Return the offsets and values of messages; those that only tell of a lost connection are left out."""
    records: dict[Partition, list[tuple[int, int | bytes | None]]] = {}
    for each in messages:
        if each.error() is None:
            topic, partition, offset = each.topic(), each.partition(), each.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            records.setdefault((topic, partition), []).append((offset, decode(each.value())))
    return records


def read_all(address: str, client: Client, partitions: Sequence[Partition]) -> dict[Partition, int]:
    """Read partitions from start to end into a history. Returns their start offsets."""
    consumer = Consumer({"bootstrap.servers": address, **_CONSUMER, "enable.partition.eof": True})
    starts: dict[Partition, int] = {}
    deadline = time.monotonic() + PATIENCE_S
    while len(starts) < len(partitions):
        asked = partitions[len(starts)]
        try:
            starts[asked], _ = consumer.get_watermark_offsets(TopicPartition(*asked), PATIENCE_S)
        except KafkaException as failure:  # Apache Kafka answers before it knows that it leads everything
            if failure.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
    consumer.assign([TopicPartition(*each, offset) for each, offset in starts.items()])
    client.assign(dict(starts))
    left = set(partitions)
    while left:
        poll = client.poll()
        messages = consumer.consume(10_000, 0.2)
        poll.succeed(by_partition(messages))
        for message in messages:
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left = {each for each in left if each != (message.topic(), message.partition())}
    consumer.close()
    return starts

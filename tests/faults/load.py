"""Clients that produce, consume and administer at once, and write down what they see: `Load`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.faults.client_threads import PATIENCE_S, ClientThreads
from tests.faults.readers import QUICK, Config, follow_with_kafka_python, follow_with_librdkafka, read_all
from tests.faults.values import encode
from tests.history import Client, Partition, Promises, Removals, Send

_OUTSTANDING: Final = 400
SMALL: Final = {"internal.segment.bytes": "100000", "index.interval.bytes": "500", "file.delete.delay.ms": "10"}


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


PLAIN: Final = LoadedTopic("plain", 3, SMALL)
COMPACTED: Final = LoadedTopic(
    "compacted", 2, {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
)
RETAINED: Final = LoadedTopic("retained", 1, {**SMALL, "retention.bytes": "300000"})
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


class Load(ClientThreads):
    """Clients that produce, consume and administer, from the beginning of a `with` to its end."""

    def __init__(self, address: str, random: Random) -> None:
        super().__init__(address)
        self._random: Final = random

    def __enter__(self) -> Self:
        create(self.address, TOPICS)
        for promises, config in PRODUCERS:
            self.run(self._produce, self.history.client(promises), config, self._random.randrange(1 << 30))
        uncompacted, unretained = [*PLAIN.all, *RETAINED.all], [*PLAIN.all, *COMPACTED.all]
        self.run(follow_with_librdkafka, self.address, self.history.client(), uncompacted, self.stop)
        self.run(follow_with_kafka_python, self.address, self.history.client(), unretained, self.stop)
        self.run(self._administer)
        return self

    # -------------------------------------------------------------------------------------------------------- clients

    def _produce(self, client: Client, config: Config, seed: int) -> None:
        random = Random(seed)
        producer = Producer({"bootstrap.servers": self.address, "batch.size": 16_000} | QUICK | config)
        partitions = [each for topic in TOPICS for each in topic.all]
        while not self.stop.is_set():
            for _ in range(random.randrange(1, 60)):
                topic, number = partition = random.choice(partitions)
                value = self.numbers.take()
                key = b"%d" % random.randrange(40)
                send = client.send(partition, value, key=key)
                producer.produce(topic, encode(value), key, number, on_delivery=self._delivered(send))
            producer.poll(0)
            while len(producer) > _OUTSTANDING and not self.stop.is_set():
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
            self.note_done()

        return delivered

    def _administer(self) -> None:
        """Create, change and delete topics. A killed broker does not answer; then it is not known what happened."""
        admin = AdminClient({"bootstrap.servers": self.address, **QUICK})
        for number in range(1 << 30):
            if self.stop.is_set():
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


def create(address: str, topics: Sequence[LoadedTopic]) -> None:
    """Create topics."""
    admin = AdminClient({"bootstrap.servers": address})
    new = [NewTopic(each.name, each.partitions, 1, config=dict(each.config)) for each in topics]
    for future in admin.create_topics(new).values():
        future.result(PATIENCE_S)

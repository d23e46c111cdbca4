"""Kafka's own clients, in Java: producers and consumers of one broker, each told what to do one thing at a time.

    java = JavaClients(judge, broker)                         # the judge of the broker's release: `kafka_broker`
    with java.producer(**{"transactional.id": "t"}) as producer:
        producer.init()
        producer.begin()
        assert producer.send("topic", 0, [b"a", b"b"]) == [0, 1]
        producer.commit()
    assert java.read("topic", 0).records[0].value == b"a"     # as a consumer with isolation.level=read_committed
    java.producers("topic", 0)                                # what the broker knows of who wrote there

What a client throws is raised as `KafkaError`, whose fault has the Java class.
"""

from __future__ import annotations

import itertools
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from tests.kafka.broker import Broker
from tests.kafka.judge import Judge
from tests.kafka.serving import Known, Partition, ProducerState, Seen

PATIENCE_S: Final = 60


class TransactionState(NamedTuple):
    """What is known of a transactional id."""

    state: str
    producer_id: int
    epoch: int
    partitions: tuple[str, ...]


class JavaClients:
    """The clients of one broker."""

    def __init__(self, judge: Judge, broker: Broker | str) -> None:
        """`broker`: or the address of one, whatever it is."""
        self._judge = judge
        self._address: Final = broker if isinstance(broker, str) else broker.address
        self._numbers = itertools.count()

    def producer(self, **config: str) -> JavaProducer:
        """A new producer; a batch holds what one `send` is given."""
        name = f"{self._address} {next(self._numbers)}"
        defaults = {"linger.ms": "10000", "batch.size": "1000000", "max.block.ms": "30000"}
        self._judge.ask("producer.open", client=name, config=self._config(**defaults | config))
        return JavaProducer(self, self._judge, name, config.get("transactional.id"))

    def read(self, topic: str, partition: int, *, committed: bool = True) -> Partition:
        """All that a consumer is given, which reads committed records or all."""
        level = "read_committed" if committed else "read_uncommitted"
        config = self._config(**{"isolation.level": level, "enable.auto.commit": "false", "fetch.max.wait.ms": "5"})
        told = self._judge.ask("consumer.read", topic=topic, partition=partition, config=config)
        return Partition(told["end"], [_seen(*record) for record in told["records"]])

    def join(self, group_id: str, topic: str, **config: str) -> list[Seen]:
        """What is left for a group to read of a topic, as its only member; committed then."""
        defaults = {"group.id": group_id, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        told = self._judge.ask("consumer.join", topic=topic, config=self._config(**defaults | config))
        return [_seen(*record) for record in told]

    def member(self, group_id: str, topic: str, **config: str) -> JavaMember:
        """A member of a group that stays, and reads committed records from the first on."""
        name = f"{self._address} {next(self._numbers)}"
        defaults = {"group.id": group_id, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        wanted = self._config(**{**defaults, "enable.auto.commit": "false"} | config)
        self._judge.ask("member.open", client=name, topic=topic, config=wanted)
        return JavaMember(self._judge, name)

    def share(self, group_id: str, topic: str, count: int) -> None:
        """Read so many records of a topic, from its first on, as a share group."""
        self._judge.ask("consumer.share", topic=topic, count=count, config=self._config(**{"group.id": group_id}))

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        self._admin("create", topic=topic, partitions=partitions, settings=dict(settings))

    def producers(self, topic: str, partition: int) -> list[ProducerState]:
        """What the partition's leader knows of producers, by their ids."""
        return [ProducerState(*told) for told in self._admin("producers", topic=topic, partition=partition)]

    def known(self, topic: str, partition: int) -> Known:
        """What the broker has of a partition for consumers, and knows of its producers."""
        read = self.read(topic, partition), self.read(topic, partition, committed=False)
        return Known(*read, self.producers(topic, partition))

    def transaction(self, transactional_id: str) -> TransactionState:
        """What the coordinator knows of a transactional id."""
        told = self._admin("transaction", id=transactional_id)
        return TransactionState(told["state"], told["producer"], told["epoch"], tuple(told["partitions"]))

    def wait_for_end(self, transactional_id: str) -> None:
        """Returns when the last transaction of a transactional id has ended in all its partitions."""
        deadline = time.monotonic() + PATIENCE_S
        while self.transaction(transactional_id).state not in ("CompleteCommit", "CompleteAbort", "Empty"):
            assert time.monotonic() < deadline, f"the transaction of {transactional_id} does not end"

    def abort_hanging(self, topic: str, partition: int, state: ProducerState) -> None:
        """Ends a transaction of which no coordinator knows, as `kafka-transactions abort` does."""
        place = {"topic": topic, "partition": partition}
        self._admin(
            "abort", producer=state.producer_id, epoch=state.epoch, coordinatorEpoch=state.coordinator_epoch, **place
        )

    def committed(self, group_id: str) -> dict[str, tuple[int, str]]:
        """Where a group is: offset and metadata by partition."""
        return {place: (offset, text) for place, (offset, text) in self._admin("committed", group=group_id).items()}

    def delete_group(self, group_id: str) -> None:
        """Have the broker forget a group."""
        self._admin("forget", group=group_id)

    def _admin(self, question: str, **details: Any) -> Any:
        return self._judge.ask(f"admin.{question}", config=self._config(), **details)

    def _config(self, **more: str) -> dict[str, str]:
        return {"bootstrap.servers": self._address, **more}


class JavaMember:
    """One KafkaConsumer that has subscribed to a topic."""

    def __init__(self, judge: Judge, name: str) -> None:
        self._judge: Final = judge
        self._name: Final = name

    def poll(self) -> list[tuple[int, bytes]]:
        """Partitions and values of what it gets within a moment, committed then."""
        return [(partition, b64decode(value)) for partition, value in self._ask("poll")]

    def transform(self, producer: JavaProducer, topic: str) -> int:
        """Write what it gets within a moment to another topic, in a transaction with the offsets; how many records."""
        return int(self._ask("transform", producer=producer.name, topic=topic))

    def close(self) -> None:
        """End without waiting for the broker."""
        self._ask("close")

    def _ask(self, question: str, **details: Any) -> Any:
        return self._judge.ask(f"member.{question}", client=self._name, **details)


class JavaProducer:
    """One KafkaProducer. Leaving a `with` ends what it has open, unless it was abandoned."""

    def __init__(self, clients: JavaClients, judge: Judge, name: str, transactional_id: str | None) -> None:
        self._clients = clients
        self._judge = judge
        self.name: Final = name
        self._transactional_id = transactional_id
        self._is_open = True

    def init(self) -> None:
        self._ask("init")

    def begin(self) -> None:
        self._ask("begin")

    def commit(self) -> None:
        """Commit; consumers see it when this returns, which a producer by itself does not wait for."""
        self._end("commit")

    def abort(self) -> None:
        """Abort; consumers are told when this returns."""
        self._end("abort")

    def _end(self, how: str) -> None:
        assert self._transactional_id is not None
        self._ask(how)
        self._clients.wait_for_end(self._transactional_id)

    def send(self, topic: str, partition: int, values: Iterable[bytes | None]) -> list[int]:
        """The offsets of records without keys, which are in the log then."""
        return self.send_pairs(topic, partition, [(None, value) for value in values])

    def send_pairs(
        self,
        topic: str,
        partition: int | None,
        pairs: Iterable[tuple[bytes | None, bytes | None]],
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> list[int]:
        """The offsets of records with these keys and values, and all with the same headers.

        Without a partition the producer chooses.
        """
        records = [[_base64(key), _base64(value)] for key, value in pairs]
        place = {"topic": topic, "partition": -1 if partition is None else partition}
        named = [[key, _base64(value)] for key, value in headers]
        offsets: list[int] = self._ask("send", **place, records=records, headers=named)
        return offsets

    def send_offsets(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """Have a group go on from there, if the transaction is committed."""
        self._ask("offsets", group=group_id, offsets=[{"topic": topic, "partition": partition, "offset": offset}])

    def abandon(self) -> None:
        """End without a word to the broker: what is open stays open."""
        self._close(wait=False)

    def close(self) -> None:
        self._close(wait=True)

    def _close(self, *, wait: bool) -> None:
        if self._is_open:
            self._is_open = False
            self._ask("close", wait=wait)

    def _ask(self, question: str, **details: Any) -> Any:
        return self._judge.ask(f"producer.{question}", client=self.name, **details)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(wait=error is None)


def _seen(
    offset: int, timestamp_ms: int, key: str | None, value: str | None, headers: list[tuple[str, str | None]]
) -> Seen:
    pairs = tuple((name, _bytes(content)) for name, content in headers)
    return Seen(offset, timestamp_ms, _bytes(key), _bytes(value), pairs)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")

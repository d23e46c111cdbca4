"""Producers of both kinds of clients that write every kind of batch: `write_everything`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from tests.faults.client_threads import PATIENCE_S
from tests.faults.readers import QUICK, Config
from tests.history import Partition
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_PLAIN: Final = {"acks": "all", "enable.idempotence": "false"}
_IDEMPOTENT: Final = {"acks": "all", "enable.idempotence": "true"}


def write_everything(address: str, judge: Judge, partitions: Sequence[Partition], name: str) -> None:
    """Write batches with every codec, of idempotent, transactional and plain producers, of librdkafka and of Java.

    name: makes transactional ids and values those of this call
    """
    for codec in CODECS:
        values = [f"{name} {codec} {number} ".encode() * (1 + number % 7) for number in range(40)]
        _write_with_librdkafka(address, partitions, values, {**_IDEMPOTENT, "compression.type": codec})
        _write_with_java(address, judge, partitions, values, {**_IDEMPOTENT, "compression.type": codec})
        _transact_with_librdkafka(address, partitions, values, codec, f"{name}-{codec}")
    _write_with_librdkafka(address, partitions, values, {**_PLAIN, "compression.type": "lz4"})
    _write_with_java(address, judge, partitions, values, {**_PLAIN, "compression.type": "none"})
    _transact_with_java(address, judge, partitions, values, "zstd", f"{name}-java")


def _write_with_librdkafka(address: str, partitions: Sequence[Partition], values: list[bytes], config: Config) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 2, **QUICK, **config})
    _send(producer, partitions, values)
    assert producer.flush(PATIENCE_S) == 0


def _send(producer: Producer, partitions: Sequence[Partition], values: list[bytes]) -> None:
    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error

    for topic, number in partitions:
        for at, value in enumerate(values):
            headers: dict[str, str | bytes | None] | None = {"h": value[:5], "none": None} if at % 3 else None
            key = None if at % 2 else b"%d" % at
            producer.produce(topic, value, key, number, headers=headers, on_delivery=delivered)


def _write_with_java(
    address: str, judge: Judge, partitions: Sequence[Partition], values: list[bytes], config: dict[str, str]
) -> None:
    with JavaClients(judge, address).producer(**config) as producer:
        for topic, number in partitions:
            pairs = [(None if at % 2 else b"%d" % at, value) for at, value in enumerate(values)]
            producer.send_pairs(topic, number, pairs, [("h", b"1"), ("none", None)])


def _transact_with_librdkafka(
    address: str, partitions: Sequence[Partition], values: list[bytes], codec: str, name: str
) -> None:
    config: Config = {"transactional.id": name, "compression.type": codec}
    producer = Producer({"bootstrap.servers": address, **QUICK, **config})
    producer.init_transactions(PATIENCE_S)
    for is_committed in (True, False):
        producer.begin_transaction()
        _send(producer, partitions, values)
        if is_committed:
            producer.commit_transaction(PATIENCE_S)
        else:
            assert producer.flush(PATIENCE_S) == 0  # or nothing is written of it
            producer.abort_transaction(PATIENCE_S)


def _transact_with_java(
    address: str, judge: Judge, partitions: Sequence[Partition], values: list[bytes], codec: str, name: str
) -> None:
    with JavaClients(judge, address).producer(**{"transactional.id": name, "compression.type": codec}) as producer:
        producer.init()
        for is_committed in (True, False):
            producer.begin()
            for topic, number in partitions:
                producer.send(topic, number, values)
            producer.commit() if is_committed else producer.abort()

"""Consumers that read partitions into a history."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Sequence
from threading import Event
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.faults.client_threads import PATIENCE_S
from tests.faults.values import decode
from tests.history import Client, Partition

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    from kafka import KafkaConsumer
    from kafka import TopicPartition as KafkaTopicPartition

Config = dict[str, str | int | float | bool]

logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it tells of every attempt to reach a killed broker

QUICK: Final[Config] = {
    "log_level": 0,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 5,
}
CONSUMER: Final[Config] = {"group.id": "none", "enable.auto.commit": False, "enable.partition.eof": False}


def follow_with_librdkafka(
    address: str, client: Client, partitions: Sequence[Partition], stop: Event, *, turns: int = 0
) -> None:
    """Read committed records from the start on, as they come; after so many polls, from the start again."""
    consumer = Consumer({"bootstrap.servers": address, "auto.offset.reset": "earliest", **CONSUMER, **QUICK})
    polls = 0
    while not stop.is_set():
        if polls == 0:
            consumer.assign([TopicPartition(topic, number, 0) for topic, number in partitions])
            client.assign(dict.fromkeys(partitions, 0))
        poll = client.poll()
        poll.succeed(by_partition(consumer.consume(500, 0.1)))
        polls = polls + 1 if polls + 1 != turns else 0
    consumer.close()


def follow_with_kafka_python(address: str, client: Client, partitions: Sequence[Partition], stop: Event) -> None:
    """Read committed records from the start on, as they come."""
    consumer = KafkaConsumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        reconnect_backoff_ms=5,
        reconnect_backoff_max_ms=50,
        retry_backoff_ms=5,
    )
    assigned = [KafkaTopicPartition(topic, number) for topic, number in partitions]
    consumer.assign(assigned)
    for each in assigned:
        consumer.seek(each, 0)
    client.assign(dict.fromkeys(partitions, 0))
    while not stop.is_set():
        poll = client.poll()
        batches = consumer.poll(100)
        poll.succeed(
            {
                (where.topic, where.partition): [(each.offset, decode(each.value)) for each in records]
                for where, records in batches.items()
            }
        )
    consumer.close()


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
    """Read partitions from start to end into a history. Returns their start offsets, as they are after that."""
    settings = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}  # retention may go on meanwhile
    consumer = Consumer({"bootstrap.servers": address, **CONSUMER, **settings})
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
    starts = {each: consumer.get_watermark_offsets(TopicPartition(*each), PATIENCE_S)[0] for each in starts}
    consumer.close()
    return starts

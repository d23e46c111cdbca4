"""Clients that we did not write produce to the broker, and get the same records back."""

from __future__ import annotations

import asyncio
import uuid
import warnings
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition

from octavo.broker.wire.api_keys import API_VERSIONS
from octavo.server.serving import Server
from tests.server.conversation import Conversation

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as KafkaTopicPartition

Sent = list[tuple[bytes | None, bytes | None]]
RECORDS: Sent = [(b"key", b"value"), (None, b""), (b"", None), (b"k" * 300, b"v" * 100_000)] + [
    (b"%d" % number, b"x" * number) for number in range(500)
]
PATIENCE_S = 60
_SHARE_APIS = (76, 77, 78, 79, 90, 91, 92)  # ShareGroupHeartbeat to ShareAcknowledge, and those for offsets
_STREAMS_APIS = (88, 89)


def with_librdkafka(address: str, topic: str) -> Sent:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "compression.type": "lz4"})
    for key, value in RECORDS:
        producer.produce(topic, value, key, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * len(RECORDS)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: Sent = []
    while len(found) < len(RECORDS):
        for message in consumer.consume(len(RECORDS) - len(found), PATIENCE_S):
            assert message.error() is None
            found.append((message.key(), message.value()))
    consumer.close()
    return found


def with_kafka_python(address: str, topic: str) -> Sent:
    producer = KafkaProducer(bootstrap_servers=address, acks="all")
    futures = [producer.send(topic, value, key) for key, value in RECORDS]
    offsets = [future.get(PATIENCE_S).offset for future in futures]
    assert offsets == list(range(len(RECORDS)))
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=PATIENCE_S * 1000)
    partition = KafkaTopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found: Sent = []
    for message in consumer:
        found.append((message.key, message.value))
        if len(found) == len(RECORDS):
            break
    consumer.close()
    return found


def with_aiokafka(address: str, topic: str) -> Sent:
    async def run() -> Sent:
        producer = AIOKafkaProducer(bootstrap_servers=address, compression_type="gzip")
        await producer.start()
        futures = [await producer.send(topic, value, key) for key, value in RECORDS]
        await asyncio.gather(*futures)
        await producer.stop()
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
        await consumer.start()
        found = [(message.key, message.value) for message in [await consumer.getone() for _ in RECORDS]]
        await consumer.stop()
        return found

    return asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


@pytest.mark.parametrize("client", [with_librdkafka, with_kafka_python, with_aiokafka])
def test_a_client_gets_back_what_it_produced(client: Callable[[str, str], Sent], served: Server) -> None:
    assert client(served.bootstrap_servers, f"records-{uuid.uuid4()}") == RECORDS


def test_a_consumer_that_waits_gets_a_record_as_soon_as_it_is_produced(served: Server) -> None:
    topic, address = f"awaited-{uuid.uuid4()}", served.bootstrap_servers
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    producer.produce(topic, b"first")
    assert producer.flush(PATIENCE_S) == 0
    waits = {"fetch.wait.max.ms": 60_000, "socket.timeout.ms": 70_000}
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False, **waits})
    consumer.assign([TopicPartition(topic, 0, 1)])
    assert consumer.poll(0.5) is None  # the broker holds the fetch now
    producer.produce(topic, b"second")
    assert producer.flush(PATIENCE_S) == 0
    message = consumer.poll(PATIENCE_S)
    assert message is not None
    assert message.value() == b"second"
    consumer.close()


def test_a_share_consumer_is_told_nothing_as_the_page_says(served: Server) -> None:
    """Mend 1.4 of clients: it waits without a word, for APIs that are not listed. docs/compatibility.md names that."""
    served.directory.create_topic("shared")
    consumer = ShareConsumer({"bootstrap.servers": served.bootstrap_servers, "group.id": "g", "log_level": 0})
    consumer.subscribe(["shared"])
    assert list(consumer.poll(1)) == []
    with Conversation(served.bootstrap_servers) as talk:
        listed = {each.api_key for each in talk.raw_answer(API_VERSIONS, 3, {}).api_keys}
    assert not listed & {*_SHARE_APIS, *_STREAMS_APIS}

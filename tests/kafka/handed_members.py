"""Real clients that stay while brokers hand over, whoever serves at their address: `Members`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import confluent_kafka

from tests.kafka.handed_over import until
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge

MEMBER_TOPIC: Final = "m"
MEMBER_PARTITIONS: Final = 2
_EACH: Final = 20  # records in each partition for one broker

Received = dict[int, list[bytes]]


class Members:
    """Two groups of one member each: Java with the consumer protocol, librdkafka with the classic one."""

    def __init__(self, judge: Judge, address: str) -> None:
        self._address: Final = address
        self._sent: Final = _nothing()
        config = {"group.protocol": "consumer"}
        self._java: Final = JavaClients(judge, address).member("java", MEMBER_TOPIC, **config)
        self._librdkafka: Final = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "librdkafka",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,  # of brokers that are away
            }
        )
        self._librdkafka.subscribe([MEMBER_TOPIC])
        self._received: Final = {"java": _nothing(), "librdkafka": _nothing()}

    def go_on(self) -> None:
        """Send records: each member gets each of them once, in order, and commits what it has."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self._address, "enable.idempotence": True})
        for partition, values in self._sent.items():
            for number in range(len(values), len(values) + _EACH):
                values.append(b"%d" % number)
                producer.produce(MEMBER_TOPIC, values[-1], partition=partition)
        assert producer.flush(60) == 0
        readers: dict[str, Callable[[], list[tuple[int, bytes]]]] = {
            "java": self._java.poll,
            "librdkafka": self._poll,
        }
        for name, poll in readers.items():
            received = self._received[name]

            def has_all(received: Received = received, poll: Callable[[], list[tuple[int, bytes]]] = poll) -> bool:
                for partition, value in poll():
                    received[partition].append(value)
                return sum(map(len, received.values())) >= sum(map(len, self._sent.values()))

            until(has_all, f"{name} has {received}")
            assert received == self._sent, name

    def _poll(self) -> list[tuple[int, bytes]]:
        message = self._librdkafka.poll(0.1)
        if message is None or message.error() is not None:
            return []
        self._librdkafka.commit(message=message, asynchronous=False)
        partition, value = message.partition(), message.value()
        assert partition is not None
        assert value is not None
        return [(partition, value)]

    def close(self) -> None:
        self._java.close()
        self._librdkafka.close()


def _nothing() -> Received:
    return {partition: [] for partition in range(MEMBER_PARTITIONS)}

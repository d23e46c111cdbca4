"""What `octavo groups` is asked to do, of Octavo's broker and of Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Partition

from tests.server.commands import Commands

Protocol = Literal["classic", "consumer"]
PROTOCOLS: Final[tuple[Protocol, ...]] = ("classic", "consumer")
TOPIC: Final = "visits"
RECORDS: Final = 10  # in each of two partitions, one a second
PATIENCE: Final = 300  # polls of a tenth of a second


def fill(run: Commands) -> None:
    """Create the topic, and another that is empty."""
    for topic in (TOPIC, "empty"):
        assert run("topics", "--create", "--topic", topic, "--partitions", "2").code == 0
    lines = (
        json.dumps({"partition": partition, "value": str(number), "timestamp": 1_000_000 + 1000 * number})
        for partition in (0, 1)
        for number in range(RECORDS)
    )
    assert run("produce", TOPIC, "--json", "--keep-partitions", given="\n".join(lines) + "\n").code == 0


@contextmanager
def member(address: str, group: str, protocol: Protocol, **settings: str) -> Iterator[Consumer]:
    """A member of a group that has both partitions, and has committed offset 3 of the first one."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "visitor",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    try:
        consumer.subscribe([TOPIC])
        for _ in range(PATIENCE):
            consumer.poll(0.1)
            if len(consumer.assignment()) == 2:
                break
        consumer.commit(offsets=[Partition(TOPIC, 0, 3)], asynchronous=False)
        yield consumer
    finally:
        consumer.close()


def rows(run: Commands, *words: str) -> list[dict[str, Any]]:
    """What a command prints as JSON."""
    told = run("groups", *words, "--json")
    assert told.code == 0, told.err
    return [json.loads(line) for line in told.out.splitlines()]

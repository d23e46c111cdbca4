"""Read a partition with kafka-python's consumer."""

from __future__ import annotations

from typing import Any

from tests.kafka.broker import Broker
from tests.kafka.client import KafkaConsumer, TopicPartition
from tests.kafka.serving import Seen


def read_by_client(broker: Broker, partition: tuple[str, int], isolation: str = "read_uncommitted") -> list[Seen]:
    """What kafka-python's consumer gets, from the first offset to the last that there is for it."""
    consumer: Any = KafkaConsumer(bootstrap_servers=broker.address, group_id=None, isolation_level=isolation)
    place = TopicPartition(*partition)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    end = consumer.end_offsets([place])[place]
    seen: list[Seen] = []
    while consumer.position(place) < end:
        for records in consumer.poll(5_000).values():
            for each in records:
                headers = tuple((key, value or b"") for key, value in each.headers)
                seen.append(Seen(each.offset, each.timestamp, each.key, each.value, headers))
    consumer.close()
    return seen

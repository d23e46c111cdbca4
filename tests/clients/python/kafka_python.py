"""kafka-python: `KafkaPython`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.clients.driver import (
    LARGEST_RECORD,
    PATIENCE_S,
    CannotDo,
    ClientError,
    ConsumeSettings,
    ProduceSettings,
    Record,
    Start,
)
from tests.clients.python.kafka_python_groups import KafkaPythonGroups, KafkaPythonTransactions
from tests.clients.python.kafka_python_records import consumed, translated

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas in an old way
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, NewTopic


class KafkaPython:
    """A driver of kafka-python."""

    def __init__(self, address: str) -> None:
        self._address: Final = address
        self._producers: Final[dict[str, KafkaProducer]] = {}
        self._admin: Final = KafkaAdminClient(bootstrap_servers=address)
        self._asking: Final = KafkaConsumer(bootstrap_servers=address)  # for offsets
        self.groups: Final = KafkaPythonGroups(address, self._admin)
        self.transactions: Final = KafkaPythonTransactions(address, self.groups)

    def produce(self, topic: str, records: Sequence[Record], settings: ProduceSettings) -> list[int]:
        if any(value is None for record in records for _, value in record.headers):
            raise CannotDo("it refuses headers whose value is null")

        def send() -> list[int]:
            producer = self._producer(settings)
            sent = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            delivered = [future.get(PATIENCE_S) for future in sent]
            return [-1 if settings.get("acks") == "0" else each.offset for each in delivered]

        return translated(send)

    def consume(
        self, topic: str, partition: int, start: Start, count: int, settings: ConsumeSettings
    ) -> Iterator[Record]:
        wait_ms = settings.get("max_wait_ms", 500)
        consumer = KafkaConsumer(
            bootstrap_servers=self._address,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=settings.get("partition_bytes", 1 << 20),
            fetch_max_wait_ms=wait_ms,
            request_timeout_ms=wait_ms + 40_000,
            consumer_timeout_ms=PATIENCE_S * 1000,
        )
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        try:
            if start == "earliest":
                consumer.seek_to_beginning(place)
            elif start == "latest":
                consumer.seek_to_end(place)
            else:
                consumer.seek(place, start)
            for _ in range(count):
                yield consumed(translated(lambda: next(consumer)))
        finally:
            consumer.close()

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(topic, partition)
        found = translated(lambda: self._asking.offsets_for_times({place: timestamp_ms}))[place]
        return None if found is None else int(found.offset)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        earliest = translated(lambda: self._asking.beginning_offsets([place]))[place]
        return earliest, translated(lambda: self._asking.end_offsets([place]))[place]

    def partitions(self, topic: str, *, may_create: bool) -> int:
        consumer = KafkaConsumer(bootstrap_servers=self._address, allow_auto_create_topics=may_create)
        try:
            return len(translated(lambda: consumer.partitions_for_topic(topic)) or ())
        finally:
            consumer.close()

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        translated(lambda: self._admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=dict(config))]))

    def list_topics(self) -> list[str]:
        return list(translated(self._admin.list_topics))

    def add_partitions(self, topic: str, total: int) -> None:
        translated(lambda: self._admin.create_partitions({topic: total}))

    def delete_topic(self, topic: str) -> None:
        translated(lambda: self._admin.delete_topics([topic]))

    def describe_config(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = translated(lambda: self._admin.describe_configs([resource], config_filter="all"))
        return {name: entry["value"] for name, entry in found["topic"][topic].items()}

    def replace_config(self, topic: str, config: Mapping[str, str]) -> None:
        raise CannotDo("its AlterConfigs has the other settings added")

    def change_config(self, topic: str, config: Mapping[str, str | None]) -> None:
        changes = {name: ("DELETE", None) if value is None else ("SET", value) for name, value in config.items()}
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, changes)
        answers = translated(lambda: self._admin.alter_configs([resource], incremental=True))
        if error := re.match(r"\[Error (\d+)\]", answers["topic"][topic]):  # it tells no more than this text
            raise ClientError(int(error[1]), answers["topic"][topic])

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = TopicPartition(topic, partition)
        deleted = translated(lambda: self._admin.delete_records({place: before}))
        return int(deleted[place]["low_watermark"])

    def close(self) -> None:
        self.groups.close()
        for each in (*self._producers.values(), self._admin, self._asking):
            each.close()

    # Inside

    def _producer(self, settings: ProduceSettings) -> KafkaProducer:
        known = self._producers.get(repr(settings))
        if known is None:
            acks = settings.get("acks")
            compression = settings.get("compression", "none")
            named = {
                "acks": acks if acks in ("all", None) else int(acks),
                "enable_idempotence": settings.get("idempotence"),
                "batch_size": settings.get("batch_bytes"),
                "compression_type": None if compression == "none" else compression,
            }
            known = KafkaProducer(
                bootstrap_servers=self._address,
                max_request_size=LARGEST_RECORD,
                **{name: value for name, value in named.items() if value is not None},
            )
            self._producers[repr(settings)] = known
        return known

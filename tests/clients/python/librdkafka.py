"""confluent-kafka, which is librdkafka: `Librdkafka`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.clients.driver import (
    LARGEST_RECORD,
    PATIENCE_S,
    ClientError,
    ConsumeSettings,
    ProduceSettings,
    Record,
    Start,
)
from tests.clients.python.librdkafka_groups import LibrdkafkaGroups, LibrdkafkaTransactions
from tests.clients.python.librdkafka_records import consumed

_STARTS: Final[dict[str, int]] = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
_UNKNOWN_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


class Librdkafka:
    """A driver of confluent-kafka."""

    def __init__(self, address: str) -> None:
        # Quick to come back when the broker is killed.
        self._common: Final[dict[str, Any]] = {
            "bootstrap.servers": address,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._producers: Final[dict[str, Producer]] = {}
        self._admin: Final = AdminClient(self._common)
        self.groups: Final = LibrdkafkaGroups(self._common, self._admin)
        self.transactions: Final = LibrdkafkaTransactions(self._common, self.groups)

    def produce(self, topic: str, records: Sequence[Record], settings: ProduceSettings) -> list[int]:
        producer = self._producer(settings)
        offsets = [-1] * len(records)
        errors: list[KafkaError] = []

        def delivered(number: int, error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offset = message.offset()
                offsets[number] = offset if offset is not None and offset >= 0 else -1

        for number, record in enumerate(records):
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                headers=list(record.headers),
                timestamp=record.timestamp_ms or 0,
                on_delivery=partial(delivered, number),
            )
        if producer.flush(PATIENCE_S):
            raise ClientError(None, f"not delivered within {PATIENCE_S} s")
        if errors:
            raise ClientError(errors[0].code(), errors[0].str())
        return offsets

    def consume(
        self, topic: str, partition: int, start: Start, count: int, settings: ConsumeSettings
    ) -> Iterator[Record]:
        consumer = self._consumer(settings)
        try:
            consumer.list_topics(topic, PATIENCE_S)  # else it waits for half a second until it asks for offsets again
            consumer.assign([TopicPartition(topic, partition, _STARTS[start] if isinstance(start, str) else start)])
            for _ in range(count):
                message = consumer.poll(PATIENCE_S)
                if message is None:
                    raise ClientError(None, f"no record within {PATIENCE_S} s")
                error = message.error()
                if error is not None:
                    raise ClientError(error.code(), error.str())
                yield consumed(message)
        finally:
            consumer.close()

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        found = self._list_offset(topic, partition, OffsetSpec.for_timestamp(timestamp_ms))
        return None if found < 0 else found

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        return (
            self._list_offset(topic, partition, OffsetSpec.earliest()),
            self._list_offset(topic, partition, OffsetSpec.latest()),
        )

    def partitions(self, topic: str, *, may_create: bool) -> int:
        consumer = self._consumer({}, **{"allow.auto.create.topics": may_create})
        try:
            found = consumer.list_topics(topic, PATIENCE_S).topics[topic]
            if found.error is not None and found.error.code() not in _UNKNOWN_TOPIC:
                raise ClientError(found.error.code(), found.error.str())
            return len(found.partitions)
        finally:
            consumer.close()

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        _only(self._admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config))]))

    def list_topics(self) -> list[str]:
        return list(self._admin.list_topics(timeout=PATIENCE_S).topics)

    def add_partitions(self, topic: str, total: int) -> None:
        _only(self._admin.create_partitions([NewPartitions(topic, total)]))

    def delete_topic(self, topic: str) -> None:
        _only(self._admin.delete_topics([topic]))

    def describe_config(self, topic: str) -> dict[str, str]:
        entries = _only(self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        return {name: entry.value for name, entry in entries.items()}

    def replace_config(self, topic: str, config: Mapping[str, str]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it would rather change settings
            _only(self._admin.alter_configs([ConfigResource(ResourceType.TOPIC, topic, dict(config))]))

    def change_config(self, topic: str, config: Mapping[str, str | None]) -> None:
        kinds = AlterConfigOpType
        changes = [
            ConfigEntry(name, value, incremental_operation=kinds.DELETE if value is None else kinds.SET)
            for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
        _only(self._admin.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        deleted = _only(self._admin.delete_records([TopicPartition(topic, partition, before)]))
        return int(deleted.low_watermark)

    def close(self) -> None:
        self.groups.close()
        self._producers.clear()

    # Inside

    def _producer(self, settings: ProduceSettings) -> Producer:
        known = self._producers.get(repr(settings))
        if known is None:
            named = {
                "compression.type": settings.get("compression"),
                "acks": settings.get("acks"),
                "enable.idempotence": settings.get("idempotence"),
                "batch.size": settings.get("batch_bytes"),
            }
            config = self._common | {name: value for name, value in named.items() if value is not None}
            known = Producer(config | {"linger.ms": 1, "message.max.bytes": LARGEST_RECORD})
            self._producers[repr(settings)] = known
        return known

    def _consumer(self, settings: ConsumeSettings, **more: object) -> Consumer:
        config = {"group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        named = {
            "max.partition.fetch.bytes": settings.get("partition_bytes"),
            "fetch.wait.max.ms": settings.get("max_wait_ms"),
            "socket.timeout.ms": settings.get("max_wait_ms", 0) + 60_000,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return Consumer(self._common | config | given | more)

    def _list_offset(self, topic: str, partition: int, which: OffsetSpec) -> int:
        asked = {TopicPartition(topic, partition): which}
        found = _only(self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED))
        return int(found.offset)


def _only(futures: Mapping[Any, Future[Any]]) -> Any:
    """Return what the admin client found of the one thing that it was asked for."""
    (future,) = futures.values()
    try:
        return future.result(PATIENCE_S)
    except KafkaException as error:
        raise ClientError(error.args[0].code(), error.args[0].str()) from error

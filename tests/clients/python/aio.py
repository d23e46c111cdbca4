"""aiokafka: `Aiokafka`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from tests.clients.driver import (
    LARGEST_RECORD,
    CannotDo,
    ClientError,
    ConsumeSettings,
    ProduceSettings,
    Record,
    Start,
)
from tests.clients.python.aio_groups import AiokafkaGroups, AiokafkaTransactions
from tests.clients.python.aio_loop import Loop, consumed

_Result = TypeVar("_Result")


class Aiokafka:
    """A driver of aiokafka, whose event loop runs in a thread."""

    def __init__(self, address: str) -> None:
        self._address: Final = address
        self._producers: Final[dict[str, AIOKafkaProducer]] = {}
        self._known_admin: AIOKafkaAdminClient | None = None
        self._loop: Final = Loop()
        self.groups: Final = AiokafkaGroups(address, self._loop, self._admin)
        self.transactions: Final = AiokafkaTransactions(address, self._loop, self.groups)

    def produce(self, topic: str, records: Sequence[Record], settings: ProduceSettings) -> list[int]:
        return self._loop.run(self._produce(topic, records, settings))

    async def _produce(self, topic: str, records: Sequence[Record], settings: ProduceSettings) -> list[int]:
        producer = self._producers.get(repr(settings))
        if producer is None:
            producer = AIOKafkaProducer(**self._producer_options(settings))
            await producer.start()
            self._producers[repr(settings)] = producer
        sent = [
            await producer.send(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=list(record.headers),
            )
            for record in records
        ]
        delivered = await asyncio.gather(*sent)
        return [-1 if each is None else each.offset for each in delivered]  # None: it was not acknowledged

    def consume(
        self, topic: str, partition: int, start: Start, count: int, settings: ConsumeSettings
    ) -> Iterator[Record]:
        consumer = self._loop.run(self._start_consumer(TopicPartition(topic, partition), start, settings))
        try:
            for _ in range(count):
                yield consumed(self._loop.run(consumer.getone()))
        finally:
            self._loop.run(consumer.stop())

    async def _start_consumer(self, place: TopicPartition, start: Start, settings: ConsumeSettings) -> AIOKafkaConsumer:
        wait_ms = settings.get("max_wait_ms", 500)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._address,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=settings.get("partition_bytes", 1 << 20),
            fetch_max_wait_ms=wait_ms,
            request_timeout_ms=wait_ms + 40_000,
        )
        await consumer.start()
        consumer.assign([place])
        if start == "earliest":
            await consumer.seek_to_beginning(place)
        elif start == "latest":
            await consumer.seek_to_end(place)
        else:
            consumer.seek(place, start)
        return consumer

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(topic, partition)

        async def ask(consumer: AIOKafkaConsumer) -> int | None:
            found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
            return None if found is None else int(found.offset)

        return self._loop.run(self._with_consumer(ask))

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)

        async def ask(consumer: AIOKafkaConsumer) -> tuple[int, int]:
            return (await consumer.beginning_offsets([place]))[place], (await consumer.end_offsets([place]))[place]

        return self._loop.run(self._with_consumer(ask))

    async def _with_consumer(self, ask: Callable[[AIOKafkaConsumer], Awaitable[_Result]]) -> _Result:
        consumer = AIOKafkaConsumer(bootstrap_servers=self._address)
        await consumer.start()
        try:
            return await ask(consumer)
        finally:
            await consumer.stop()

    def partitions(self, topic: str, *, may_create: bool) -> int:
        if not may_create:
            raise CannotDo("it always allows the broker to create topics")
        (found,) = self._loop.run(self._admin().describe_topics([topic]))
        return len(found["partitions"])

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=dict(config))
        _check(self._loop.run(self._admin().create_topics([new])).topic_errors)

    def list_topics(self) -> list[str]:
        return list(self._loop.run(self._admin().list_topics()))

    def add_partitions(self, topic: str, total: int) -> None:
        _check(self._loop.run(self._admin().create_partitions({topic: NewPartitions(total)})).topic_errors)

    def delete_topic(self, topic: str) -> None:
        _check(self._loop.run(self._admin().delete_topics([topic])).topic_error_codes)

    def describe_config(self, topic: str) -> dict[str, str]:
        answers = self._loop.run(self._admin().describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))
        ((code, message, _, _, entries),) = answers[0].resources
        _check([(topic, code, message)])
        return {name: value for name, value, *_ in entries}

    def replace_config(self, topic: str, config: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(config))
        answers = self._loop.run(self._admin().alter_configs([resource]))
        _check([(name, code, message) for code, message, _, name in answers[0].resources])

    def change_config(self, topic: str, config: Mapping[str, str | None]) -> None:
        raise CannotDo("it has no incremental changes of settings")

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = TopicPartition(topic, partition)
        deleted = self._loop.run(self._admin().delete_records({place: RecordsToDelete(before)}))
        return int(deleted[place])

    def close(self) -> None:
        self.groups.close()
        for producer in self._producers.values():
            self._loop.run(producer.stop())
        if self._known_admin is not None:
            self._loop.run(self._known_admin.close())
        self._loop.close()

    # Inside

    def _admin(self) -> AIOKafkaAdminClient:
        async def start() -> AIOKafkaAdminClient:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
            await admin.start()
            return admin

        if self._known_admin is None:
            self._known_admin = self._loop.run(start())
        return self._known_admin

    def _producer_options(self, settings: ProduceSettings) -> dict[str, Any]:
        acks = settings.get("acks")
        compression = settings.get("compression", "none")
        named = {
            "acks": acks if acks in ("all", None) else int(acks),
            "enable_idempotence": settings.get("idempotence"),
            "max_batch_size": settings.get("batch_bytes", LARGEST_RECORD),  # a record has to fit into a batch
            "compression_type": None if compression == "none" else compression,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return {"bootstrap_servers": self._address, "max_request_size": LARGEST_RECORD, **given}


def _check(errors: Sequence[tuple[Any, ...]]) -> None:
    """Raise the error that a broker has answered for the one thing that it was asked for."""
    ((_, code, *message),) = errors
    if code:
        raise ClientError(code, f"{for_code(code).__name__}: {message}")

"""Groups and transactions of confluent-kafka: `LibrdkafkaGroups`, `LibrdkafkaTransactions`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients.driver import PATIENCE_S, CannotDo, ClientError, Record
from tests.clients.group_driver import (
    HEARTBEAT_MS,
    POLL_S,
    SESSION_MS,
    GroupDescription,
    MemberSettings,
    Place,
    Polled,
)
from tests.clients.python.librdkafka_records import consumed

_Result = TypeVar("_Result")
_FENCED: Final = "Static consumer fenced by other consumer with same group.instance.id"
_AT_ONCE: Final = 500  # records that a poll takes at most


class LibrdkafkaGroups:
    """Members that are consumers of confluent-kafka."""

    def __init__(self, common: Mapping[str, Any], admin: AdminClient) -> None:
        self._common: Final = common
        self._admin: Final = admin
        self._numbers: Final = itertools.count()
        self.members: Final[dict[int, Consumer]] = {}
        self._revoked: Final[set[int]] = set()  # members that have lost partitions in the last poll

    def join(self, group: str, topics: Sequence[str], settings: MemberSettings) -> int:
        protocol = settings.get("protocol", "classic")
        named: dict[str, object] = {
            "group.id": group,
            "group.protocol": protocol,
            "group.instance.id": settings.get("instance_id"),
            "isolation.level": "read_committed" if settings.get("read_committed") else "read_uncommitted",
            "enable.auto.commit": settings.get("auto_commit", False),
            "auto.commit.interval.ms": 100,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 500 if settings.get("pattern") else 300_000,
        }
        if protocol == "classic":  # in the other the broker decides
            named |= {
                "session.timeout.ms": settings.get("session_ms", SESSION_MS),
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "partition.assignment.strategy": settings.get("assignor", "range"),
            }
        if settings.get("pattern") == "server" and protocol == "classic":
            raise CannotDo("patterns that the broker resolves are of the consumer protocol")
        number = next(self._numbers)
        given = {name: value for name, value in named.items() if value is not None}
        consumer = Consumer({**self._common, **given})
        names = [f"^{topic}" for topic in topics] if settings.get("pattern") else list(topics)
        consumer.subscribe(names, on_revoke=lambda *_: self._revoked.add(number))
        self.members[number] = consumer
        return number

    def poll(self, member: int) -> Polled:
        consumer = self.members[member]
        records: list[Record] = []
        self._revoked.discard(member)
        while (
            member not in self._revoked
            and len(records) < _AT_ONCE
            and (message := consumer.poll(0 if records else POLL_S)) is not None
        ):
            error = message.error()
            if error is None:
                records.append(consumed(message))
            elif error.code() == KafkaError._FATAL:  # it tells the broker's error only as text
                raise ClientError(KafkaError.FENCED_INSTANCE_ID if _FENCED in error.str() else None, error.str())
        return Polled(records, frozenset((each.topic, each.partition) for each in consumer.assignment()))

    def commit(self, member: int, *, wait: bool) -> None:
        consumer = self.members[member]
        if member in self._revoked:  # else it would commit only what it has kept
            raise ClientError(KafkaError.REBALANCE_IN_PROGRESS, "partitions were revoked in the last poll")
        try:
            if wait:
                _check(translated(lambda: consumer.commit(asynchronous=False)))
            else:
                translated(consumer.commit)
        except ClientError as error:
            if error.code != KafkaError._NO_OFFSET:  # nothing was consumed since
                raise

    def leave(self, member: int) -> None:
        self.members.pop(member).close()

    def list_groups(self) -> list[str]:
        return [each.group_id for each in _value(self._admin.list_consumer_groups()).valid]

    def describe_group(self, group: str) -> GroupDescription:
        found = _value(self._admin.describe_consumer_groups([group])[group])
        assignments = [
            frozenset((each.topic, each.partition) for each in member.assignment.topic_partitions)
            for member in found.members
        ]
        return GroupDescription(found.state.name.lower().replace("_", ""), assignments)

    def committed(self, group: str) -> dict[Place, int]:
        found = _value(self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group])
        return {(each.topic, each.partition): each.offset for each in found.topic_partitions}

    def set_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        changed = _value(self._admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])[group])
        _check(changed.topic_partitions)

    def delete_offsets(self, group: str, place: Place) -> None:
        raise CannotDo("its Python package has no call for it")

    def delete_group(self, group: str) -> None:
        _value(self._admin.delete_consumer_groups([group])[group])

    def close(self) -> None:
        """Close all members."""
        for member in list(self.members):
            self.leave(member)


class LibrdkafkaTransactions:
    """Transactional producers of confluent-kafka."""

    def __init__(self, common: Mapping[str, Any], groups: LibrdkafkaGroups) -> None:
        self._common: Final = common
        self._groups: Final = groups
        self._numbers: Final = itertools.count()
        self._producers: Final[dict[int, Producer]] = {}

    def open(self, transactional_id: str, timeout_ms: int) -> int:
        config = {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms, "linger.ms": 1}
        producer = Producer({**self._common, **config})
        translated(lambda: producer.init_transactions(PATIENCE_S))
        number = next(self._numbers)
        self._producers[number] = producer
        return number

    def begin(self, producer: int) -> None:
        translated(self._producers[producer].begin_transaction)

    def send(self, producer: int, topic: str, records: Sequence[Record]) -> None:
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                errors.append(error)

        for record in records:
            translated(
                lambda record=record: self._producers[producer].produce(  # type: ignore[misc]  # a loop's own value
                    topic, record.value, record.key, partition=record.partition, on_delivery=delivered
                )
            )
        self._producers[producer].flush(PATIENCE_S)
        if errors:
            raise ClientError(errors[0].code(), errors[0].str())

    def send_offsets(self, producer: int, member: int) -> None:
        consumer = self._groups.members[member]
        positions = consumer.position(consumer.assignment())
        metadata = consumer.consumer_group_metadata()
        translated(lambda: self._producers[producer].send_offsets_to_transaction(positions, metadata, PATIENCE_S))

    def end(self, producer: int, *, commit: bool) -> None:
        ending = self._producers[producer]
        translated(lambda: (ending.commit_transaction if commit else ending.abort_transaction)(PATIENCE_S))

    def close(self, producer: int) -> None:
        del self._producers[producer]


def translated(call: Callable[[], _Result]) -> _Result:
    """Call something of confluent-kafka, and raise its errors as all drivers do."""
    try:
        return call()
    except KafkaException as error:
        raise ClientError(error.args[0].code(), error.args[0].str()) from error


def _check(places: Sequence[TopicPartition]) -> None:
    """Raise the first error of partitions."""
    for each in places:
        if each.error is not None:
            raise ClientError(each.error.code(), each.error.str())


def _value(future: Future[Any]) -> Any:
    return translated(lambda: future.result(PATIENCE_S))

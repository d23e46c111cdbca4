"""Groups and transactions of kafka-python: `KafkaPythonGroups`, `KafkaPythonTransactions`."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Final

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
from tests.clients.python.kafka_python_records import consumed, translated

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas in an old way
    import kafka.errors
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.base import MemberState
    from kafka.structs import OffsetAndMetadata

_JOIN_S: Final = 1.0  # it begins to join anew if a poll is over before it has joined
_ASSIGNORS: Final = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class KafkaPythonGroups:
    """Members that are consumers of kafka-python."""

    def __init__(self, address: str, admin: KafkaAdminClient) -> None:
        self._address: Final = address
        self._admin: Final = admin
        self._numbers: Final = itertools.count()
        self.members: Final[dict[int, KafkaConsumer]] = {}

    def join(self, group: str, topics: Sequence[str], settings: MemberSettings) -> int:
        if settings.get("protocol") == "consumer":
            raise CannotDo("it does not have the consumer protocol")
        if settings.get("tells_if_fenced"):
            raise CannotDo("it only logs it")
        consumer = KafkaConsumer(
            bootstrap_servers=self._address,
            group_id=group,
            group_instance_id=settings.get("instance_id"),
            isolation_level="read_committed" if settings.get("read_committed") else "read_uncommitted",
            enable_auto_commit=settings.get("auto_commit", False),
            auto_commit_interval_ms=100,
            auto_offset_reset="earliest",
            session_timeout_ms=settings.get("session_ms", SESSION_MS),
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=50,
            metadata_max_age_ms=500 if settings.get("pattern") else 300_000,
            partition_assignment_strategy=[_ASSIGNORS[settings.get("assignor", "range")]],
        )
        if settings.get("pattern"):
            consumer.subscribe(pattern=f"^{topics[0]}$")
        else:
            consumer.subscribe(list(topics))
        number = next(self._numbers)
        self.members[number] = consumer
        return number

    def poll(self, member: int) -> Polled:
        consumer = self.members[member]
        wait_s = POLL_S
        if consumer.group_metadata().state is not MemberState.STABLE:
            wait_s = _JOIN_S
            # Nor does it always begin anew: if it joined because of a new topic, and has assigned that as the leader,
            # it sees no reason any more to join, or to take its assignment.
            consumer._coordinator.request_rejoin()
        polled = translated(lambda: consumer.poll(int(wait_s * 1000)))
        records = [consumed(record) for each in polled.values() for record in each]
        return Polled(records, frozenset((place.topic, place.partition) for place in consumer.assignment()))

    def commit(self, member: int, *, wait: bool) -> None:
        consumer = self.members[member]
        translated(lambda: consumer.commit(timeout_ms=PATIENCE_S * 1000) if wait else consumer.commit_async())

    def leave(self, member: int) -> None:
        self.members.pop(member).close()

    def list_groups(self) -> list[str]:
        return [each["group_id"] for each in translated(self._admin.list_groups)]

    def describe_group(self, group: str) -> GroupDescription:
        found = translated(lambda: self._admin.describe_groups([group]))[group]
        assignments = [
            frozenset(
                (each["topic"], partition)
                for each in member["member_assignment"]["assigned_partitions"]
                for partition in each["partitions"]
            )
            for member in found["members"]
        ]
        return GroupDescription(found["group_state"].lower(), assignments)

    def committed(self, group: str) -> dict[Place, int]:
        found = translated(lambda: self._admin.list_group_offsets({group: None}))[group]
        return {(place.topic, place.partition): told.offset for place, told in found.items()}

    def set_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        given = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
        for error in translated(lambda: self._admin.alter_group_offsets(group, given)).values():
            _check(error)

    def delete_offsets(self, group: str, place: Place) -> None:
        asked = [TopicPartition(*place)]
        for error in translated(lambda: self._admin.delete_group_offsets(group, asked)).values():
            _check(error)

    def delete_group(self, group: str) -> None:
        told = translated(lambda: self._admin.delete_groups([group]))[group]
        if told != "OK":  # else it is the name of a class of its errors
            _check(getattr(kafka.errors, told))

    def close(self) -> None:
        """Close all members."""
        for member in list(self.members):
            self.leave(member)


class KafkaPythonTransactions:
    """Transactional producers of kafka-python."""

    def __init__(self, address: str, groups: KafkaPythonGroups) -> None:
        self._address: Final = address
        self._groups: Final = groups
        self._numbers: Final = itertools.count()
        self._producers: Final[dict[int, KafkaProducer]] = {}

    def open(self, transactional_id: str, timeout_ms: int) -> int:
        producer = KafkaProducer(
            bootstrap_servers=self._address,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=PATIENCE_S * 1000,
        )
        translated(producer.init_transactions)
        number = next(self._numbers)
        self._producers[number] = producer
        return number

    def begin(self, producer: int) -> None:
        translated(self._producers[producer].begin_transaction)

    def send(self, producer: int, topic: str, records: Sequence[Record]) -> None:
        sending = self._producers[producer]

        def send() -> None:
            sent = [sending.send(topic, each.value, each.key, partition=each.partition) for each in records]
            for future in sent:
                future.get(PATIENCE_S)

        translated(send)

    def send_offsets(self, producer: int, member: int) -> None:
        consumer = self._groups.members[member]
        places = consumer.assignment()
        offsets = {place: OffsetAndMetadata(consumer.position(place), "", -1) for place in places}
        sending = self._producers[producer]
        translated(lambda: sending.send_offsets_to_transaction(offsets, consumer.group_metadata()))

    def end(self, producer: int, *, commit: bool) -> None:
        ending = self._producers[producer]
        translated(ending.commit_transaction if commit else ending.abort_transaction)

    def close(self, producer: int) -> None:
        self._producers.pop(producer).close(PATIENCE_S)


def _check(error: type[kafka.errors.KafkaError]) -> None:
    """Raise an error that it has told as a class."""
    if error.errno:
        raise ClientError(error.errno, error.__name__)

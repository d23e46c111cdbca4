"""Groups and transactions of aiokafka: `AiokafkaGroups`, `AiokafkaTransactions`."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import CommitFailedError, for_code

from tests.clients.driver import CannotDo, ClientError, Record
from tests.clients.group_driver import (
    HEARTBEAT_MS,
    POLL_S,
    SESSION_MS,
    GroupDescription,
    MemberSettings,
    Place,
    Polled,
)
from tests.clients.python.aio_loop import Loop, consumed


class _Polled(ConsumerRebalanceListener):  # type: ignore[misc]  # it is not typed
    """Where a member stands. It is rebalanced between polls, and then nothing that was polled may be committed."""

    def __init__(self) -> None:
        self.positions: Final[dict[TopicPartition, int]] = {}
        self.is_revoked = False

    def add(self, found: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> None:
        self.positions.update({place: records[-1].offset + 1 for place, records in found.items()})

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self.positions.clear()
        self.is_revoked |= bool(revoked)  # it is called before the first assignment, too

    async def on_partitions_assigned(self, assigned: object) -> None:
        """Do nothing."""


class AiokafkaGroups:
    """Members that are consumers of aiokafka, which join in the background."""

    def __init__(self, address: str, loop: Loop, admin: Callable[[], AIOKafkaAdminClient]) -> None:
        self._address: Final = address
        self._loop: Final = loop
        self._admin: Final = admin
        self._numbers: Final = itertools.count()
        self.members: Final[dict[int, AIOKafkaConsumer]] = {}
        self._polled: Final[dict[int, _Polled]] = {}

    def join(self, group: str, topics: Sequence[str], settings: MemberSettings) -> int:
        if settings.get("protocol") == "consumer":
            raise CannotDo("it does not have the consumer protocol")
        if settings.get("tells_if_fenced"):
            raise CannotDo("it does not know FENCED_INSTANCE_ID")
        if settings.get("assignor") == "cooperative-sticky":
            raise CannotDo("it does not have cooperative rebalances")
        number = next(self._numbers)
        self._polled[number] = polled = _Polled()
        self.members[number] = self._loop.run(self._start(group, topics, settings, polled))
        return number

    async def _start(
        self, group: str, topics: Sequence[str], settings: MemberSettings, polled: _Polled
    ) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
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
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        await consumer.start()  # if it had subscribed before, this would wait for the other members
        if settings.get("pattern"):
            consumer.subscribe(pattern=f"^{topics[0]}$", listener=polled)
        else:
            consumer.subscribe(list(topics), listener=polled)
        return consumer

    def poll(self, member: int) -> Polled:
        consumer = self.members[member]

        async def poll() -> Polled:
            self._polled[member].is_revoked = False
            found = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
            self._polled[member].add(found)
            records = [consumed(record) for each in found.values() for record in each]
            return Polled(records, frozenset((place.topic, place.partition) for place in consumer.assignment()))

        return self._loop.run(poll())

    def commit(self, member: int, *, wait: bool) -> None:
        consumer, polled = self.members[member], self._polled[member]

        async def commit() -> None:
            if polled.is_revoked:
                raise CommitFailedError("the partitions were revoked since the last poll")
            if polled.positions:
                await consumer.commit(dict(polled.positions))

        (self._loop.run if wait else self._loop.begin)(commit())

    def leave(self, member: int) -> None:
        self._loop.run(self.members.pop(member).stop())

    def list_groups(self) -> list[str]:
        return [group for group, *_ in self._loop.run(self._admin().list_consumer_groups())]

    def describe_group(self, group: str) -> GroupDescription:
        (answer,) = self._loop.run(self._admin().describe_consumer_groups([group]))
        ((code, _, state, _, _, members, *_),) = answer.groups
        if code:
            raise ClientError(code, for_code(code).__name__)
        assignments = [
            frozenset(
                (topic, partition)
                for topic, partitions in ConsumerProtocolMemberAssignment.decode(assignment).assignment
                for partition in partitions
            )
            for *_, assignment in members
        ]
        return GroupDescription(state.lower(), assignments)

    def committed(self, group: str) -> dict[Place, int]:
        found = self._loop.run(self._admin().list_consumer_group_offsets(group))
        return {(place.topic, place.partition): told.offset for place, told in found.items()}

    def set_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        raise CannotDo("its admin client has no call for it")

    def delete_offsets(self, group: str, place: Place) -> None:
        raise CannotDo("its admin client has no call for it")

    def delete_group(self, group: str) -> None:
        raise CannotDo("its admin client has no call for it")

    def close(self) -> None:
        """Close all members."""
        for member in list(self.members):
            self.leave(member)


class AiokafkaTransactions:
    """Transactional producers of aiokafka."""

    def __init__(self, address: str, loop: Loop, groups: AiokafkaGroups) -> None:
        self._address: Final = address
        self._loop: Final = loop
        self._groups: Final = groups
        self._numbers: Final = itertools.count()
        self._producers: Final[dict[int, AIOKafkaProducer]] = {}

    def open(self, transactional_id: str, timeout_ms: int) -> int:
        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._address,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        number = next(self._numbers)
        self._producers[number] = self._loop.run(start())
        return number

    def begin(self, producer: int) -> None:
        self._loop.run(self._producers[producer].begin_transaction())

    def send(self, producer: int, topic: str, records: Sequence[Record]) -> None:
        sending = self._producers[producer]

        async def send() -> None:
            sent = [await sending.send(topic, each.value, each.key, partition=each.partition) for each in records]
            await asyncio.gather(*sent)

        self._loop.run(send())

    def send_offsets(self, producer: int, member: int) -> None:
        consumer, sending = self._groups.members[member], self._producers[producer]

        async def send() -> None:
            offsets = {place: await consumer.position(place) for place in consumer.assignment()}
            await sending.send_offsets_to_transaction(offsets, consumer._group_id)  # it does not tell in another way

        self._loop.run(send())

    def end(self, producer: int, *, commit: bool) -> None:
        ending = self._producers[producer]
        self._loop.run(ending.commit_transaction() if commit else ending.abort_transaction())

    def close(self, producer: int) -> None:
        self._loop.run(self._producers.pop(producer).stop())

"""A consumer group that runs on a log in memory, and what its members ask."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from octavo.coordinator.groups.classic.requests import (
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    LeavingMember,
    SyncRequest,
)
from octavo.coordinator.groups.consumer.group import ConsumerGroup
from octavo.coordinator.groups.consumer.requests import ConsumerHeartbeatAnswer, ConsumerHeartbeatRequest
from octavo.coordinator.groups.group_shard import GroupShard
from octavo.coordinator.groups.topics import Topic
from octavo.schemas.consumer_offsets.serde import read_group_key
from octavo.schemas.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartition
from octavo.schemas.versioned import read_number, read_value, write_value
from tests.unit.coordinator.groups.running import Running

GROUP = "g"
INTERVAL_MS, SESSION_MS, REBALANCE_MS = 1_000, 45_000, 60_000


class Known:
    """Topics of a test."""

    def __init__(self, **counts: int) -> None:
        self.version = 0
        self._topics: dict[str, Topic] = {}
        self._numbers = 0
        for name, count in counts.items():
            self.put(name, count)

    def put(self, name: str, count: int) -> Topic:
        self._numbers += 1
        known = self._topics.get(name)
        topic = Topic(name, UUID(int=self._numbers) if known is None else known.topic_id, count)
        self._topics[name] = topic
        self.version += 1
        return topic

    def drop(self, name: str) -> None:
        del self._topics[name]
        self.version += 1

    def names(self) -> Iterable[str]:
        return list(self._topics)

    def by_name(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def by_id(self, topic_id: UUID) -> Topic | None:
        return next((topic for topic in self._topics.values() if topic.topic_id == topic_id), None)

    def __getitem__(self, name: str) -> UUID:
        return self._topics[name].topic_id


class Consumers(Running):
    """A group, and what its members ask."""

    def __init__(self, topics: Known | None = None, **config: Any) -> None:
        self.topics = Known(t=4) if topics is None else topics
        self.own_config: dict[str, dict[str, str]] = {}
        super().__init__(**{"group_initial_rebalance_delay_ms": 0, **config})
        self.do(GroupShard.loaded)

    def _new(self) -> GroupShard:
        return GroupShard(
            lambda: self.config,
            lambda: f"id{next(self._ids)}",
            self.topics,
            lambda group: self.own_config.get(group, {}),
        )

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def state(self) -> str:
        return self.group.state.value

    def beat(self, member_id: str, epoch: int, *, fails: bool = False, **more: Any) -> ConsumerHeartbeatAnswer:
        owned = more.pop("owned", None)
        if owned is not None:
            more["topic_partitions"] = {self.topics[name]: partitions for name, partitions in owned.items()}
        request = ConsumerHeartbeatRequest(GROUP, member_id, epoch, client_id="client", client_host="/h", **more)
        answer: ConsumerHeartbeatAnswer = self.do(lambda shard: shard.consumer.heartbeat(request), fails=fails)
        return answer

    def join(self, member_id: str, *topics: str, **more: Any) -> ConsumerHeartbeatAnswer:
        names = more.pop("subscribed_topic_names", topics or ("t",))
        return self.beat(
            member_id, 0, owned={}, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=names, **more
        )

    def has(self, answer: ConsumerHeartbeatAnswer) -> dict[str, list[int]] | None:
        """What a member is told to have, by names."""
        if answer.assignment is None:
            return None
        found = {topic_id: self.topics.by_id(topic_id) for topic_id in answer.assignment}
        return {topic.name: list(answer.assignment[topic_id]) for topic_id, topic in found.items() if topic is not None}

    def kinds(self, since: int = 0) -> list[int]:
        """The key types of records; those of tombstones are negative."""
        records = [entry for entry, _ in self.log[since:] if not isinstance(entry, bool)]
        return [read_number(key) * (1 if value is not None else -1) for key, value in records]

    def keys(self, since: int = 0) -> list[Any]:
        return [read_group_key(entry[0]) for entry, _ in self.log[since:] if not isinstance(entry, bool)]

    def snapshot(self) -> Any:
        group = self.group
        return (
            group.group_epoch,
            group.assignment_epoch,
            group.metadata_hash,
            dict(group.members),
            dict(group.targets),
            dict(group.static_members),
            dict(group.resolved),
            dict(group._holders),
            dict(group._names),
            dict(group._regexes),
        )

    def reload_and_compare(self) -> None:
        before = self.snapshot()
        self.reload()
        assert self.snapshot() == before


class Waiting(list[Any]):
    """A request; empty until its answer comes."""

    def __call__(self, answer: Any) -> None:
        self.append(answer)

    @property
    def answer(self) -> Any:
        assert len(self) == 1
        return self[0]


def subscription(*topics: str, owned: dict[str, tuple[int, ...]] | None = None) -> bytes:
    partitions = tuple(TopicPartition(topic=topic, partitions=each) for topic, each in (owned or {}).items())
    return write_value(ConsumerProtocolSubscription(topics=topics, owned_partitions=partitions), 1)


def assignment(**partitions: tuple[int, ...]) -> bytes:
    each = tuple(TopicPartition(topic=topic, partitions=numbers) for topic, numbers in partitions.items())
    return write_value(ConsumerProtocolAssignment(assigned_partitions=each), 1)


def assigned(message: bytes) -> dict[str, tuple[int, ...]]:
    read = read_value(ConsumerProtocolAssignment, message)
    return {each.topic: each.partitions for each in read.assigned_partitions}


class Mixed(Consumers):
    """A group with members of both protocols."""

    def classic_join(self, member_id: str = "", **more: Any) -> Waiting:
        waiting = Waiting()
        metadata = subscription(*more.pop("topics", ("t",)), owned=more.pop("owned", None))
        protocols = more.pop("protocols", (("range", metadata),))
        request = JoinRequest(
            GROUP, member_id, more.pop("protocol_type", "consumer"), protocols, 10_000, REBALANCE_MS, **more
        )
        self.do(lambda shard: shard.join(waiting, request))
        self.pass_time(0)  # the delay of the first generation is over
        return waiting

    def classic_sync(self, member_id: str, generation_id: int, **more: Any) -> Any:
        waiting = Waiting()
        self.do(lambda shard: shard.sync(waiting, SyncRequest(GROUP, member_id, generation_id, **more)))
        return waiting.answer

    def classic_beat(self, member_id: str, generation_id: int, **more: Any) -> Any:
        return self.do(partial(_beat, HeartbeatRequest(GROUP, member_id, generation_id, **more)))

    def classic_leave(self, *members: LeavingMember) -> Any:
        return self.do(lambda shard: shard.leave(LeaveRequest(GROUP, members)))

    def stable_classic(self, **partitions: tuple[int, ...]) -> str:
        """Have a classic group with one member, in generation 1."""
        member_id: str = self.classic_join().answer.member_id
        assert self.classic_join(member_id).answer.leader == member_id
        self.classic_sync(member_id, 1, assignments={member_id: assignment(**partitions)})
        return member_id


def _beat(request: HeartbeatRequest, shard: GroupShard) -> Any:
    return shard.heartbeat(request)

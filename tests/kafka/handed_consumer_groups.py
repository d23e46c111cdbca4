"""Groups of the consumer protocol in every state that a hand-over may find them in: `CONSUMERS`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from octavo.broker.wire import api_keys
from octavo.errors import ErrorCode
from tests.kafka.handed_classic_groups import Stable, assignment
from tests.kafka.handed_over import GROUP_TOPIC, LONG_MS, Answers, Case, offset_of, until
from tests.server.group_client import GroupClient
from tests.server.test_consumer_groups import beat


class Consumers(Case):
    """A group of the consumer protocol."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.epochs: Final[dict[str, int]] = {}
        self.owned: Final[dict[str, list[dict[str, Any]]]] = {}  # what members were told to have

    def beat(self, address: str, who: str, **fields: Any) -> SimpleNamespace:
        with GroupClient(address, self.name) as client:
            answer = beat(client, who, fields.pop("epoch", self.epochs.get(who, 0)), **fields)
        if answer.error_code == ErrorCode.NONE:
            self.epochs[who] = answer.member_epoch
        if answer.assignment is not None:
            self.owned[who] = [
                {"topic_id": each.topic_id, "partitions": list(each.partitions)}
                for each in answer.assignment.topic_partitions
            ]
        return answer

    def enter(self, address: str, who: str, **fields: Any) -> SimpleNamespace:
        common = {"rebalance_timeout_ms": LONG_MS, "subscribed_topic_names": [GROUP_TOPIC], "topic_partitions": []}
        return self.beat(address, who, epoch=0, **(common | fields))

    def told(self, address: str, who: str, **fields: Any) -> tuple[object, ...]:
        """Have a member send a heartbeat, and return what it is told."""
        return told(self.beat(address, who, **fields))

    def commit(self, address: str, who: str, offset: int, epoch: int | None = None) -> int:
        with GroupClient(address, self.name) as client:
            return client.commit(GROUP_TOPIC, offset, who, self.epochs[who] if epoch is None else epoch)

    def described(self, address: str) -> object:
        with GroupClient(address, self.name) as client:
            content = {"group_ids": [self.name], "include_authorized_operations": False}
            [group] = client.ask(api_keys.CONSUMER_GROUP_DESCRIBE, 1, **content).groups
        members = [
            (
                self.name_of(each.member_id),
                each.instance_id,
                each.member_epoch,
                each.member_type,
                list(each.subscribed_topic_names),
                each.subscribed_topic_regex,
                numbers(each.assignment),
                numbers(each.target_assignment),
            )
            for each in group.members
        ]
        head = (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name)
        return (*head, sorted(members, key=repr))

    def name_of(self, member_id: str) -> str:
        return member_id

    def looks(self, address: str) -> Answers:
        """What everybody sees, and what members are told that have another epoch."""
        yield self.described(address)
        yield offset_of(address, self.name, GROUP_TOPIC)
        for who, epoch in list(self.epochs.items()):
            for wrong in (epoch + 1, epoch - 1):
                yield self.told(address, who, epoch=wrong)[0]
                yield self.commit(address, who, 6, wrong)
            yield who, self.commit(address, who, 7)
        yield offset_of(address, self.name, GROUP_TOPIC)

    def settle(self, address: str, *members: str) -> Answers:
        """Have members send heartbeats, each with what it was told to have, until they are told nothing new."""
        for _ in range(3):
            for who in members:
                yield who, self.told(address, who, topic_partitions=self.owned.get(who))
        yield self.described(address)


def numbers(assigned: SimpleNamespace) -> list[int]:
    return sorted(number for topic in assigned.topic_partitions for number in topic.partitions)


def told(answer: SimpleNamespace) -> tuple[object, ...]:
    assigned = None if answer.assignment is None else numbers(answer.assignment)
    return answer.error_code, answer.error_message, answer.member_epoch, assigned


class EmptyConsumers(Consumers):
    def prepare(self, address: str) -> None:
        self.enter(address, "a")
        assert self.commit(address, "a", 5) == ErrorCode.NONE
        epoch = self.epochs["a"]
        self.beat(address, "a", epoch=-1)
        self.epochs["a"] = epoch

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        yield self.told(address, "a")
        yield told(self.enter(address, "new"))
        yield from self.settle(address, "new")


class StableConsumers(Consumers):
    def prepare(self, address: str) -> None:
        self.enter(address, "a")
        self.enter(address, "b")
        list(self.settle(address, "a", "b"))
        assert self.commit(address, "a", 5) == ErrorCode.NONE

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        yield from self.settle(address, "a", "b")
        yield self.told(address, "b", epoch=-1)
        yield from self.settle(address, "a")


class Reconciling(Consumers):
    """The first member has not yet given up what the second one gets."""

    def prepare(self, address: str) -> None:
        self.enter(address, "a")
        assert self.commit(address, "a", 5) == ErrorCode.NONE
        self.enter(address, "b")
        assert numbers(self.beat(address, "a").assignment) == [0]

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        yield from self.settle(address, "b")
        yield from self.settle(address, "a", "b")


class ByPattern(Consumers):
    def prepare(self, address: str) -> None:
        self.enter(address, "a", subscribed_topic_names=[], subscribed_topic_regex="^g$")
        until(lambda: self._has_all(address), self.name)

    def _has_all(self, address: str) -> bool:
        *_, seen = self.settle(address, "a")  # the pattern may be looked at by another thread
        return ", [0, 1], [0, 1])" in str(seen)

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        yield from self.settle(address, "a")


class StaticConsumerGone(Consumers):
    """It says that it comes back (-2), and does so under another id."""

    def prepare(self, address: str) -> None:
        self.enter(address, "a", instance_id="fixed")
        assert self.commit(address, "a", 5) == ErrorCode.NONE
        epoch = self.epochs["a"]
        assert self.beat(address, "a", epoch=-2, instance_id="fixed").error_code == ErrorCode.NONE
        self.epochs["a"] = epoch

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        yield told(self.enter(address, "again", instance_id="fixed"))
        yield self.told(address, "a", instance_id="fixed")
        yield from self.settle(address, "again")


class Migrating(Consumers):
    """A group of the classic protocol that a member of the consumer protocol has joined."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.old: Final = Stable(name)

    def name_of(self, member_id: str) -> str:
        return "old" if member_id in self.old.ids.values() else member_id

    def prepare(self, address: str) -> None:
        self.old.alone(address)
        self.enter(address, "new")
        with self.old.client(address) as client:
            until(
                lambda: client.heartbeat(self.old.ids["a"], self.old.generation) == ErrorCode.REBALANCE_IN_PROGRESS,
                self.name,
            )

    def go_on(self, address: str) -> Answers:
        yield from self.looks(address)
        with self.old.client(address) as client:
            yield client.heartbeat(self.old.ids["a"], self.old.generation)
            yield client.commit(GROUP_TOPIC, 8, self.old.ids["a"], self.old.generation)
            self.old.enter(client, "a")
            yield self.old.generation, self.old.sync(client, "a")
            yield from self.settle(address, "new")
            yield client.heartbeat(self.old.ids["a"], self.old.generation)
        yield self.told(address, "new", epoch=-1)  # and it is a classic group again
        yield self.old.state(address)
        with self.old.client(address) as client:
            yield client.heartbeat(self.old.ids["a"], self.old.generation)
            self.old.enter(client, "a")
            yield self.old.generation, self.old.sync(client, "a", a=assignment(GROUP_TOPIC, 0, 1))
        yield self.old.described(address)


CONSUMERS: Final[tuple[type[Case], ...]] = (
    EmptyConsumers,
    StableConsumers,
    Reconciling,
    ByPattern,
    StaticConsumerGone,
    Migrating,
)

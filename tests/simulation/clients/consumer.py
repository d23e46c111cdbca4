"""A member of a group of the consumer protocol (KIP-848): `ConsumerMember`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from octavo.broker.wire.api_keys import CONSUMER_GROUP_HEARTBEAT
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode
from tests.simulation.clients.committing import Commits
from tests.simulation.machine import CONSUMER_BEAT_MS, CONSUMER_SESSION_MS
from tests.simulation.wire import Ask, Membership
from tests.simulation.world import Client, Doing, World

CONSUMER_REBALANCE_MS: Final = 20_000
SUBSCRIPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "a": frozenset({"a"}),
    "a,b": frozenset({"a", "b"}),
    "[ab]": frozenset({"a", "b"}),  # a regular expression
}
Owned = set[tuple[bytes, int]]  # topic ids and partitions
_OUT: Final = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_INSTANCE_ID,
)


class ConsumerMember(Client):
    """Sends heartbeats, gives back what it shall not have any more, and takes what it is given.

    If a request to join came after later heartbeats, the member would never be told its assignment. In Kafka it is so,
    too: the answer that has it goes to who asks no more.
    """

    patience_ms = 4_000
    is_in_order = True

    def __init__(self, world: World, name: str, group: str, *, instance: str | None = None) -> None:
        self.name = name
        self.group: Final = group
        self.owned: Owned = set()
        self.is_alive = True
        self.subscription = world.random.choice(list(SUBSCRIPTIONS))
        self._world: Final = world
        self._instance: Final = instance
        self._assignor: Final = world.random.choice((None, "uniform", "range"))
        self.member_id = str(world.new_id())
        self._epoch = 0
        self._tells_all = True  # after an error, and when it joins
        self._commits: Final = Commits(world, group)

    @property
    def membership(self) -> Membership:
        """Who it is in the group, as far as it knows."""
        return Membership(self.group, self.member_id, self._epoch, self._instance)

    def run(self) -> Doing:
        world = self._world
        while self.is_alive:
            if not self.is_settling and self._epoch > 0:
                if world.happens(0.05):
                    yield from self._leave()
                    continue
                if world.happens(0.03):
                    self.is_alive = False  # without a word
                    return
                if world.happens(0.05):
                    self.subscription = world.random.choice(list(SUBSCRIPTIONS))
                    self._tells_all = True
                if world.happens(0.03):
                    yield world.random.randrange(CONSUMER_SESSION_MS, CONSUMER_SESSION_MS * 3 // 2)
                if world.happens(0.5):
                    late = world.happens(0.2) and self._epoch > 1
                    yield from self._commits.commit(self.member_id, self._epoch - late, self._instance)
                if world.happens(0.2):
                    yield from self._commits.fetch()
            answer = yield self._heartbeat()
            must_tell = self._take(answer)
            if not self.is_settling and world.happens(0.1):
                yield world.random.randrange(CONSUMER_REBALANCE_MS // 2)
            yield world.random.randrange(100) if must_tell else CONSUMER_BEAT_MS

    def _heartbeat(self) -> Ask:
        content: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self._epoch,
            "instance_id": self._instance,
            "rack_id": None,
            "rebalance_timeout_ms": CONSUMER_REBALANCE_MS if self._tells_all else -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": self._assignor if self._tells_all else None,
            "topic_partitions": by_topic(self.owned),
        }
        if self._tells_all:
            is_regex = "[" in self.subscription
            content["subscribed_topic_names"] = [] if is_regex else self.subscription.split(",")
            content["subscribed_topic_regex"] = self.subscription if is_regex else ""
        return Ask(CONSUMER_GROUP_HEARTBEAT, 1, content)

    def _take(self, answer: Struct | None) -> bool:
        """Do what an answer says. Returns whether the coordinator has to be told soon."""
        if answer is None:
            self._tells_all = True
            return True
        if answer.error_code in _OUT:
            self._epoch, self.owned, self._tells_all = 0, set(), True
            if answer.error_code == ErrorCode.FENCED_INSTANCE_ID:
                self.is_alive = False
            return True
        if answer.error_code:
            self._tells_all = True
            return False
        self._epoch, self._tells_all = answer.member_epoch, False
        if answer.assignment is None:
            return False
        before = self.owned
        self.owned = assigned(answer)
        return self.owned != before

    def _leave(self) -> Doing:
        is_coming_back = self._instance is not None and self._world.happens(0.6)
        content = self._heartbeat().content
        content |= {"member_epoch": -2 if is_coming_back else -1, "topic_partitions": []}
        old = (self.member_id, self._epoch)
        yield Ask(CONSUMER_GROUP_HEARTBEAT, 1, content)
        self._epoch, self.owned, self._tells_all = 0, set(), True
        if self._world.happens(0.3):
            yield from self._commits.commit(*old, self._instance)
        if not is_coming_back and self._world.happens(0.5):
            self.is_alive = False
        elif self._world.happens(0.5):
            self.member_id = str(self._world.new_id())
        yield self._world.random.randrange(5_000)


def by_topic(owned: Owned) -> list[dict[str, Any]]:
    """Return partitions as a request has them."""
    topics: dict[bytes, list[int]] = {}
    for topic, partition in sorted(owned):
        topics.setdefault(topic, []).append(partition)
    return [{"topic_id": topic, "partitions": partitions} for topic, partitions in topics.items()]


def assigned(answer: Struct) -> Owned:
    """Return the partitions of an answer."""
    return {
        (bytes(topic.topic_id), partition)
        for topic in answer.assignment.topic_partitions
        for partition in topic.partitions
    }

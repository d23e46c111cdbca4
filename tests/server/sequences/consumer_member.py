"""A member of a group of the consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from tests.server.sequences.member import REBALANCE_MS
from tests.server.sequences.script import Script


class ConsumerMember:
    """A member that chooses its id itself. It remembers its epoch."""

    def __init__(self, script: Script, name: str, instance: str | None = None) -> None:
        self.script: Final = script
        self.client: Final = script.client(name)
        self.id = name
        self.instance = instance
        self.epoch = 0

    def _content(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "group_id": self.script.group,
            "member_id": self.id,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
            "rack_id": None,
            "rebalance_timeout_ms": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": None,
            **changes,
        }

    def _noted(self, answer: Any) -> Any:
        if isinstance(answer, SimpleNamespace) and answer.error_code == 0:
            self.epoch = answer.member_epoch
        return answer

    def join(self, *topics: str, version: int = 1, **changes: Any) -> Any:
        """Join with a subscription to topics of the run, or another."""
        return self.beat(version=version, **(self.joining(*topics) | changes))

    def joining(self, *topics: str) -> dict[str, Any]:
        """Return a request to join."""
        first = {
            "member_epoch": 0,
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": [self.script.named(each) for each in topics or ("t",)],
            "topic_partitions": [],
        }
        return self._content(first)

    def beat(self, *, version: int = 1, **changes: Any) -> Any:
        """Send a heartbeat, with what has changed."""
        return self._noted(self.client.ask(keys.CONSUMER_GROUP_HEARTBEAT, version, self._content(changes)))

    def owning(self, partitions: Mapping[str, Sequence[int]], **changes: Any) -> Any:
        """Send a heartbeat that tells what the member has."""
        owned = [
            {"topic_id": self.script.topic_id(name), "partitions": list(each)} for name, each in partitions.items()
        ]
        return self.beat(topic_partitions=owned, **changes)

    def beat_until_assigned(self, partitions: int, **changes: Any) -> Any:
        """Send heartbeats until this many partitions are assigned."""

        def is_so(answer: Any) -> bool:
            if answer.error_code == 0:
                self.epoch = answer.member_epoch
            told = answer.assignment
            return told is not None and sum(len(each.partitions) for each in told.topic_partitions) == partitions

        full = {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": []} | changes
        return self._noted(self.client.until(is_so, keys.CONSUMER_GROUP_HEARTBEAT, 1, self._content(full)))

    def leave(self, epoch: int = -1) -> Any:
        """Leave: for good, or for a while (-2)."""
        return self.client.ask(keys.CONSUMER_GROUP_HEARTBEAT, 1, self._content({"member_epoch": epoch}))

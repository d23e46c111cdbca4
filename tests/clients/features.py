"""The rows of the matrix: `FEATURES`, and `@feature`, which adds one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Final, NamedTuple

from octavo.log.metadata.image import Topic
from tests.clients.brokers import Broker
from tests.clients.driver import PATIENCE_S, Driver, Record
from tests.clients.program import Program
from tests.clients.proxy import Proxy
from tests.clients.stored import stored_records, stored_topic
from tests.kafka.client import metadata

_NUMBERS: Final = itertools.count()


@dataclass
class Stage:
    """What a scenario has to play with."""

    client: Driver  # the client of the cell
    other: Driver  # another client, for what is not under test
    broker: Broker  # to which all are connected
    proxy: Proxy  # by which clients reach the strict broker
    apart: Callable[[], Program]  # connects the client of the cell in a process of its own, which may be killed
    strict: Callable[[], Stage]  # sets the same up on a broker that creates no topics on the way, and may be killed
    name: str = field(default_factory=lambda: f"topic-{next(_NUMBERS)}")  # of a topic that is not there yet

    def as_other(self) -> Stage:
        """Return the same stage on which the other client plays."""
        return replace(self, client=self.other)

    def new_topic(self, partitions: int = 1, **config: str) -> str:
        """Create a topic by the other client, and return its name. Settings are written with `_` for `.`."""
        self.other.create_topic(self.name, partitions, {name.replace("_", "."): config[name] for name in config})
        self.await_partitions(partitions)
        return self.name

    def await_partitions(self, count: int) -> None:
        """Wait until every broker tells that the topic has so many partitions; 0: that there is no such topic.

        Brokers follow what the controller decides, and it answers clients before they do. Not all clients ask again.
        """
        eventually(lambda: all(told_partitions(each, self.name) == count for each in self.broker.addresses))

    def stored(self, partition: int = 0) -> list[Record]:
        """Return what the broker's files have of the topic."""
        return stored_records(self.broker.folder, self.name, partition)

    def stored_topic(self) -> Topic | None:
        """Return what the broker's files have of the topic's partitions and settings; None if there is none."""
        return stored_topic(self.broker.folder, self.name)

    def stored_settings(self) -> dict[str, str]:
        """Return the settings that the topic has of its own."""
        topic = self.stored_topic()
        assert topic is not None
        return dict(topic.config)

    def delete_topic(self) -> None:
        """Delete the topic by the other client, and wait until no broker tells of it."""
        self.other.delete_topic(self.name)
        self.await_partitions(0)


def told_partitions(address: str, topic: str) -> int:
    """Return how many partitions a topic has, as a broker tells."""
    host, _, port = address.rpartition(":")
    return sum(len(each.partitions) for each in metadata(int(port), host=host).topics if each.name == topic)


def eventually(is_true: Callable[[], bool]) -> None:
    """Ask until it is true: brokers tell clients of a change a moment after it was made."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline


Scenario = Callable[[Stage], None]


class Feature(NamedTuple):
    """A row: what it is called, what is shown, and the function that shows it."""

    group: str
    name: str
    meaning: str
    scenario: Scenario


FEATURES: Final[dict[str, Feature]] = {}


def feature(group: str, name: str, meaning: str) -> Callable[[Scenario], Scenario]:
    """Add a row, below those that are there."""

    def add(scenario: Scenario) -> Scenario:
        assert name not in FEATURES
        FEATURES[name] = Feature(group, name, meaning, scenario)
        return scenario

    return add


def load() -> None:
    """Import the modules of scenarios, in the order of the rows."""
    for module in ("producing", "records", "consuming", "topics", "groups", "group_admin", "transactions"):
        import_module(f"tests.clients.scenarios.{module}")

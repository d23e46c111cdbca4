"""One classic group whose members are different clients, which come and go while records are produced."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final

import pytest

from tests.clients.cells import Connections
from tests.clients.clients import CLIENTS
from tests.clients.driver import ClientUnavailable, Driver
from tests.clients.team import Load, Member, Team
from tests.kafka.releases import KafkaUnavailable, do_without
from tests.soak.plugin import Soak

_NAMES: Final = ("confluent-kafka", "aiokafka", "kafka-python", "Apache Kafka, Java")
_PARTITIONS: Final = 12  # one to four members have as many each


def _come_and_go(connections: Connections, changes: Iterable[int], seed: int) -> None:
    """Have all clients join, then have some leave and join again; whoever leads then, all go by its assignment."""
    choice = random.Random(seed)
    try:
        drivers: dict[str, Driver] = {name: connections.stage(CLIENTS[name]).client for name in _NAMES}
    except (KafkaUnavailable, ClientUnavailable) as reason:
        do_without(reason)
    stage = connections.stage(CLIENTS["confluent-kafka"])
    stage.new_topic(_PARTITIONS)
    with Team(stage) as team:
        load = Load(team, _PARTITIONS)
        members: dict[str, Member] = {}
        for name in choice.sample(_NAMES, len(_NAMES)):
            members[name] = team.join(drivers[name])
            load.until_shared()
        for _ in changes:
            name = choice.choice(_NAMES)
            if name not in members:
                members[name] = team.join(drivers[name])
            elif len(members) > 1:
                team.leave(members.pop(name))
            load.until_shared()
        load.finish()


def test_members_of_different_clients_come_and_go(octavo: Connections, java: str) -> None:
    _come_and_go(octavo, changes=range(4), seed=1)


@pytest.mark.soak(45)
def test_members_of_different_clients_come_and_go_for_long(octavo: Connections, java: str, soak: Soak) -> None:
    _come_and_go(octavo, changes=soak.rounds(), seed=soak.seed)


@pytest.mark.soak(45)
def test_they_do_so_with_apache_kafka(apache_kafka: Connections, soak: Soak) -> None:
    _come_and_go(apache_kafka, changes=soak.rounds(), seed=soak.seed)

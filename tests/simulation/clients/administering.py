"""Somebody who looks at groups and transactions, and deletes and enlarges things: `Administrator`."""

from __future__ import annotations

from typing import Final

from octavo.broker.wire.api_keys import (
    CONSUMER_GROUP_DESCRIBE,
    CREATE_PARTITIONS,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_TRANSACTIONS,
    OFFSET_DELETE,
)
from tests.simulation.wire import Ask
from tests.simulation.world import Client, Doing, World

_MOST_PARTITIONS: Final = 4


class Administrator(Client):
    """Does one thing or another from time to time."""

    def __init__(self, world: World, groups: list[str]) -> None:
        self.name = "administrator"
        self.partitions = 2  # of topic "a", as many as were asked for
        self._world: Final = world
        self._groups: Final = groups

    def run(self) -> Doing:
        random = self._world.random
        while not self.is_settling:
            yield random.randrange(12_000)
            group = random.choice(self._groups)
            if self._world.happens(0.2):
                self.partitions = min(self.partitions + 1, _MOST_PARTITIONS)
                topic = {"name": "a", "count": self.partitions, "assignments": None}
                yield Ask(CREATE_PARTITIONS, 3, {"topics": [topic], "timeout_ms": 1_000, "validate_only": False})
                continue
            topics = [{"name": "a", "partitions": [{"partition_index": random.randrange(2)}]}]
            asks = [
                Ask(DELETE_GROUPS, 2, {"groups_names": [group]}),
                Ask(OFFSET_DELETE, 0, {"group_id": group, "topics": topics}),
                Ask(LIST_GROUPS, 5, {"states_filter": [], "types_filter": []}),
                Ask(DESCRIBE_GROUPS, 6, {"groups": [group], "include_authorized_operations": False}),
                Ask(CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [group], "include_authorized_operations": False}),
                Ask(LIST_TRANSACTIONS, 1, {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}),
                Ask(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["t1", "t2"]}),
            ]
            yield random.choice(asks)

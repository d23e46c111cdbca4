"""Somebody who looks at groups, transactions and records, and deletes and enlarges things: `Administrator`."""

from __future__ import annotations

from typing import Final

from octavo.broker.wire.api_keys import (
    CONSUMER_GROUP_DESCRIBE,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DELETE_TOPICS,
    DESCRIBE_GROUPS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_TRANSACTIONS,
    OFFSET_DELETE,
)
from octavo.errors import ErrorCode
from tests.simulation.clients.reading import read_ask
from tests.simulation.wire import Ask
from tests.simulation.world import Client, Doing, World

_MOST_PARTITIONS: Final = 4
_PARTITIONS: Final = {"a": 2, "b": 1}  # that topics begin with
_IS_THERE: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class Administrator(Client):
    """Does one thing or another from time to time."""

    patience_ms = 30_000  # a topic must not be deleted by a request that was given up
    is_in_order = True

    def __init__(self, world: World, groups: list[str], *, deletes_topics: bool) -> None:
        self.name = "administrator"
        self._deletes_topics: Final = deletes_topics
        self.partitions = 2  # of topic "a", as many as were asked for
        self._world: Final = world
        self._groups: Final = groups

    def run(self) -> Doing:
        random = self._world.random
        while not self.is_settling:
            yield random.randrange(12_000)
            group = random.choice(self._groups)
            if self._deletes_topics and self._world.happens(0.5):
                yield from self._replace(random.choice("ab"))
                continue
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
            yield read_ask(_PARTITIONS) if self._world.happens(0.2) else random.choice(asks)

    def _replace(self, name: str) -> Doing:
        """Delete a topic, and create another one of its name after a while."""
        yield Ask(DELETE_TOPICS, 5, {"topic_names": [name], "timeout_ms": 1_000})
        yield self._world.random.choice((0, 500, 4_000))
        topic = {
            "name": name,
            "num_partitions": _PARTITIONS[name],
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
        while True:
            answer = yield Ask(CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 1_000, "validate_only": False})
            if answer is not None and answer.topics[0].error_code in _IS_THERE:
                break
            yield 500
        if name == "a":
            self.partitions = _PARTITIONS[name]

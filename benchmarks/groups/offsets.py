"""Commit and fetch offsets, on some connections, each of which has a group of its own."""

from __future__ import annotations

from typing import Final

from benchmarks.broker.passes import Pass
from benchmarks.broker.served import Served
from benchmarks.groups.plan import Plan, Step, ask_until_loaded, connect, error_position, find_coordinator, frame
from octavo.broker.wire.api_keys import LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH

_VERSION: Final = 9  # of both; from 10 on topics have ids


def prepare(broker: Served, groups: int) -> None:
    """Have the coordinator of each group be ready."""
    with connect(broker) as connection:
        for number in range(groups):
            find_coordinator(connection, _group(number))
            ask_until_loaded(connection, LEAVE_GROUP, {"group_id": _group(number), "members": []})


def commit(broker: Served, topic: str, partitions: int, *, groups: int, rounds: int) -> Pass:
    """Commit offsets of so many partitions with each request."""
    places = [{"partition_index": index, "committed_offset": 1_000_000 + index} for index in range(partitions)]
    topics = [{"name": topic, "partitions": places}]
    plan = Plan()
    for number in range(groups):
        content = {"group_id": _group(number), "generation_id_or_member_epoch": -1, "topics": topics}
        # The answer begins with a throttle time, one topic and its name, the number of partitions, and the first index.
        error_at = error_position(OFFSET_COMMIT, _VERSION, 4 + 1 + 1 + len(topic) + 1 + 4)
        plan.add(Step(frame(OFFSET_COMMIT, _VERSION, content), error_at=error_at), rounds=rounds)
    return plan.run(broker)


def fetch(broker: Served, topic: str, partitions: int, *, groups: int, rounds: int) -> Pass:
    """Fetch the committed offsets of so many partitions with each request."""
    topics = [{"name": topic, "partition_indexes": list(range(partitions))}]
    plan = Plan()
    for number in range(groups):
        content = {"groups": [{"group_id": _group(number), "topics": topics}], "require_stable": True}
        plan.add(Step(frame(OFFSET_FETCH, _VERSION, content)), rounds=rounds)
    return plan.run(broker)


def _group(number: int) -> str:
    return f"offsets-{number:03}"

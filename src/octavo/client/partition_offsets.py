"""Ask the leaders of partitions for offsets by time: `list_offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from octavo.broker.wire.api_keys import LIST_OFFSETS
from octavo.client.cluster import Cluster
from octavo.client.connection import check
from octavo.log.names import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1

_CLIENT: Final = -1  # the number of a replica that is none
_INSPECTOR: Final = -2  # and of one that may ask followers, too, and is told where their logs end


def list_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], timestamp_ms: int
) -> dict[TopicPartition, int]:
    """Return the first offsets whose records have this timestamp or a later one, by partition; -1 where there is none.

    `EARLIEST` and `LATEST` stand for the first offsets and for the ends. Partitions that do not exist, or have no
    leader, are left out. Raises `RequestFailed`.
    """
    wanted = set(partitions)
    return cluster.persist(lambda: _once(cluster, wanted, timestamp_ms)) if wanted else {}


def _once(cluster: Cluster, wanted: set[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
    leaders = {each: node for each, node in cluster.leaders({each.topic for each in wanted}).items() if node >= 0}
    found: dict[TopicPartition, int] = {}
    asked = {each: leaders[each] for each in wanted if each in leaders}
    for partition, answer in ask_leaders(cluster, asked, timestamp_ms):
        check(answer, f"partition {partition}")
        found[partition] = answer.offset
    return found


def ask_leaders(
    cluster: Cluster, leaders: Mapping[TopicPartition, int], timestamp_ms: int, *, committed: bool = False
) -> Iterator[tuple[TopicPartition, Any]]:
    """Yield partitions with what their leaders answer. `committed`: transactions that are open are left out."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition, leader in sorted(leaders.items()):
        by_leader.setdefault(leader, []).append(partition)
    for leader, partitions in sorted(by_leader.items()):
        yield from _ask(cluster, leader, partitions, timestamp_ms, isolation_level=int(committed))


def ends_on(cluster: Cluster, node: int, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return where the logs of a broker end, whether it leads them or not. Those that it does not tell are left out.

    Raises `BrokerUnreachable` and `RequestFailed`.
    """
    answers = _ask(cluster, node, partitions, LATEST, replica_id=_INSPECTOR)
    return {partition: answer.offset for partition, answer in answers if not answer.error_code}


def _ask(
    cluster: Cluster,
    node: int,
    partitions: Iterable[TopicPartition],
    timestamp_ms: int,
    *,
    replica_id: int = _CLIENT,
    isolation_level: int = 0,
) -> Iterator[tuple[TopicPartition, Any]]:
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    answer = cluster.node(node).ask(
        LIST_OFFSETS,
        {
            "replica_id": replica_id,
            "isolation_level": isolation_level,
            "topics": [
                {
                    "name": topic,
                    "partitions": [{"partition_index": each, "timestamp": timestamp_ms} for each in numbers],
                }
                for topic, numbers in topics.items()
            ],
        },
    )
    for topic in answer.topics:
        for part in topic.partitions:
            yield TopicPartition(topic.name, part.partition_index), part

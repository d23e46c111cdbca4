"""How a cluster is: its controllers and brokers, and how far the replicas of its partitions are: `cluster_status`.

Everything is asked of brokers, by APIs that Apache Kafka has, too. Each replica is asked where its log ends, so the lag
is that of the moment. Brokers that do not answer are told as such, and what only they know is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from octavo.broker.wire.api_keys import DESCRIBE_CLUSTER, DESCRIBE_CONFIGS, DESCRIBE_QUORUM
from octavo.client.cluster import Cluster
from octavo.client.connection import check, only
from octavo.client.partition_offsets import ends_on
from octavo.errors import BrokerUnreachable, RequestFailed
from octavo.log.names import METADATA_TOPIC, TopicPartition

OFFLINE: Final = "offline"  # nobody leads it
UNDER_MIN_ISR: Final = "under min ISR"  # nothing is acknowledged with acks=all
UNDER_REPLICATED: Final = "under-replicated"  # a replica is not in sync
IN_SYNC: Final = "in sync"

_TOPIC: Final = 2  # the type of a resource
_MIN_ISR: Final = "min.insync.replicas"
_BROKERS: Final = 1  # the type of endpoints


class ControllerStatus(NamedTuple):
    """A voter of the quorum."""

    id: int
    address: str | None
    is_active: bool
    lag: int  # records of metadata behind the active controller


class BrokerStatus(NamedTuple):
    """A broker that is registered."""

    id: int
    address: str
    rack: str | None
    is_fenced: bool
    is_reached: bool  # it has answered
    leads: int  # partitions
    replicas: int
    lag: int | None  # records that are missing in its replicas, all together
    metadata_lag: int | None  # records of metadata


class PartitionStatus(NamedTuple):
    """A partition with its replicas."""

    topic: str
    partition: int
    leader: int  # -1: none
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    lag: Mapping[int, int | None]  # of each replica
    state: str


class ClusterStatus(NamedTuple):
    """A cluster at one moment."""

    cluster_id: str
    leader_epoch: int  # of the controllers
    controllers: list[ControllerStatus]
    brokers: list[BrokerStatus]
    partitions: list[PartitionStatus]

    @property
    def is_well(self) -> bool:
        """Whether a controller is active, every broker serves, and every replica is in sync."""
        return (
            any(each.is_active for each in self.controllers)
            and all(each.is_reached and not each.is_fenced for each in self.brokers)
            and all(each.state == IN_SYNC for each in self.partitions)
        )


class _Quorum(NamedTuple):
    leader_epoch: int
    controllers: list[ControllerStatus]
    lags: Mapping[int, int]  # of observers, which are brokers


def cluster_status(cluster: Cluster, topics: Iterable[str] | None = None) -> ClusterStatus:
    """Ask the brokers of a cluster how they are. `topics`: those to look at, instead of all.

    Raises `BrokerUnreachable` if no broker answers, and `RequestFailed`.
    """
    wanted = None if topics is None else sorted(set(topics))
    metadata = cluster.metadata(wanted)
    described = cluster.any().ask(DESCRIBE_CLUSTER, {"endpoint_type": _BROKERS, "include_fenced_brokers": True})
    check(described, "the cluster")
    for topic in metadata.topics:
        check(topic, f"topic {topic.name}")
    told = {
        TopicPartition(topic.name, each.partition_index): each for topic in metadata.topics for each in topic.partitions
    }
    ends = _ends(cluster, {each.node_id for each in metadata.brokers}, told)
    partitions = _partitions(cluster, told, ends)
    quorum = _quorum(cluster)
    brokers = [_broker(each, ends, partitions, quorum) for each in described.brokers]
    return ClusterStatus(
        described.cluster_id,
        quorum.leader_epoch,
        quorum.controllers,
        sorted(brokers),
        partitions,
    )


def _ends(
    cluster: Cluster, nodes: Iterable[int], told: Mapping[TopicPartition, Any]
) -> dict[int, dict[TopicPartition, int]]:
    """Return where the logs of each broker end that answers."""
    ends: dict[int, dict[TopicPartition, int]] = {}
    for node in sorted(nodes):
        try:
            ends[node] = ends_on(cluster, node, [each for each, part in told.items() if node in part.replica_nodes])
        except BrokerUnreachable:
            continue
    return ends


def _partitions(
    cluster: Cluster, told: Mapping[TopicPartition, Any], ends: Mapping[int, Mapping[TopicPartition, int]]
) -> list[PartitionStatus]:
    behind = {each.topic for each, part in told.items() if len(part.isr_nodes) < len(part.replica_nodes)}
    minima = {topic: _min_isr(cluster, topic) for topic in sorted(behind)}
    return [
        PartitionStatus(
            partition.topic,
            partition.partition,
            part.leader_id,
            tuple(part.replica_nodes),
            tuple(part.isr_nodes),
            _lags(partition, part, ends),
            _state(part, minima.get(partition.topic, 1)),
        )
        for partition, part in sorted(told.items())
    ]


def _min_isr(cluster: Cluster, topic: str) -> int:
    resource = {"resource_type": _TOPIC, "resource_name": topic, "configuration_keys": [_MIN_ISR]}
    told = only(cluster.any().ask(DESCRIBE_CONFIGS, {"resources": [resource]}).results, f"topic {topic}")
    check(told, f"topic {topic}")
    return max((int(each.value) for each in told.configs if each.name == _MIN_ISR), default=1)


def _state(part: Any, min_isr: int) -> str:
    if part.leader_id < 0:
        return OFFLINE
    if len(part.isr_nodes) < min(min_isr, len(part.replica_nodes)):
        return UNDER_MIN_ISR
    return UNDER_REPLICATED if len(part.isr_nodes) < len(part.replica_nodes) else IN_SYNC


def _lags(
    partition: TopicPartition, part: Any, ends: Mapping[int, Mapping[TopicPartition, int]]
) -> dict[int, int | None]:
    """Return how many records each replica is behind its leader. Followers may have been asked after it."""
    found = {node: ends.get(node, {}).get(partition) for node in part.replica_nodes}
    end = found.get(part.leader_id)
    return {node: None if end is None or own is None else max(0, end - own) for node, own in found.items()}


def _quorum(cluster: Cluster) -> _Quorum:
    """Return what the active controller knows. Nothing, if there is none or it is not told: brokers go on without."""
    topic = {"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
    try:
        answer = cluster.any().ask(DESCRIBE_QUORUM, {"topics": [topic]})
        check(answer, "the controllers")
        partition = only(only(answer.topics, "the controllers").partitions, "the controllers")
        check(partition, "the controllers")
    except (BrokerUnreachable, RequestFailed):  # a broker waits for the controllers as long as we wait for it
        return _Quorum(-1, [], {})
    places = {
        node.node_id: f"{listener.host}:{listener.port}"
        for node in getattr(answer, "nodes", ())
        for listener in node.listeners[:1]
    }
    lags = metadata_lags(partition)
    controllers = [
        ControllerStatus(number, places.get(number), number == partition.leader_id, lags[number])
        for number in sorted(each.replica_id for each in partition.current_voters)
    ]
    return _Quorum(partition.leader_epoch, controllers, lags)


def metadata_lags(partition: Any) -> dict[int, int]:
    """Return how many records of metadata each node lacks, from an answer to DescribeQuorum.

    For some minutes the active controller also tells of a directory that a node had before: the best one counts.
    """
    everyone = [*partition.current_voters, *partition.observers]
    ends: dict[int, int] = {}
    for each in everyone:
        ends[each.replica_id] = max(each.log_end_offset, ends.get(each.replica_id, -1))
    last = ends.get(partition.leader_id, 0)
    return {number: max(0, last - end) for number, end in ends.items()}


def _broker(
    told: Any,
    ends: Mapping[int, Mapping[TopicPartition, int]],
    partitions: Iterable[PartitionStatus],
    quorum: _Quorum,
) -> BrokerStatus:
    number = told.broker_id
    own = [each for each in partitions if number in each.replicas]
    lags = [lag for each in own if (lag := each.lag[number]) is not None]
    return BrokerStatus(
        number,
        f"{told.host}:{told.port}",
        told.rack,
        getattr(told, "is_fenced", False),
        number in ends,
        sum(each.leader == number for each in own),
        len(own),
        sum(lags) if len(lags) == len(own) else None,
        quorum.lags.get(number),
    )

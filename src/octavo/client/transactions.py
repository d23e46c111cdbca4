"""Ask about transactions, and abort those that hang: `Transactions`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from octavo.broker.wire.api_keys import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    FIND_COORDINATOR,
    LIST_TRANSACTIONS,
    WRITE_TXN_MARKERS,
)
from octavo.client.cluster import Cluster
from octavo.client.connection import BrokerConnection, check, only
from octavo.errors import ErrorCode, InvalidInput, RequestFailed
from octavo.log.names import TopicPartition

_T = TypeVar("_T")

_OF_TRANSACTIONS: Final = 1  # the type of a coordinator's key
_SEVERAL_KEYS: Final = 4  # since this version FindCoordinator takes several keys
_WITH_DURATION: Final = 1  # since this version ListTransactions chooses by how long a transaction has been open
_WITH_PATTERN: Final = 2  # and since this one by the transactional id
_MOST_PARTITIONS: Final = 500  # of one request, as Kafka's tool has it


class ListedTransaction(NamedTuple):
    """A transactional id in a list."""

    id: str
    coordinator: int
    producer_id: int
    state: str


class DescribedTransaction(NamedTuple):
    """A transactional id, and its last transaction."""

    id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int  # -1 if none is open
    partitions: list[TopicPartition]


class ActiveProducer(NamedTuple):
    """What the leader of a partition knows of a producer."""

    partition: TopicPartition
    id: int
    epoch: int
    coordinator_epoch: int  # -1 if it has written no marker
    last_timestamp_ms: int
    start_offset: int  # of the open transaction; -1 if there is none


class Transactions:
    """The transactions of a cluster. Requests go to coordinators and leaders, and are repeated when these move."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster: Final = cluster

    def list(
        self, *, producer_ids: Collection[int] = (), duration_ms: int = -1, pattern: str | None = None
    ) -> list[ListedTransaction]:
        """Return the transactional ids of all brokers. Raises `RequestFailed` and `BrokerUnreachable`.

        producer_ids: only of these
        duration_ms: only those whose transaction has been open for longer
        pattern: only those whose transactional id this regular expression matches
        """
        asked = {
            "state_filters": [],
            "producer_id_filters": sorted(producer_ids),
            "duration_filter": duration_ms,
            "transactional_id_pattern": pattern,
        }
        needed = _WITH_PATTERN if pattern is not None else _WITH_DURATION if duration_ms >= 0 else 0
        return sorted(
            ListedTransaction(each.transactional_id, node, each.producer_id, each.transaction_state)
            for node in self._cluster.nodes()
            for each in self._cluster.persist(partial(self._list_of, node, asked, needed)).transaction_states
        )

    def _list_of(self, node: int, asked: dict[str, Any], needed: int) -> Any:
        connection = self._cluster.node(node)
        if connection.version(LIST_TRANSACTIONS) < needed:
            what = "transactional id" if needed == _WITH_PATTERN else "duration"
            raise RequestFailed(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker at {connection.address} cannot list transactions by their {what}",
            )
        answer = connection.ask(LIST_TRANSACTIONS, asked)
        check(answer, f"transactions of the broker at {connection.address}")
        return answer

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """Return a transactional id. Raises `RequestFailed`, with TRANSACTIONAL_ID_NOT_FOUND if there is none."""
        subject = f"transactional id {transactional_id}"

        def attempt(node: int, connection: BrokerConnection) -> DescribedTransaction:
            answer = connection.ask(DESCRIBE_TRANSACTIONS, {"transactional_ids": [transactional_id]})
            told = only(answer.transaction_states, subject)
            if told.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise RequestFailed(told.error_code, f"there is no {subject}")
            check(told, subject)
            return DescribedTransaction(
                transactional_id,
                node,
                told.producer_id,
                told.producer_epoch,
                told.transaction_state,
                told.transaction_timeout_ms,
                told.transaction_start_time_ms,
                [TopicPartition(topic.topic, number) for topic in told.topics for number in topic.partitions],
            )

        return self._at_coordinator(transactional_id, attempt)

    def producers(self, partitions: Iterable[TopicPartition], broker: int | None = None) -> Sequence[ActiveProducer]:
        """Return what leaders know of the producers of partitions, or what one broker knows. Raises `RequestFailed`."""
        wanted = sorted(set(partitions))
        found: Sequence[ActiveProducer] = ()
        for start in range(0, len(wanted), _MOST_PARTITIONS):
            some = wanted[start : start + _MOST_PARTITIONS]
            found = [*found, *self._cluster.persist(partial(self._all_producers_of, some, broker))]
        return found

    def _all_producers_of(self, partitions: Sequence[TopicPartition], broker: int | None) -> Sequence[ActiveProducer]:
        return tuple(self._producers_of(partitions, broker))

    def _producers_of(self, partitions: Sequence[TopicPartition], broker: int | None) -> Iterator[ActiveProducer]:
        leaders = self._cluster.leaders({each.topic for each in partitions})
        by_node: dict[int, dict[str, Any]] = {}
        for each in partitions:
            node = leaders.get(each, -1) if broker is None else broker
            if each not in leaders or node < 0:
                what = "has no leader" if each in leaders else "does not exist"
                raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {each} {what}")
            by_node.setdefault(node, {}).setdefault(each.topic, []).append(each.partition)
        for node, topics in sorted(by_node.items()):
            asked = [{"name": topic, "partition_indexes": numbers} for topic, numbers in topics.items()]
            for topic in self._cluster.node(node).ask(DESCRIBE_PRODUCERS, {"topics": asked}).topics:
                for part in topic.partitions:
                    partition = TopicPartition(topic.name, part.partition_index)
                    check(part, f"the producers of partition {partition}")
                    for each in part.active_producers:
                        yield _producer(partition, each)

    def partitions(self, topic: str | None, broker: int | None) -> Sequence[TopicPartition]:
        """Return the partitions of a topic or of all topics; only those with a replica on a broker if one is given."""
        metadata = self._cluster.persist(lambda: self._cluster.metadata(None if topic is None else [topic]))
        if topic is not None:
            check(metadata.topics[0], f"topic {topic}")
        return sorted(
            TopicPartition(each.name, part.partition_index)
            for each in metadata.topics
            for part in each.partitions
            if broker is None or broker in part.replica_nodes
        )

    def abort(self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        """End a transaction in one partition by a marker that aborts it. Raises `RequestFailed`."""
        self._cluster.persist(partial(self._abort, partition, producer_id, producer_epoch, coordinator_epoch))

    def _abort(self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        leader = self._cluster.leaders({partition.topic}).get(partition, -1)
        if leader < 0:
            raise RequestFailed(
                ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition} does not exist, or has no leader"
            )
        marker = {
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
            "transaction_result": False,
            "topics": [{"name": partition.topic, "partition_indexes": [partition.partition]}],
            "coordinator_epoch": coordinator_epoch,
            "transaction_version": 0,
        }
        answer = self._cluster.node(leader).ask(WRITE_TXN_MARKERS, {"markers": [marker]})
        for told in answer.markers:
            for topic in told.topics:
                for part in topic.partitions:
                    check(part, f"the transaction of producer {producer_id} in partition {partition}")

    def _at_coordinator(self, transactional_id: str, attempt: Callable[[int, BrokerConnection], _T]) -> _T:
        if not transactional_id:
            raise InvalidInput("a transactional id cannot be empty")

        def once() -> _T:
            asked = {"key": transactional_id, "key_type": _OF_TRANSACTIONS, "coordinator_keys": [transactional_id]}
            connection = self._cluster.any()
            answer = connection.ask(FIND_COORDINATOR, asked)
            if connection.version(FIND_COORDINATOR) >= _SEVERAL_KEYS:
                answer = only(answer.coordinators, f"transactional id {transactional_id}")
            check(answer, f"the coordinator of transactional id {transactional_id}")
            return attempt(answer.node_id, self._cluster.connect(answer.host, answer.port))

        return self._cluster.persist(once)


def _producer(partition: TopicPartition, told: Any) -> ActiveProducer:
    return ActiveProducer(
        partition,
        told.producer_id,
        told.producer_epoch,
        told.coordinator_epoch,
        told.last_timestamp,
        told.current_txn_start_offset,
    )

"""Coordinators of groups and transactions that other brokers run: `CoordinatorsElsewhere`.

A member of a cluster runs none yet. It knows from the metadata who leads the partitions of the internal topics, and
sends clients there; a partition that it leads itself has no coordinator for the time being.
It has the methods of `Coordinators` that handlers use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from octavo.broker.answers import Answer, Later, Parts
from octavo.broker.at_once import at_once_or_later
from octavo.broker.refused import Refused
from octavo.broker.repetition import refuse_repetition
from octavo.coordinator.groups.requests import CommitAnswer, CommitRequest
from octavo.coordinator.shard import Producer, Ticket
from octavo.errors import ErrorCode, InvalidInput
from octavo.log.coordinator.internal_topic import partition_of
from octavo.log.metadata.image import Image
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition, is_internal_topic

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.broker.config import BrokerConfig
    from octavo.coordinator.groups.group_shard import GroupShard
    from octavo.coordinator.transactions.transaction_shard import TransactionShard

A = TypeVar("A")
_WHY: Final = InvalidInput("it coordinates nothing yet; have brokers of Apache Kafka lead them")


def _trouble(topic: str) -> str:
    return f"clients wait for a coordinator: this broker leads partitions of {topic}"


class NoTime:
    """Nothing has to happen at any time, because there are no coordinators."""

    next_deadline: Final = math.inf
    next_ms: Final = math.inf

    def topics_changed(self) -> None:
        """Do nothing."""

    def tick(self) -> list[Callable[[], None]]:
        """Do nothing."""
        return []


class CoordinatorsElsewhere:
    """The coordinators that this broker does not run. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self.group_config = broker.config.groups
        self.time: Final = NoTime()

    def adopt(self, config: BrokerConfig) -> None:
        """Have settings that were changed while the broker runs."""
        self.group_config = config.groups

    def load(self) -> None:
        """Do nothing: there is nothing to load."""

    def leader_of(self, topic: str, key: str) -> int | None:
        """Return the node that leads the partition of an internal topic for a key; None if there is no such topic."""
        found = self._broker.image.topics.get(topic)
        partition = found and found.partitions.get(partition_of(key, len(found.partitions) or 1))
        return partition.leader if partition else None

    def group_error(self, group_id: str) -> ErrorCode:
        """Return why nothing can be done for a group here."""
        return self._error(CONSUMER_OFFSETS, group_id)

    def transaction_error(self, transactional_id: str) -> ErrorCode:
        """Return why nothing can be done for a transactional id here."""
        return self._error(TRANSACTION_STATE, transactional_id) if transactional_id else ErrorCode.INVALID_REQUEST

    def _error(self, topic: str, key: str) -> ErrorCode:
        if self.leader_of(topic, key) != self._broker.node_id:
            return ErrorCode.NOT_COORDINATOR
        self._tell(topic)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _tell(self, topic: str) -> None:
        """Tell the operator why clients wait: they try again and again, and do not say so."""
        self._broker.troubles.failed(_trouble(topic), _WHY)

    def look_at(self, image: Image, changed: Iterable[UUID]) -> None:
        """Tell the operator if this broker was given partitions of internal topics, or has none of them any more.

        changed: the topics that have changed in the metadata
        """
        for topic_id in changed:
            topic = image.name_of(topic_id)
            if topic is None or not is_internal_topic(topic):
                continue
            if any(each.leader == self._broker.node_id for each in image.partitions_of(topic_id).values()):
                self._tell(topic)
            else:
                self._broker.troubles.is_over(_trouble(topic), f"this broker leads no partitions of {topic} any more")

    def _check_none(self, topic: str) -> None:
        """Raise `Refused` if this broker leads a partition of an internal topic, whose coordinator would be asked."""
        found = self._broker.image.topics.get(topic)
        for partition in () if found is None else found.partitions.values():
            if partition.leader == self._broker.node_id:
                self._tell(topic)
                raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)

    def run(
        self,
        group_id: str,
        action: Callable[[GroupShard, Ticket], object],
        write: Callable[[Any], Parts],
        refuse: Callable[[ErrorCode], object],
        failed: Callable[[GroupShard, ErrorCode], object] | None = None,
    ) -> Answer:
        """Refuse to do something for a group."""
        return write(refuse(self.group_error(group_id)))

    def run_transaction(
        self,
        transactional_id: str,
        action: Callable[[TransactionShard, Ticket], object],
        write: Callable[[Any], Parts],
        refuse: Callable[[ErrorCode], object],
    ) -> Answer:
        """Refuse to do something for a transactional id."""
        return write(refuse(self.transaction_error(transactional_id)))

    def run_each(
        self,
        actions: Sequence[tuple[str, Callable[[GroupShard], A]]],
        refuse: Callable[[str, ErrorCode], A],
        write: Callable[[list[A]], Parts],
    ) -> Parts:
        """Refuse to do something for several groups. Raises `MalformedRequest`."""
        refuse_repetition([group_id for group_id, _ in actions])
        return write([refuse(group_id, self.group_error(group_id)) for group_id, _ in actions])

    def run_transactions(
        self,
        actions: Sequence[tuple[str, Callable[[TransactionShard], A]]],
        refuse: Callable[[int, ErrorCode], A],
        write: Callable[[list[A]], Parts],
    ) -> Parts:
        """Refuse to do something for several transactional ids. Raises `MalformedRequest`."""
        refuse_repetition([key for key, _ in actions])
        return write([refuse(number, self.transaction_error(key)) for number, (key, _) in enumerate(actions)])

    def ask_all(self, question: Callable[[GroupShard], list[A]], write: Callable[[list[A]], Parts]) -> Parts | Later:
        """Answer that there are no groups here. Raises `Refused` if there might be some."""
        self._check_none(CONSUMER_OFFSETS)
        return at_once_or_later(lambda: write([]))

    def ask_all_transactions(
        self, question: Callable[[TransactionShard], list[A]], write: Callable[[list[A]], Parts]
    ) -> Parts | Later:
        """Answer that there are no transactions here. Raises `Refused` if there might be some."""
        self._check_none(TRANSACTION_STATE)
        return at_once_or_later(lambda: write([]))

    def find_transaction_host(self, transactional_id: str) -> None:
        """Find no coordinator here."""

    def find_group_partition(self, group_id: str) -> TopicPartition | None:
        """Return no partition: none of them is coordinated here."""
        return None

    def is_topic_missing(self, name: str) -> bool:
        """Return whether an internal topic has to be created before its coordinator can be found."""
        return name not in self._broker.image.topics

    def create_topic(self, name: str) -> ErrorCode:
        """Refuse to create a topic: see `TopicCreation`."""
        return ErrorCode.COORDINATOR_NOT_AVAILABLE

    def commit(self, request: CommitRequest) -> CommitAnswer:
        """Refuse to commit offsets of a group."""
        return CommitAnswer(self.group_error(request.group_id))

    def note_marker(self, partition: TopicPartition, producer: Producer, *, commit: bool) -> None:
        """Do nothing: there is no coordinator to tell."""

"""From new metadata to the replicas of a broker: which partitions to delete, to lead and to follow (`LocalReplicas`).

States before and after all new records are compared, not record by record. Deletions come first, for a topic may come
back under its name with another id; then leaders, then followers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from octavo.cluster.messages import NO_NODE, Endpoint, TopicIdPartition
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.schemas.metadata.topics import PartitionRecord

Topics = Mapping[UUID, Mapping[int, PartitionRecord]]  # partitions by topic id and number


class Changed(NamedTuple):
    """A partition to lead or to follow from now on."""

    partition: TopicIdPartition
    record: PartitionRecord
    is_new_epoch: bool  # the leader epoch is new. If not, a leader keeps what it knows, and a follower its fetcher
    is_new: bool  # the replica is new, and may need a log


class LocalChanges(NamedTuple):
    """What has to be done, in this order."""

    deleted: list[TopicIdPartition]
    led: list[Changed]
    followed: list[Changed]  # by a leader, or by none: see `PartitionRecord.leader`

    def __bool__(self) -> bool:
        """Return whether there is anything to do."""
        return bool(self.deleted or self.led or self.followed)


class LocalReplicas:
    """The replicas of one broker, as the metadata had them when they were last looked at."""

    def __init__(self, node_id: int) -> None:
        self._node_id: Final = node_id
        self._known: Final[dict[UUID, dict[int, PartitionRecord]]] = {}

    def update(self, topics: Topics, changed: Iterable[UUID]) -> LocalChanges:
        """Return what has to be done after changes of these topics; removed ones are among them, too."""
        changes = LocalChanges([], [], [])
        for topic_id in changed:
            before = self._known.pop(topic_id, {})
            after = {
                number: record
                for number, record in topics.get(topic_id, {}).items()
                if self._node_id in record.replicas
            }
            if after:
                self._known[topic_id] = after
            changes.deleted.extend(TopicIdPartition(topic_id, number) for number in before if number not in after)
            for number, record in after.items():
                self._compare(TopicIdPartition(topic_id, number), before.get(number), record, changes)
        return changes

    def _compare(
        self, partition: TopicIdPartition, before: PartitionRecord | None, after: PartitionRecord, changes: LocalChanges
    ) -> None:
        if before is not None and before.partition_epoch == after.partition_epoch:
            return
        is_new_epoch = before is None or before.leader_epoch != after.leader_epoch
        change = Changed(partition, after, is_new_epoch, is_new=before is None)
        (changes.led if after.leader == self._node_id else changes.followed).append(change)

    def has(self, partition: TopicIdPartition) -> bool:
        """Return whether the broker has this replica. A folder of any other partition is a stray."""
        return partition.partition in self._known.get(partition.topic_id, {})


def leader_endpoint(
    record: PartitionRecord, brokers: Mapping[int, RegisterBrokerRecord], listener_name: str
) -> Endpoint | None:
    """Return where a partition's leader listens for other brokers; None if it has none that could be reached.

    The record and the brokers must be of the same metadata: a leader that registers with another port gets a new epoch.
    """
    broker = None if record.leader == NO_NODE else brokers.get(record.leader)
    for listener in () if broker is None else broker.end_points:
        if listener.name == listener_name:
            return Endpoint(listener.host, listener.port)
    return None

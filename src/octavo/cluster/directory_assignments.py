"""Tell the controller in which directory replicas are: `DirectoryAssignments` collects them for AssignReplicasToDirs.

A broker with one directory has all its replicas there, and the controller knows that when it places them. Not so if the
disk was replaced: the records still name the old directory, which is not registered any more, and the broker could not
become the leader of these partitions. Nor if a record is of a time when directories had no ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from octavo.cluster.messages import NONE, TopicIdPartition
from octavo.schemas.metadata.topics import PartitionRecord

MAX_PARTITIONS: Final = 2250  # in one request
_FIRST_RETRY_MS: Final = 100
_LAST_RETRY_MS: Final = 10_000


class DirectoryAssignments:
    """The replicas of a broker whose records name another directory than that in which they are."""

    def __init__(self, node_id: int, directory_id: UUID) -> None:
        self._node_id: Final = node_id
        self._directory_id: Final = directory_id
        self._waiting: Final[dict[TopicIdPartition, None]] = {}
        self._is_under_way = False
        self._failures = 0  # one after the other
        self._not_before_ms = 0

    def update(self, partition: TopicIdPartition, record: PartitionRecord | None) -> None:
        """Look at a replica of this broker whose record has changed; None if the broker has it no more."""
        if record is not None and self._node_id in record.replicas and self._is_elsewhere(record):
            self._waiting[partition] = None
        else:
            self._waiting.pop(partition, None)

    def _is_elsewhere(self, record: PartitionRecord) -> bool:
        named = dict(zip(record.replicas, record.directories, strict=False))  # an old record names none
        return named.get(self._node_id) != self._directory_id

    def next_request(self, now_ms: int) -> list[TopicIdPartition]:
        """Return the partitions to ask for now; none if there is nothing to ask, or a request is under way."""
        if self._is_under_way or not self._waiting or now_ms < self._not_before_ms:
            return []
        self._is_under_way = True
        return [partition for partition, _ in zip(self._waiting, range(MAX_PARTITIONS), strict=False)]

    @property
    def next_ms(self) -> int | None:
        """The time of the next request; None if there is nothing to ask, or one is under way."""
        return self._not_before_ms if self._waiting and not self._is_under_way else None

    def answered(self, error_code: int, partitions: Mapping[TopicIdPartition, int], now_ms: int) -> None:
        """Take an answer: the error code of all of it, and of each partition. What was refused is asked again."""
        self._is_under_way = False
        is_done = error_code == NONE and bool(partitions)
        for partition, code in partitions.items():
            if partition in self._waiting:
                del self._waiting[partition]
                if error_code != NONE or code != NONE:
                    self._waiting[partition] = None  # behind the others, so that these are asked for next
                    is_done = False
        if is_done:
            self._failures, self._not_before_ms = 0, now_ms
        else:
            self._later(now_ms)

    def failed(self, now_ms: int) -> None:
        """Note that the controller did not answer."""
        self._is_under_way = False
        self._later(now_ms)

    def _later(self, now_ms: int) -> None:
        self._not_before_ms = now_ms + min(_FIRST_RETRY_MS << min(self._failures, 10), _LAST_RETRY_MS)
        self._failures += 1

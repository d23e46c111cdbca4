"""Read and commit the offsets of groups. In a watched directory they can only be read.

`GroupOffsets` has the committed offsets of one consumer's group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from octavo.errors import ConsumerError, InvalidConfig, OffsetOutOfRange
from octavo.log.consumer.config import ConsumerConfig
from octavo.log.coordinator.consumer_group_metadata import ConsumerGroupMetadata
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.view import Isolation
from octavo.log.watched.watched_directory import WatchedDirectory

if TYPE_CHECKING:
    from octavo.log.coordinator.member import Member


class Positions(Protocol):
    """Interface to the committed offsets of all groups in a directory."""

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        """A group's committed offset in each partition; None where there is none."""

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for a group."""


class KeptPositions:
    """Committed offsets in a directory that is open for writing."""

    def __init__(self, data: DataDirectory) -> None:
        self._data: Final = data

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        return self._data.coordinator.committed(group_id, partitions)

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._data.coordinator.commit_offsets(group_id, offsets)


class WatchedPositions:
    """Committed offsets in a directory that another process writes, as far as they have reached its logs."""

    def __init__(self, data: WatchedDirectory) -> None:
        from octavo.log.coordinator.groups import ReadGroups

        self._new_groups: Final = ReadGroups
        self._data: Final = data
        self._groups = ReadGroups()

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        try:
            self._read()
        except OffsetOutOfRange:  # the logs were truncated, or recreated
            self._groups = self._new_groups()
            self._read()
        return self._groups.committed(group_id, partitions)

    def _read(self) -> None:
        for partition in self._data.partitions():
            if partition.topic == CONSUMER_OFFSETS:
                self._groups.read(partition, self._data.log(*partition))

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        raise ConsumerError("nothing can be committed in a directory that is only watched: its writer has it")


def positions_of(data: DataDirectory | WatchedDirectory) -> Positions:
    """Return the interface to the committed offsets in a directory."""
    return KeptPositions(data) if isinstance(data, DataDirectory) else WatchedPositions(data)


class GroupOffsets:
    """The committed offsets of one consumer's group."""

    def __init__(self, data: DataDirectory | WatchedDirectory, config: ConsumerConfig) -> None:
        """Raises `InvalidConfig` if automatic commits are asked for in a directory that is only watched."""
        is_written = isinstance(data, DataDirectory)
        if config.enable_auto_commit and not is_written:
            raise InvalidConfig("enable.auto.commit", True, "in a directory that is only watched it must be false")
        wanted = config.group_id is not None if config.enable_auto_commit is None else config.enable_auto_commit
        self.is_automatic: Final = wanted and is_written  # whether positions are committed without a call of `commit`
        self._group_id: Final = config.group_id
        self._positions: Final = positions_of(data)
        self._data: Final = data
        self._is_stable: Final = config.isolation_level is Isolation.READ_COMMITTED
        self.member: Member | None = None  # what the consumer is in its group, while it subscribes to topics

    def starting_offset(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """The committed offset of a partition; None if there is none, or if the consumer has no group.

        Raises `NotReady` for a reader of committed data, while an open transaction of another consumer may change it.
        """
        if self._group_id is None:
            return None
        if self._is_stable and isinstance(self._data, DataDirectory):
            from octavo.log.coordinator.coordinator import group_hosts

            return group_hosts(self._data).stable_offset(self._group_id, partition)
        return self._positions.committed(self._group_id, [partition])[partition]

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets. Raises `ConsumerError` without a group, and `MemberFenced`."""
        if self.member is None:
            self._positions.commit(self._group(), offsets)
        else:
            self.member.commit(offsets)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of partitions. Raises `ConsumerError` without a group."""
        return dict(self._positions.committed(self._group(), list(partitions)))

    def metadata(self) -> ConsumerGroupMetadata:
        """What the consumer is in its group. Raises `ConsumerError` without a group."""
        member = self.member
        if member is None:
            return ConsumerGroupMetadata(self._group())
        return ConsumerGroupMetadata(self._group(), member.epoch, member.member_id, member.config.instance_id)

    def _group(self) -> str:
        if self._group_id is None:
            raise ConsumerError("without group.id there is nothing to remember positions by")
        return self._group_id

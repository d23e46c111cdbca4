"""Committed offsets of groups, through the coordinator of a directory; read-only for a watched directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from octavo.errors import ConsumerError, OffsetOutOfRange
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.offset_and_metadata import OffsetAndMetadata
from octavo.log.watched.watched_directory import WatchedDirectory


class Positions(Protocol):
    """The committed offsets of groups."""

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        """A group's committed offset in each of the partitions; None if it has none."""

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for a group."""


class KeptPositions:
    """Committed offsets in a directory that is open for writing."""

    def __init__(self, data: DataDirectory) -> None:
        self._coordinator = data.coordinator

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        return self._coordinator.committed(group_id, partitions)

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._coordinator.commit_offsets(group_id, offsets)


class WatchedPositions:
    """Committed offsets in a directory that another process writes, as far as they have reached its logs."""

    def __init__(self, data: WatchedDirectory) -> None:
        from octavo.log.coordinator.offsets import OffsetState

        self._new_state = OffsetState
        self._data = data
        self._state = OffsetState()

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        try:
            self._read()
        except OffsetOutOfRange:  # the logs were truncated, or recreated
            self._state = self._new_state()
            self._read()
        return {partition: self._state.position(group_id, partition, None) for partition in partitions}

    def _read(self) -> None:
        for partition in self._data.partitions():
            if partition.topic == CONSUMER_OFFSETS:
                self._state.read(partition, self._data.log(*partition))

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        raise ConsumerError("nothing can be committed in a directory that is only watched: its writer has it")


def positions_of(data: DataDirectory | WatchedDirectory) -> Positions:
    """Return the committed offsets in a directory."""
    return KeptPositions(data) if isinstance(data, DataDirectory) else WatchedPositions(data)

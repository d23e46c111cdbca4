"""Where a group is: read and written through the coordinator of a directory, or only read where that is watched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from octavo.errors import OffsetOutOfRange
from octavo.log.consumer.refusals import ConsumerError
from octavo.log.directory import DataDirectory
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.offset_and_metadata import OffsetAndMetadata
from octavo.log.watched import WatchedDirectory


class Positions(Protocol):
    """The committed positions of groups."""

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        """Where a group is in each of the partitions, None for nowhere."""

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Let it go on from there."""


class KeptPositions:
    """Those of a directory that is open to be written."""

    def __init__(self, data: DataDirectory) -> None:
        self._coordinator = data.coordinator

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        return self._coordinator.committed(group_id, partitions)

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._coordinator.commit_offsets(group_id, offsets)


class WatchedPositions:
    """Those of a directory that somebody else writes, as far as they have come to its logs."""

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
        except OffsetOutOfRange:  # they have been cut, or made anew
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
    """The committed positions in a directory."""
    return KeptPositions(data) if isinstance(data, DataDirectory) else WatchedPositions(data)

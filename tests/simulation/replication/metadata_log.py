"""The metadata log of the simulation: every change is one record, an image of everything (`MetadataLog`).

What is not committed is lost when another controller takes over.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from octavo.cluster.messages import (
    CurrentLeader,
    Endpoint,
    EpochEndOffset,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
    TopicIdPartition,
)
from octavo.errors import ErrorCode
from octavo.log.files.leader_epochs import EpochEntry, LeaderEpochs
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.schemas.metadata.topics import PartitionRecord

RECORD: Final = struct.Struct(">ii")  # the epoch, and the number of an image
ENDPOINT: Final = Endpoint("controller", 1)
_AT_ONCE: Final = 5  # records in an answer


class Image(NamedTuple):
    """The metadata at one offset."""

    brokers: dict[int, RegisterBrokerRecord]
    partitions: dict[TopicIdPartition, PartitionRecord]


class MetadataLog:
    """The log of the active controller."""

    def __init__(self, first: Image) -> None:
        self.images: Final = [first]
        self.committed = 1  # images
        self.has_committed = True  # something of the present controller; before that, nobody is told the high watermark
        self.epoch = 1  # of the quorum
        self.snapshot: SnapshotId | None = None
        self._epochs: Final = LeaderEpochs.of([EpochEntry(1, 0)])
        self._archive: Final = [first]  # whatever was in the log, for `read`
        self.numbers: Final = [0]  # of the images in the archive

    def append(self, image: Image) -> None:
        """Append a record."""
        self._epochs.assign(self.epoch, len(self.images))
        self.images.append(image)
        self.numbers.append(len(self._archive))
        self._archive.append(image)

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record at an offset."""
        epoch = self._epochs.epoch_for_offset(offset)
        assert epoch is not None
        return epoch

    def commit(self) -> None:
        """Commit everything."""
        self.committed, self.has_committed = len(self.images), True

    def take_snapshot(self) -> None:
        """Write a snapshot of what is committed."""
        self.snapshot = SnapshotId(self.committed, self.epoch_at(self.committed - 1))

    def fail_over(self) -> None:
        """Have another controller take over, which has only what is committed."""
        del self.images[self.committed :], self.numbers[self.committed :]
        self._epochs.truncate_from_end(len(self.images))
        self.epoch += 1
        self.has_committed = False
        self.append(self.images[-1])  # the new leader's first record

    def fetch(self, request: MetadataFetchRequest) -> MetadataFetchAnswer:
        """Fetch, of the metadata log."""
        if request.current_leader_epoch != self.epoch:
            return MetadataFetchAnswer(0, ErrorCode.FENCED_LEADER_EPOCH, self._leader, {1: ENDPOINT})
        if request.fetch_offset == 0 and self.snapshot is not None:
            return MetadataFetchAnswer(snapshot_id=self.snapshot)
        end = self._epochs.end_offset_for(request.last_fetched_epoch, len(self.images))
        if request.fetch_offset and (end.epoch < request.last_fetched_epoch or end.end_offset < request.fetch_offset):
            return MetadataFetchAnswer(diverging_epoch=EpochEndOffset(*end))
        offsets = range(request.fetch_offset, min(request.fetch_offset + _AT_ONCE, len(self.images)))
        records = b"".join(RECORD.pack(self.epoch_at(offset), self.numbers[offset]) for offset in offsets)
        return MetadataFetchAnswer(high_watermark=self.committed if self.has_committed else -1, records=records)

    def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotAnswer:
        """FetchSnapshot: a few bytes at a time."""
        if request.current_leader_epoch != self.epoch or request.snapshot_id != self.snapshot:
            return FetchSnapshotAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
        data = RECORD.pack(self.snapshot.epoch, self.numbers[self.snapshot.end_offset - 1])
        position = request.position
        return FetchSnapshotAnswer(
            snapshot_id=self.snapshot, size=len(data), position=position, unaligned_records=data[position:][:5]
        )

    @property
    def _leader(self) -> CurrentLeader:
        return CurrentLeader(1, self.epoch)

    def read(self, records: bytes) -> list[tuple[int, Image]]:
        """Return the epochs and images of what `fetch` has returned, or of a whole snapshot."""
        return [(epoch, self._archive[number]) for epoch, number in RECORD.iter_unpack(records)]

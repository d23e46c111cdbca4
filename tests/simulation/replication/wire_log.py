"""The metadata log of the simulation as bytes, such as brokers keep it on their disks (`WireLog`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Final

from octavo.cluster.messages import (
    EpochEndOffset,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
)
from octavo.errors import ErrorCode
from octavo.log.followed.own_snapshots import snapshot_batches
from octavo.log.metadata import image as octavo_image
from octavo.records import BatchBuilder
from octavo.schemas.metadata.nodes import BrokerEndpoint, FeatureLevelRecord, RegisterBrokerRecord
from octavo.schemas.metadata.progress import NoOpRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import write_metadata
from octavo.schemas.metadata.topics import ConfigRecord, PartitionRecord, TopicRecord
from tests.clock import TIME_MS
from tests.simulation.replication.metadata_log import RECORD, Image, MetadataLog

LISTENER: Final = "PLAINTEXT"
PORT: Final = 9092
TOPIC: Final = "topic"
_TOPIC_RESOURCE: Final = 2
_SNAPSHOT_PART: Final = 300  # bytes
FEATURES: Final = {
    "metadata.version": 30,
    "group.version": 1,
    "transaction.version": 2,
    "eligible.leader.replicas.version": 1,
}


def host_of(number: int) -> str:
    """Return the host of a broker."""
    return f"broker-{number}"


class WireLog:
    """Each image is a batch here, of the records that make it of the one before it. Offsets are those of records."""

    def __init__(self, log: MetadataLog, min_isr: int) -> None:
        self._log: Final = log
        self._min_isr: Final = min_isr
        self._written: Final[dict[int, bytes]] = {}  # batches, by the numbers of images
        self._known: Final[list[tuple[int, int]]] = []  # for each image in the log its number, and where its batch ends

    def index_of(self, offset: int) -> int:
        """Return how many images the records before an offset are."""
        self._catch_up()
        return bisect_right(self._known, offset, key=itemgetter(1))

    def _offset_of(self, index: int) -> int:
        return self._known[index - 1][1] if index > 0 else 0

    def fetch(self, request: MetadataFetchRequest) -> MetadataFetchAnswer:
        """Fetch, of the metadata log."""
        self._catch_up()
        answer = self._log.fetch(request._replace(fetch_offset=self.index_of(request.fetch_offset)))
        if answer.diverging_epoch is not None:
            epoch, end = answer.diverging_epoch
            answer = answer._replace(diverging_epoch=EpochEndOffset(epoch, self._offset_of(end)))
        if answer.snapshot_id is not None:
            end, epoch = answer.snapshot_id
            answer = answer._replace(snapshot_id=SnapshotId(self._offset_of(end), epoch))
        records = b"".join(self._written[number] for _, number in RECORD.iter_unpack(bytes(answer.records)))
        watermark = answer.high_watermark if answer.high_watermark < 0 else self._offset_of(answer.high_watermark)
        return answer._replace(records=records, high_watermark=watermark, log_start_offset=0)

    def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotAnswer:
        """FetchSnapshot."""
        self._catch_up()
        snapshot = self._log.snapshot
        if snapshot is None or request.current_leader_epoch != self._log.epoch:
            return FetchSnapshotAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
        snapshot_id = SnapshotId(self._offset_of(snapshot.end_offset), snapshot.epoch)
        if snapshot_id != request.snapshot_id:
            return FetchSnapshotAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
        image = octavo_image.Image()
        for record in self._records(None, self._log.images[snapshot.end_offset - 1]):
            image.replay(record)
        data = b"".join(snapshot_batches(image, snapshot.epoch, timestamp_ms=TIME_MS, now_ms=TIME_MS))
        part = data[request.position :][:_SNAPSHOT_PART]
        return FetchSnapshotAnswer(
            snapshot_id=snapshot_id, size=len(data), position=request.position, unaligned_records=part
        )

    # -------------------------------------------------------------------------------------------------------- writing

    def _catch_up(self) -> None:
        """Write the batches of new images. Those that another controller has cut are gone."""
        numbers, known = self._log.numbers, self._known
        while known and (len(known) > len(numbers) or known[-1][0] != numbers[len(known) - 1]):
            known.pop()
        for index in range(len(known), len(numbers)):
            base = self._offset_of(index)
            before = self._log.images[index - 1] if index else None
            records = list(self._records(before, self._log.images[index])) or [NoOpRecord()]
            builder = BatchBuilder(base_offset=base, leader_epoch=self._log.epoch_at(index))
            for record in records:
                builder.append(None, write_metadata(record), timestamp_ms=TIME_MS)
            self._written[numbers[index]] = builder.build()
            known.append((numbers[index], base + len(records)))

    def _records(self, before: Image | None, after: Image) -> Iterator[MetadataRecord]:
        if before is None:
            yield from (FeatureLevelRecord(name=name, feature_level=level) for name, level in FEATURES.items())
        old_brokers, old_partitions = ({}, {}) if before is None else (before.brokers, before.partitions)
        for number, broker in after.brokers.items():
            if old_brokers.get(number) is not broker:
                yield _reachable(broker)
        if after.partitions and not old_partitions:
            topic_id = next(iter(after.partitions)).topic_id
            yield TopicRecord(name=TOPIC, topic_id=topic_id)
            yield ConfigRecord(
                resource_type=_TOPIC_RESOURCE,
                resource_name=TOPIC,
                name="min.insync.replicas",
                value=str(self._min_isr),
            )
        for partition, record in after.partitions.items():
            known = old_partitions.get(partition)
            placed = _placed(record, after)
            if known is None or before is None or placed != _placed(known, before):
                yield placed


def _reachable(broker: RegisterBrokerRecord) -> RegisterBrokerRecord:
    host = host_of(broker.broker_id)
    return replace(broker, end_points=(BrokerEndpoint(name=LISTENER, host=host, port=PORT, security_protocol=0),))


def _placed(record: PartitionRecord, image: Image) -> PartitionRecord:
    """Return a partition with the directories of its replicas."""
    return replace(record, directories=tuple(image.brokers[number].log_dirs[0] for number in record.replicas))

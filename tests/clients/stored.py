"""What a broker has stored, read from its files without any client."""

from __future__ import annotations

from pathlib import Path

from octavo.log import DataDirectory
from octavo.log.metadata.image import Topic
from octavo.records import Batch, EndTransactionMarker, read_batches, read_control
from tests.clients.driver import Record


def stored_batches(folder: Path, topic: str, partition: int = 0) -> list[Batch]:
    """Return all batches of a partition, from the first segment to the last byte written."""
    segments = sorted((folder / f"{topic}-{partition}").glob("*.log"))
    return [batch for segment in segments for batch in read_batches(segment.read_bytes())]


def stored_records(folder: Path, topic: str, partition: int = 0) -> list[Record]:
    """Return all records of a partition."""
    return [
        Record(
            key=record.key,
            value=record.value,
            headers=tuple((header.key, header.value) for header in record.headers),
            timestamp_ms=record.timestamp_ms,
            partition=partition,
            offset=record.offset,
            timestamp_type="LogAppendTime" if batch.timestamp_type else "CreateTime",
        )
        for batch in stored_batches(folder, topic, partition)
        for record in batch
    ]


def stored_topic(folder: Path, topic: str) -> Topic | None:
    """Return a topic's partitions and settings, from the metadata records; None if there is no such topic."""
    with DataDirectory.open(folder, read_only=True) as directory:
        return directory.topics.get(topic)


def stored_markers(folder: Path, topic: str, partition: int = 0) -> list[str]:
    """Return how the transactions of a partition have ended, in order."""
    controls = [batch for batch in stored_batches(folder, topic, partition) if batch.is_control]
    markers = [read_control(record) for batch in controls for record in batch]
    return [marker.type.name.lower() for marker in markers if isinstance(marker, EndTransactionMarker)]

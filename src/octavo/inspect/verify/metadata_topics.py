"""Find out which topics a cluster has, from the metadata log in a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import UUID

from octavo.errors import FormatError, Truncated
from octavo.inspect.kinds import FileName, Kind
from octavo.inspect.verify.folder import Folder, Gone
from octavo.inspect.verify.metadata_batches import metadata_records
from octavo.log.names import LOG, METADATA_TOPIC, TopicPartition, file_name
from octavo.schemas.metadata.progress import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from octavo.schemas.metadata.topics import ConfigRecord, RemoveTopicRecord, TopicRecord

_TOPIC: Final = 2  # the resource type of a topic's configuration


def read_topics(directory: Path) -> dict[str, UUID] | None:
    """Return the ids of all topics by name; None if the directory has no metadata, or not all of them can be read."""
    topics = _read(directory)
    return None if topics is None else {name: topic_id for topic_id, name in topics.names.items()}


def is_only_deleted(directory: Path, topic: str) -> bool:
    """Whether the metadata say that records of a topic are deleted by age or size, and never were compacted.

    Only what the metadata log still has can be told of the past.
    """
    topics = _read(directory)
    return topics is not None and topics.policies.get(topic) == {"delete"}


def _read(directory: Path) -> _Topics | None:
    try:
        folder = Folder(directory / TopicPartition(METADATA_TOPIC, 0).folder)
    except OSError:
        return None
    snapshots = [
        (parsed.base_offset, name)
        for name in folder.files
        if (parsed := FileName.parse(name)).kind is Kind.METADATA_SNAPSHOT
        and parsed.base_offset is not None
        and not parsed.renamed
    ]
    start, snapshot = max(snapshots, default=(0, None))
    topics = _Topics()
    if (not folder.segments and snapshot is None) or (folder.segments and folder.segments[0] > start):
        return None
    try:
        if snapshot is not None:
            topics.replay(folder, snapshot, 0)
        for number, base in enumerate(folder.segments):
            is_before = number + 1 < len(folder.segments) and folder.segments[number + 1] <= start
            if not is_before:
                topics.replay(folder, file_name(base, LOG), start)
    except (FormatError, Gone, OSError):
        return None
    return topics


class _Topics:
    """The topics, record by record."""

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}
        self.policies: dict[str, set[str | None]] = {}  # all values of cleanup.policy that each topic has had
        self._before: dict[UUID, str] | None = None  # before the transaction that is open

    def replay(self, folder: Folder, name: str, start: int) -> None:
        """Replay a file from an offset on. An incomplete last batch is left out."""
        try:
            for decoded in metadata_records(folder, name):
                if decoded.offset >= start and not isinstance(decoded.content, FormatError):
                    self._replay_one(decoded.content)
        except Truncated:
            if not name.endswith(LOG):
                raise

    def _replay_one(self, record: object) -> None:
        if isinstance(record, TopicRecord):
            self.names[record.topic_id] = record.name
            self.policies.pop(record.name, None)  # those of a topic that was deleted
        elif isinstance(record, ConfigRecord):
            if record.resource_type == _TOPIC and record.name == "cleanup.policy":
                self.policies.setdefault(record.resource_name, set()).add(record.value)
        elif isinstance(record, RemoveTopicRecord):
            self.names.pop(record.topic_id, None)
        elif isinstance(record, BeginTransactionRecord):
            self._before = dict(self.names)
        elif isinstance(record, EndTransactionRecord):
            self._before = None
        elif isinstance(record, AbortTransactionRecord) and self._before is not None:
            self.names, self._before = self._before, None

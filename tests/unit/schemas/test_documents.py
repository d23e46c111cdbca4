"""`docs/formats/internal-topics.md` says what the code does: its hex is read and written, and it lists all types."""

from __future__ import annotations

import re
from uuid import UUID

from octavo.schemas.consumer_offsets.offsets import OffsetCommitKey, OffsetCommitValue
from octavo.schemas.consumer_offsets.serde import KINDS, read_group_key
from octavo.schemas.remote_log_metadata.records import (
    RemotePartitionDeleteMetadataRecord,
    RemotePartitionDeleteState,
    TopicIdPartitionEntry,
)
from octavo.schemas.remote_log_metadata.serde import read_remote_metadata, write_remote_metadata
from octavo.schemas.versioned import read_value_of, write_key, write_value
from tests.unit.records.test_documents import DOCUMENTS, worked

PAGE = "internal-topics"
TIME_MS = 1_700_000_000_000


def test_the_worked_commits_are_written_and_read() -> None:
    key_data, flexible, old, _ = worked(PAGE)
    key = OffsetCommitKey(group="billing", topic="orders", partition=3)
    assert write_key(key) == key_data
    assert read_group_key(key_data) == key
    for version, data, topic_id in ((4, flexible, UUID(int=77)), (3, old, UUID(int=0))):
        value = OffsetCommitValue(offset=42, leader_epoch=5, metadata="", commit_timestamp=TIME_MS, topic_id=topic_id)
        assert write_value(value, version) == data
        assert read_value_of(key, data) == value


def test_the_worked_deletion_is_written_and_read() -> None:
    *_, data = worked(PAGE)
    topic_id = UUID("5a00a979-797b-46da-bd6d-4f5f0220157f")
    record = RemotePartitionDeleteMetadataRecord(
        topic_id_partition=TopicIdPartitionEntry(name="orders", id=topic_id, partition=3),
        broker_id=1,
        event_timestamp_ms=TIME_MS,
        remote_partition_delete_state=RemotePartitionDeleteState.DELETE_PARTITION_MARKED,
    )
    assert write_remote_metadata(record) == data
    assert read_remote_metadata(data) == record


def test_all_types_of_consumer_offsets_are_listed() -> None:
    text = (DOCUMENTS / f"{PAGE}.md").read_text("utf-8")
    (table,) = re.findall(r"^\| `__consumer_offsets`.*?(?=^\| `__transaction_state`)", text, re.MULTILINE | re.DOTALL)
    listed: set[int] = set()
    for types in re.findall(r"^\| [^|]*\| ([^|]*)\|", table, re.MULTILINE):
        for part in types.split(","):
            first, _, last = part.strip().partition(" to ")
            listed |= {*range(int(first), int(last or first) + 1)}
    assert listed == KINDS.keys()

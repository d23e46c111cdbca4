"""Metadata of a node that follows the controllers: what is applied, what is cut again, and what is on the disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from octavo.errors import BadDirectory, CorruptFile
from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.metadata.cluster_log import FOLDER, SnapshotId, read_cluster_log
from octavo.log.metadata.delta import Delta
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from octavo.records.control import Control, LeaderChange, QuorumVoter, SnapshotFooter, SnapshotHeader, control_batch
from octavo.schemas.metadata.nodes import FeatureLevelRecord
from octavo.schemas.metadata.progress import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import write_metadata
from octavo.schemas.metadata.topics import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.unit.log.metadata.forging import registered_broker

EVENTS: Final = UUID(int=1000)
OTHERS: Final = UUID(int=2000)


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[FollowedMetadata]:
    """Metadata of a node that has none yet."""
    followed = FollowedMetadata(tmp_path)
    yield followed
    followed.close()


def batch(offset: int, *records: MetadataRecord, epoch: int = 1) -> bytes:
    """A batch of the controllers."""
    builder = BatchBuilder(base_offset=offset, leader_epoch=epoch)
    for record in records:
        builder.append(None, write_metadata(record), timestamp_ms=1000)
    return builder.build()


def snapshot(*records: MetadataRecord) -> bytes:
    """The file of a snapshot."""
    head: list[Control] = [SnapshotHeader(last_contained_log_timestamp_ms=0)]
    first = control_batch(head, timestamp_ms=0, leader_epoch=0)
    last = control_batch([SnapshotFooter()], base_offset=1 + len(records), timestamp_ms=0, leader_epoch=0)
    return first + batch(1, *records) + last


def topic(topic_id: UUID = EVENTS, name: str = "events", partitions: int = 1) -> list[MetadataRecord]:
    """The records of a new topic."""
    made = [
        PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=(1, 2),
            isr=(1, 2),
            removing_replicas=(),
            adding_replicas=(),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
        )
        for number in range(partitions)
    ]
    return [TopicRecord(name=name, topic_id=topic_id), *made]


def test_applies_committed_records_alone(metadata: FollowedMetadata) -> None:
    """What is beyond the high watermark is in the log, and is not seen."""
    metadata.append(batch(0, *topic()) + batch(2, *topic(OTHERS, "others")), 1)
    assert metadata.end_offset == 4
    assert metadata.last_epoch == 1
    delta = metadata.apply(2)
    assert set(metadata.topics) == {"events"}
    assert metadata.applied_offset == 1
    assert delta.changed_topics == {EVENTS}
    assert delta.has_brokers
    assert metadata.apply(4) == Delta(changed_topics={OTHERS})
    assert set(metadata.topics) == {"events", "others"}
    assert metadata.applied_offset == 3


def test_holds_a_batch_back_that_is_half_committed(metadata: FollowedMetadata) -> None:
    """A batch takes effect as a whole."""
    metadata.append(batch(0, *topic()), 1)
    metadata.apply(1)
    assert metadata.topics == {}
    assert metadata.applied_offset == -1
    metadata.apply(2)
    assert set(metadata.topics) == {"events"}


def test_shows_a_transaction_when_it_ends(metadata: FollowedMetadata) -> None:
    """Its records are seen together, or not at all; offsets go on meanwhile."""
    metadata.append(batch(0, BeginTransactionRecord(name="make"), *topic()), 1)
    metadata.apply(3)
    assert metadata.topics == {}
    assert metadata.applied_offset == 2
    metadata.append(batch(3, EndTransactionRecord(), BeginTransactionRecord()), 1)
    assert metadata.apply(5).changed_topics == {EVENTS}
    assert set(metadata.topics) == {"events"}
    metadata.append(batch(5, *topic(OTHERS, "others"), AbortTransactionRecord()), 1)
    assert not metadata.apply(8)
    assert set(metadata.topics) == {"events"}


def test_leaves_the_image_that_others_hold_as_it_is(metadata: FollowedMetadata) -> None:
    """A change makes another image; what no record has changed is not made again."""
    metadata.append(batch(0, *topic(partitions=2), *topic(OTHERS, "others")), 1)
    metadata.apply(5)
    before, topics = metadata.image, metadata.topics
    change = PartitionChangeRecord(partition_id=0, topic_id=EVENTS, leader=2)
    config = ConfigRecord(resource_type=2, resource_name="events", name="retention.ms", value="5")
    metadata.append(batch(5, change, config), 1)
    assert metadata.apply(7) == Delta(changed_topics={EVENTS}, changed_configs={(2, "events")})
    assert before.partitions_of(EVENTS)[0].leader == 1
    assert topics["events"].config == {}
    assert metadata.image.partitions_of(EVENTS)[0].leader == 2
    assert metadata.topics["events"].partitions[0].leader_epoch == 1
    assert metadata.topics["events"].config == {"retention.ms": "5"}
    assert metadata.topics["others"] is topics["others"]


def test_no_ops_change_nothing(metadata: FollowedMetadata) -> None:
    """The image stays the same object, and the offset moves."""
    metadata.append(batch(0, *topic()), 1)
    metadata.apply(2)
    before = metadata.image
    metadata.append(batch(2, NoOpRecord()), 1)
    assert not metadata.apply(3)
    assert metadata.image is before
    assert metadata.applied_offset == 2


def test_names_what_went_and_what_came_back(metadata: FollowedMetadata) -> None:
    """A topic may come back under its name with another id."""
    metadata.append(batch(0, *topic()), 1)
    metadata.apply(2)
    metadata.append(batch(2, RemoveTopicRecord(topic_id=EVENTS), *topic(OTHERS, "events")), 1)
    assert metadata.apply(5).changed_topics == {EVENTS, OTHERS}
    assert metadata.topics["events"].id == OTHERS


def test_stays_as_it_is_if_a_record_cannot_be_applied(metadata: FollowedMetadata) -> None:
    """Not even the records before it, of the same call, are seen."""
    metadata.append(batch(0, *topic()), 1)
    metadata.apply(2)
    before = metadata.image
    lost = PartitionChangeRecord(partition_id=7, topic_id=EVENTS, leader=2)
    metadata.append(batch(2, *topic(OTHERS, "others")) + batch(4, lost), 1)
    with pytest.raises(BadDirectory, match="offset 4 cannot be applied: partition 7 changes, but was never there"):
        metadata.apply(5)
    assert metadata.image is before
    assert metadata.applied_offset == 1
    assert set(metadata.topics) == {"events"}


def test_cuts_what_the_leader_does_not_have(metadata: FollowedMetadata) -> None:
    """Uncommitted records go, and others come in their place; committed ones never go."""
    metadata.append(batch(0, *topic()) + batch(2, *topic(OTHERS, "others")), 1)
    metadata.apply(2)
    metadata.truncate(1, 2)
    assert metadata.end_offset == 2
    metadata.append(batch(2, NoOpRecord(), epoch=3), 3)
    metadata.apply(3)
    assert set(metadata.topics) == {"events"}
    assert metadata.last_epoch == 3
    with pytest.raises(BadDirectory, match="have lost metadata that were committed"):
        metadata.truncate(1, 1)


def test_refuses_batches_that_cannot_be_right(metadata: FollowedMetadata) -> None:
    """Damaged ones, and ones with a hole before them, which the log could not explain."""
    sent = bytearray(batch(0, *topic()))
    sent[70] ^= 1
    with pytest.raises(BadDirectory, match="metadata that cannot be right"):
        metadata.append(sent, 1)
    with pytest.raises(BadDirectory, match="metadata of offset 5, not of 0"):
        metadata.append(batch(5, *topic()), 1)
    assert metadata.end_offset == 0


def test_begins_again_with_what_it_had(tmp_path: Path) -> None:
    """Until the controllers say what is committed, everything in the log counts; then what they say."""
    metadata = FollowedMetadata(tmp_path)
    metadata.append(batch(0, *topic()) + batch(2, *topic(OTHERS, "others")), 1)
    metadata.apply(2)
    metadata.close()
    again = FollowedMetadata(tmp_path)
    assert set(again.topics) == {"events", "others"}
    assert again.applied_offset == -1
    delta = again.apply(2)
    assert set(again.topics) == {"events"}
    assert delta.changed_topics == {EVENTS}
    assert again.applied_offset == 1
    assert again.apply(4).changed_topics == {OTHERS}
    again.close()


def test_cuts_before_the_first_word_of_the_controllers(tmp_path: Path) -> None:
    """What an earlier process did not know to be committed may go."""
    metadata = FollowedMetadata(tmp_path)
    metadata.append(batch(0, *topic()) + batch(2, *topic(OTHERS, "others")), 1)
    metadata.close()
    again = FollowedMetadata(tmp_path)
    again.truncate(1, 2)
    again.append(batch(2, *topic(UUID(int=3000), "third"), epoch=2), 2)
    again.apply(4)
    assert set(again.topics) == {"events", "third"}
    again.close()


def test_loads_a_snapshot(tmp_path: Path) -> None:
    """It replaces everything, and is found again; the next records continue at its end."""
    metadata = FollowedMetadata(tmp_path)
    metadata.append(batch(0, *topic()), 1)
    metadata.apply(2)
    taken = SnapshotId(40, 3)
    content = snapshot(*topic(OTHERS, "others"), registered_broker(2))
    metadata.write_snapshot(taken, 0, content[:50])
    metadata.write_snapshot(taken, 50, content[50:])
    metadata.load_snapshot(taken)
    assert (metadata.end_offset, metadata.last_epoch, metadata.applied_offset) == (40, 3, 39)
    metadata.append(batch(40, FeatureLevelRecord(name="metadata.version", feature_level=30), epoch=3), 3)
    delta = metadata.apply(41)
    assert delta.changed_topics == {EVENTS, OTHERS}
    assert delta.has_brokers
    assert delta.has_features
    assert set(metadata.topics) == {"others"}
    assert metadata.image.metadata_version == 30
    metadata.close()
    assert read_cluster_log(DISK, tmp_path / FOLDER).next_offset == 41
    again = FollowedMetadata(tmp_path)
    assert set(again.topics) == {"others"}
    assert (again.end_offset, again.applied_offset) == (41, 39)
    again.close()


def test_refuses_a_snapshot_that_is_not_whole(metadata: FollowedMetadata, tmp_path: Path) -> None:
    """Nothing has changed then, and nothing of it stays."""
    metadata.append(batch(0, *topic()), 1)
    metadata.apply(2)
    content = snapshot(*topic(OTHERS, "others"))
    metadata.write_snapshot(SnapshotId(40, 3), 0, content[:-20])
    with pytest.raises(CorruptFile):
        metadata.load_snapshot(SnapshotId(40, 3))
    assert set(metadata.topics) == {"events"}
    assert metadata.end_offset == 2
    assert not [path for path in (tmp_path / FOLDER).iterdir() if "checkpoint" in path.suffixes]


def test_removes_what_a_crash_left_of_a_snapshot(tmp_path: Path) -> None:
    """Parts are removed when the metadata are opened again."""
    metadata = FollowedMetadata(tmp_path)
    metadata.write_snapshot(SnapshotId(40, 3), 0, b"begun")
    again = FollowedMetadata(tmp_path)
    assert not list((tmp_path / FOLDER).glob("*.part"))
    again.close()


def test_begins_after_a_snapshot_that_the_log_does_not_reach(tmp_path: Path) -> None:
    """A crash between the snapshot and the new log loses nothing."""
    metadata = FollowedMetadata(tmp_path)
    metadata.append(batch(0, *topic()), 1)
    metadata.close()
    (tmp_path / FOLDER / SnapshotId(40, 3).file_name).write_bytes(snapshot(*topic(OTHERS, "others")))
    again = FollowedMetadata(tmp_path)
    assert (again.end_offset, again.last_epoch, set(again.topics)) == (40, 3, {"others"})
    again.close()


def test_keeps_the_newest_epoch(tmp_path: Path) -> None:
    """As Kafka writes it; the log may know of a later one."""
    metadata = FollowedMetadata(tmp_path)
    metadata.keep_leader(4, 2)
    metadata.keep_leader(5, 1)
    assert json.loads((tmp_path / FOLDER / "quorum-state").read_bytes()) == {
        "leaderId": 1,
        "leaderEpoch": 5,
        "votedId": -1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }
    metadata.append(batch(0, NoOpRecord(), epoch=5), 5)
    metadata.close()
    again = FollowedMetadata(tmp_path)
    assert again.leader_epoch == 5
    again.append(batch(1, NoOpRecord(), epoch=7), 7)
    assert again.leader_epoch == 7
    again.close()


def test_names_the_voters_of_a_quorum_that_no_record_names(metadata: FollowedMetadata, tmp_path: Path) -> None:
    """With kraft.version 0 they are in the file, as every leader names them."""
    voters = (QuorumVoter(id=101), QuorumVoter(id=102))
    change = LeaderChange(leader_id=101, voters=voters, granting_voters=voters)
    metadata.append(control_batch([change], timestamp_ms=0, leader_epoch=2), 2)
    metadata.apply(1)
    metadata.keep_leader(2, 101)
    kept = json.loads((tmp_path / FOLDER / "quorum-state").read_bytes())
    assert kept["currentVoters"] == [{"voterId": 101}, {"voterId": 102}]
    assert kept["data_version"] == 0


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"leaderEpoch":-1}', b'{"leaderEpoch":"5"}'])
def test_refuses_an_epoch_that_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    """To begin with epoch 0 instead could have this node follow an old leader."""
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "quorum-state").write_bytes(content)
    with pytest.raises(CorruptFile, match="quorum-state"):
        FollowedMetadata(tmp_path)

"""Snapshots that a node writes by itself: they have everything, and the log before them goes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from octavo.log.followed.followed_metadata import FollowedMetadata, difference
from octavo.log.followed.own_snapshots import MetadataLimits
from octavo.log.metadata.cluster_log import FOLDER
from octavo.log.metadata.delta import Delta
from octavo.records.control import Control, Endpoint, KRaftVersion, KRaftVoter, KRaftVoters, control_batch
from octavo.schemas.metadata.access import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    UserScramCredentialRecord,
)
from octavo.schemas.metadata.nodes import BrokerRegistrationChangeRecord, FeatureLevelRecord, RegisterControllerRecord
from octavo.schemas.metadata.progress import (
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    ProducerIdsRecord,
)
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.topics import ConfigRecord, PartitionChangeRecord
from tests.unit.log.followed.test_followed_metadata import EVENTS, OTHERS, batch, topic
from tests.unit.log.metadata.forging import registered_broker

AT_ONCE: Final = MetadataLimits(metadata_log_max_record_bytes_between_snapshots=1)
ELSEWHERE: Final = UUID(int=4000)


def tell(metadata: FollowedMetadata, *records: MetadataRecord) -> None:
    """Append a batch that is committed."""
    metadata.append(batch(metadata.end_offset, *records), 1)
    metadata.apply(metadata.end_offset)


def is_due(metadata: FollowedMetadata) -> bool:
    """Whether a snapshot is due."""
    return metadata.snapshot_is_due


def names(folder: Path, suffix: str) -> list[str]:
    """The files of the metadata log with this suffix."""
    return sorted(path.name for path in (folder / FOLDER).iterdir() if path.name.endswith(suffix))


def tell_everything(metadata: FollowedMetadata) -> None:
    """Append a record of every kind that a snapshot has."""
    voter = KRaftVoter(
        id=1,
        directory_id=UUID(int=900),
        endpoints=(Endpoint(name="CONTROLLER", host="localhost", port=9093),),
        max_supported_version=1,
    )
    controls: list[Control] = [KRaftVersion(kraft_version=1), KRaftVoters(voters=(voter,))]
    metadata.append(control_batch(controls, timestamp_ms=0, leader_epoch=1), 1)
    levels = {"metadata.version": 30, "eligible.leader.replicas.version": 1, "group.version": 1}
    tell(metadata, *(FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()))
    brokers = (registered_broker(number, UUID(int=800 + number)) for number in (2, 3))
    tell(
        metadata, *brokers, BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=7, cordoned_log_dirs=(ELSEWHERE,))
    )
    tell(
        metadata,
        RegisterControllerRecord(
            controller_id=1, incarnation_id=UUID(int=5), zk_migration_ready=False, end_points=(), features=()
        ),
        *topic(partitions=3),
        *topic(OTHERS, "others"),
        PartitionChangeRecord(partition_id=0, topic_id=EVENTS, leader=2, isr=(2,), eligible_leader_replicas=(1,)),
        ConfigRecord(resource_type=2, resource_name="events", name="retention.ms", value="5"),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"),
        ClientQuotaRecord(
            entity=(EntityData(entity_type="user", entity_name=None),),
            key="producer_byte_rate",
            value=7.5,
            remove=False,
        ),
        ProducerIdsRecord(broker_id=2, broker_epoch=7, next_producer_id=5000),
        AccessControlEntryRecord(
            id=UUID(int=6),
            resource_type=2,
            resource_name="events",
            pattern_type=3,
            principal="User:anna",
            host="*",
            operation=2,
            permission_type=3,
        ),
        UserScramCredentialRecord(
            name="anna", mechanism=1, salt=b"salt", stored_key=b"key", server_key=b"key", iterations=4096
        ),
        DelegationTokenRecord(
            owner="User:anna",
            requester="User:anna",
            renewers=("User:bert",),
            issue_timestamp=1,
            max_timestamp=3,
            expiration_timestamp=2,
            token_id="token",
        ),
    )


def test_a_snapshot_has_everything(tmp_path: Path) -> None:
    """What is read from it is what was written, record by record."""
    metadata = FollowedMetadata(tmp_path, limits=AT_ONCE)
    tell_everything(metadata)
    assert is_due(metadata)
    end = metadata.end_offset
    metadata.write_own_snapshot()
    assert not is_due(metadata)
    assert names(tmp_path, ".checkpoint") == [f"{end:020d}-0000000001.checkpoint"]
    before = metadata.image
    metadata.close()
    (tmp_path / FOLDER / f"{0:020d}.log").unlink()
    again = FollowedMetadata(tmp_path)
    assert (again.end_offset, again.last_epoch, again.applied_offset) == (end, 1, end - 1)
    found = difference(before, again.image)
    assert found == Delta(changed_topics=found.changed_topics, has_others=True)
    for topic_id in found.changed_topics:  # only a value that stands for none differs
        states = again.image.partitions_of(topic_id)
        for number, state in before.partitions_of(topic_id).items():
            directories = state.directories or (UUID(int=0),) * 2
            assert states[number] == replace(state, directories=directories)
    for name in ("quotas", "credentials", "access", "tokens", "controllers", "next_producer_id"):
        assert getattr(again.image, name) == getattr(before, name)
    assert (again.image.kraft_version, again.image.voter_details) == (1, before.voter_details)
    again.close()


def test_goes_on_after_its_snapshot(tmp_path: Path) -> None:
    """The log that is left continues the snapshot, and is applied from there on."""
    metadata = FollowedMetadata(tmp_path, limits=AT_ONCE)
    tell(metadata, *topic())
    metadata.write_own_snapshot()
    tell(metadata, PartitionChangeRecord(partition_id=0, topic_id=EVENTS, leader=2))
    metadata.close()
    again = FollowedMetadata(tmp_path)
    assert again.apply(3).changed_topics == {EVENTS}
    assert again.image.partitions_of(EVENTS)[0].leader_epoch == 1
    again.close()


def test_writes_none_inside_a_transaction(tmp_path: Path) -> None:
    """Its records would be lost."""
    metadata = FollowedMetadata(tmp_path, limits=AT_ONCE)
    tell(metadata, BeginTransactionRecord(), *topic())
    assert not is_due(metadata)
    tell(metadata, EndTransactionRecord())
    assert is_due(metadata)
    metadata.close()


def test_is_due_after_bytes_or_time(tmp_path: Path) -> None:
    """Nothing is due where nothing was applied, however long ago the last one was."""
    now = [1_000_000]
    limits = MetadataLimits(
        metadata_log_max_record_bytes_between_snapshots=500, metadata_log_max_snapshot_interval_ms=1000
    )
    metadata = FollowedMetadata(tmp_path, clock=lambda: now[0], limits=limits)
    now[0] += 5000
    assert not is_due(metadata)
    tell(metadata, NoOpRecord())
    assert is_due(metadata)
    metadata.write_own_snapshot()
    tell(metadata, NoOpRecord())
    assert not is_due(metadata)
    tell(metadata, *topic(partitions=10))
    assert is_due(metadata)
    metadata.close()


@pytest.mark.parametrize("is_old", [False, True])
def test_removes_the_past(tmp_path: Path, is_old: bool) -> None:
    """Segments and snapshots before the newest one go, if they are too large or too old; the rest is still whole."""
    now = [1_000_000_000]
    limits = MetadataLimits(
        metadata_log_max_record_bytes_between_snapshots=1,
        metadata_max_retention_bytes=-1 if is_old else 1,
        metadata_max_retention_ms=1000,
        metadata_log_segment_bytes=2000,
    )
    metadata = FollowedMetadata(tmp_path, clock=lambda: now[0], limits=limits)
    for number in range(3):
        tell(metadata, *topic(UUID(int=5000 + number), f"topic-{number}", partitions=20))
        metadata.write_own_snapshot()
        for name in names(tmp_path, ".checkpoint"):
            os.utime(tmp_path / FOLDER / name, (now[0] / 1000, now[0] / 1000))
        now[0] += 2000
    assert len(names(tmp_path, ".checkpoint")) == 1
    logs = names(tmp_path, ".log")
    assert logs[0] > f"{0:020d}.log"
    assert not names(tmp_path, ".deleted")
    metadata.close()
    again = FollowedMetadata(tmp_path)
    assert set(again.topics) == {"topic-0", "topic-1", "topic-2"}
    assert again.end_offset == 63
    again.close()


def test_keeps_the_past_that_is_small_and_young(tmp_path: Path) -> None:
    """A controller may need none of it, but Kafka keeps it, too."""
    metadata = FollowedMetadata(tmp_path, limits=replace(AT_ONCE, metadata_log_segment_bytes=2000))
    for number in range(3):
        tell(metadata, *topic(UUID(int=5000 + number), f"topic-{number}", partitions=20))
        metadata.write_own_snapshot()
    assert len(names(tmp_path, ".checkpoint")) == 3
    metadata.close()

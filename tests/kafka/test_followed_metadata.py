"""Metadata of a broker on the disk: Octavo and Apache Kafka take turns on one folder, and read each other's files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from octavo.log.directory.member_directory import open_member
from octavo.log.followed.followed_metadata import FollowedMetadata, difference
from octavo.log.followed.snapshots import Snapshots, read_snapshot
from octavo.log.metadata.cluster_log import FOLDER, read_cluster_log
from octavo.log.metadata.image import Image
from octavo.log.metadata.image_records import image_records
from octavo.log.storage import DISK
from octavo.records import read_batches
from tests.kafka.broker import Broker
from tests.kafka.client import metadata
from tests.kafka.cluster import CLUSTER_ID, StockCluster
from tests.kafka.played_member import PlayedMember

NODE = 2


@pytest.mark.exhaustive
def test_one_folder_in_turn(tmp_path: Path, java: str) -> None:
    """Formatted by Octavo, written by both, after clean and unclean stops, with the snapshots of both."""
    with StockCluster(tmp_path, settings={"metadata.log.max.record.bytes.between.snapshots": "1500"}) as cluster:
        cluster.start()
        broker = cluster.new_broker(NODE)
        folder = broker.folders[0]
        shutil.rmtree(folder)
        directory = open_member(folder, node_id=NODE, new_cluster_id=lambda: CLUSTER_ID, broker_config={})
        directory_id = directory.directory_id
        directory.close()

        written = _octavo_follows(cluster, folder, directory_id)
        broker.start()
        _change_everything(broker)
        broker.stop()
        assert not broker.troubles
        assert _log_of(folder).startswith(written), "Kafka does not go on where Octavo ended"

        epoch = _epoch(folder)
        written = _octavo_follows(cluster, folder, directory_id)
        assert _epoch(folder) >= epoch
        found = _is_that_of_the_controller(cluster, folder)
        _snapshots_are_the_same(cluster)

        # A snapshot of Octavo alone is all that Kafka finds, and then a folder that Kafka left in a crash.
        _leave_an_own_snapshot_alone(folder)
        broker.start()
        assert {topic.name: topic.topic_id for topic in metadata(broker.port).topics} == found
        assert not [line for line in broker.lines_with("snapshot") if "ERROR" in line or "WARN" in line]
        broker.kill()
        _octavo_follows(cluster, folder, directory_id)
        assert _is_that_of_the_controller(cluster, folder) == found


def _octavo_follows(cluster: StockCluster, folder: Path, directory_id: UUID) -> bytes:
    """Have Octavo be this broker for a while, and die. Returns the last segment."""
    member = PlayedMember(folder, cluster, NODE, directory_id=directory_id)
    member.run_until(lambda: member.is_unfenced)
    offset = member.metadata.applied_offset
    member.run_until(lambda: member.metadata.applied_offset > offset + 1)
    member.end()
    return _log_of(folder)


def _change_everything(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    made = admin.create_topics([NewTopic(f"topic-{number}", 3, 1) for number in range(3)])
    made |= admin.create_topics([NewTopic("settled", 1, 1, config={"min.insync.replicas": "1", "retention.ms": "5"})])
    for future in made.values():
        future.result()
    wanted = (
        (ResourceType.TOPIC, "topic-1", "min.insync.replicas", "1"),
        (ResourceType.BROKER, str(NODE), "log.cleaner.threads", "2"),
    )
    settings = [
        ConfigResource(
            kind, name, incremental_configs=[ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)]
        )
        for kind, name, key, value in wanted
    ]
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    anna = UserScramCredentialUpsertion("anna", info, b"secret", b"salt")
    for future in [
        *admin.incremental_alter_configs(settings).values(),
        *admin.alter_user_scram_credentials([anna]).values(),
        *admin.delete_topics(["topic-2"]).values(),
    ]:
        future.result()


def _is_that_of_the_controller(cluster: StockCluster, folder: Path) -> dict[str, UUID]:
    """Check that a folder has the metadata that the controller has. Returns the topics with their ids."""
    here = FollowedMetadata(folder)
    image, end = here.image, here.end_offset
    here.close()
    there = read_cluster_log(DISK, cluster.controllers[0].folders[0] / FOLDER)
    assert there.next_offset >= end
    found = difference(image, there.image)
    assert not found.changed_topics
    assert not found.changed_configs
    assert not found.has_features
    assert image.brokers.keys() == there.image.brokers.keys()
    assert (image.credentials, image.kraft_version, image.voter_details) == (
        there.image.credentials,
        1,
        there.image.voter_details,
    )
    return {name: topic.id for name, topic in image.topics().items()}


def _snapshots_are_the_same(cluster: StockCluster) -> None:
    """Check that Octavo writes the records that Kafka writes, of every snapshot that the controller has."""
    snapshots = Snapshots(DISK, cluster.controllers[0].folders[0] / FOLDER)
    ids = [each for each in snapshots.all if each.offset > 0]
    assert ids
    for each in ids:
        path = snapshots.path(each)
        image: Image = read_snapshot(DISK, path)
        batches = list(read_batches(path.read_bytes()))
        kafka = [record.value for batch in batches if not batch.is_control for record in batch]
        assert sorted(image_records(image)) == sorted(filter(None, kafka))


def _leave_an_own_snapshot_alone(folder: Path) -> None:
    followed = FollowedMetadata(folder)
    followed.apply(followed.end_offset)
    followed.write_own_snapshot()
    newest = Snapshots(DISK, followed.folder).newest
    followed.close()
    assert newest is not None
    for path in followed.folder.iterdir():
        if path.name not in (newest.file_name, "partition.metadata", "quorum-state"):
            path.unlink()


def _log_of(folder: Path) -> bytes:
    return max((folder / FOLDER).glob("*.log")).read_bytes()


def _epoch(folder: Path) -> int:
    found: int = json.loads((folder / FOLDER / "quorum-state").read_bytes())["leaderEpoch"]
    return found

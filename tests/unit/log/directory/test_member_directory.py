"""The directory of a member of a cluster: its identity, its replicas, and the mark of a clean shutdown."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from octavo.cluster.messages import TopicIdPartition
from octavo.errors import AppendRefused, BadDirectory, CorruptFile, ErrorCode, OthersDecide, UnknownPartition
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.directory.member_directory import MemberDirectory, open_member
from octavo.log.files.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from octavo.log.files.partition_metadata import write_topic_id
from octavo.log.names import Aside, AsideFolder
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from octavo.records.control import LeaderChange, QuorumVoter, control_batch
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.topics import ConfigRecord, PartitionChangeRecord, RemoveTopicRecord
from tests.unit.log.followed.test_followed_metadata import EVENTS, OTHERS, batch, topic

NODE: Final = 2
CLUSTER: Final = "sXwLxGm7TBiLDYLdgdDv4A"


def open_at(path: Path, *, node_id: int = NODE, config: dict[str, str] | None = None) -> MemberDirectory:
    """Open the directory of a broker."""
    return open_member(path, node_id=node_id, new_cluster_id=lambda: CLUSTER, broker_config=config or {})


def tell(directory: MemberDirectory, *records: MetadataRecord) -> None:
    """Have the controllers say something."""
    metadata = directory.metadata
    metadata.append(batch(metadata.end_offset, *records), 1)
    metadata.apply(metadata.end_offset)


def keys(topic_id: UUID, *numbers: int) -> list[TopicIdPartition]:
    """Partitions of a topic."""
    return [TopicIdPartition(topic_id, number) for number in numbers]


def records(offset: int, count: int, *, epoch: int = 0) -> bytes:
    """A batch of a leader."""
    builder = BatchBuilder(base_offset=offset, leader_epoch=epoch)
    for number in range(count):
        builder.append(b"key", b"%d" % number, timestamp_ms=1000)
    return builder.build()


def aside(path: Path, why: Aside) -> list[str]:
    """The partitions whose folders were put aside."""
    parsed: Iterable[AsideFolder] = filter(None, (AsideFolder.parse(each.name) for each in path.iterdir()))
    return sorted(str(each.partition) for each in parsed if each.why is why)


def test_formats_an_empty_folder(tmp_path: Path) -> None:
    """As Kafka does for a broker; the identity stays."""
    directory = open_at(tmp_path / "data")
    found = read_meta_properties(DISK, tmp_path / "data")
    assert found == MetaProperties(cluster_id=CLUSTER, node_id=NODE, directory_id=directory.directory_id)
    assert (directory.node_id, directory.cluster_id, directory.is_in_charge) == (NODE, CLUSTER, False)
    assert directory.epoch_of_clean_shutdown == -1
    directory.close()
    again = open_at(tmp_path / "data")
    assert again.directory_id == directory.directory_id
    again.close()


def test_gives_a_folder_of_an_old_format_a_directory_id(tmp_path: Path) -> None:
    """Kafka does so, too, when it starts."""
    write_meta_properties(DISK, tmp_path, MetaProperties(cluster_id=CLUSTER, node_id=NODE))
    directory = open_at(tmp_path)
    found = read_meta_properties(DISK, tmp_path)
    assert found is not None
    assert found.directory_id == directory.directory_id
    directory.close()


def test_refuses_what_is_not_its_own(tmp_path: Path) -> None:
    """Each with a sentence, and without a change."""
    with pytest.raises(BadDirectory, match="one log directory so far"):
        open_member([tmp_path / "a", tmp_path / "b"], node_id=2, new_cluster_id=lambda: CLUSTER, broker_config={})
    open_at(tmp_path / "a").close()
    with pytest.raises(BadDirectory, match="belongs to node 2, not to node 3"):
        open_at(tmp_path / "a", node_id=3)
    (tmp_path / "b" / "events-0").mkdir(parents=True)
    with pytest.raises(BadDirectory, match=r"no meta\.properties, which tell whose it is, and is not empty"):
        open_at(tmp_path / "b")
    (tmp_path / "c").mkdir()
    write_meta_properties(DISK, tmp_path / "c", MetaProperties(version=0, cluster_id=CLUSTER, node_id=NODE))
    with pytest.raises(BadDirectory, match="time of ZooKeeper"):
        open_at(tmp_path / "c")


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"\xff\xfe\0\1", b"node.id=2\n", b"version=one\n", b"version=1\n"]
)
def test_says_that_the_identity_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "meta.properties").write_bytes(content)
    with pytest.raises(CorruptFile, match=r"meta\.properties") as raised:
        open_at(tmp_path)
    assert "ZooKeeper" not in str(raised.value)


def test_refuses_the_folder_of_a_controller(tmp_path: Path) -> None:
    """Its vote would be forgotten."""
    directory = open_at(tmp_path)
    voters = (QuorumVoter(id=NODE),)
    change = LeaderChange(leader_id=NODE, voters=voters, granting_voters=voters)
    directory.metadata.append(control_batch([change], timestamp_ms=0, leader_epoch=1), 1)
    directory.close()
    with pytest.raises(BadDirectory, match="node 2 is one of the cluster's controllers"):
        open_at(tmp_path)


def test_cannot_be_changed(tmp_path: Path) -> None:
    """The controllers decide; so does nobody who opens it without them."""
    with open_at(tmp_path) as directory:
        tell(directory, *topic())
        for change in (
            lambda: directory.create_topic("mine"),
            lambda: directory.delete_topic("events"),
            lambda: directory.set_config("events", {"retention.ms": "1"}),
            lambda: directory.change_cluster(()),
            lambda: directory.allocate_producer_ids(),
        ):
            with pytest.raises(OthersDecide, match="the controllers of its cluster decide"):
                change()
        directory.lead_all()
        assert set(directory.topics) == {"events"}
    with pytest.raises(OthersDecide):
        DataDirectory.open(tmp_path)


def test_makes_replicas_and_keeps_them(tmp_path: Path) -> None:
    """They are followers, with the high watermark of the checkpoint, before and after a restart."""
    directory = open_at(tmp_path)
    tell(directory, *topic(partitions=2))
    directory.adopt_metadata([], keys(EVENTS, 0, 1))
    log = directory.log_of(*keys(EVENTS, 1))
    assert directory.log("events", 1) is log
    with pytest.raises(AppendRefused) as refused:
        log.append(records(0, 1))
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    log.append_as_follower(records(0, 5))
    assert log.high_watermark == 0
    log.advance_high_watermark(3)
    directory.close()
    again = open_at(tmp_path)
    log = again.log_of(*keys(EVENTS, 1))
    assert (log.end_offset, log.high_watermark) == (5, 3)
    tell(again)
    again.adopt_metadata([], keys(EVENTS, 0, 1))
    assert again.log_of(*keys(EVENTS, 1)) is log
    log.become_leader(4)
    assert log.append(records(0, 1)).base_offset == 5
    assert log.high_watermark == 3
    again.close()


def test_keeps_a_high_watermark_that_fell(tmp_path: Path) -> None:
    """A log that starts over has another one, and an old one would show what is not committed."""
    directory = open_at(tmp_path)
    tell(directory, *topic())
    directory.adopt_metadata([], keys(EVENTS, 0))
    log = directory.log_of(*keys(EVENTS, 0))
    log.append_as_follower(records(0, 50))
    log.advance_high_watermark(50)
    directory.write_checkpoints()
    log.restart_at(0)
    log.append_as_follower(records(0, 50))
    directory.close()
    again = open_at(tmp_path)
    assert again.log_of(*keys(EVENTS, 0)).high_watermark == 0
    again.close()


def test_puts_away_what_the_metadata_no_longer_place_here(tmp_path: Path) -> None:
    """A topic that comes back under its name gets another folder."""
    directory = open_at(tmp_path)
    tell(directory, *topic(partitions=2))
    directory.adopt_metadata([], keys(EVENTS, 0, 1))
    old = directory.log("events", 0)
    old.append_as_follower(records(0, 5))
    tell(directory, RemoveTopicRecord(topic_id=EVENTS), *topic(OTHERS, "events"))
    directory.adopt_metadata(keys(EVENTS, 0, 1), keys(OTHERS, 0))
    assert not old.is_open
    assert directory.log_of(*keys(OTHERS, 0)).end_offset == 0
    with pytest.raises(UnknownPartition):
        directory.log_of(*keys(EVENTS, 0))
    assert aside(tmp_path, Aside.DELETE) == ["events-0", "events-1"]
    assert directory.delete_files(now_ms=directory.now_ms() + 100_000) == 2
    assert aside(tmp_path, Aside.DELETE) == []
    directory.close()


def test_renames_strays_once_the_controllers_have_spoken(tmp_path: Path) -> None:
    """Of an unknown topic, of another topic of the name, of a topic that went elsewhere, and without an id."""
    directory = open_at(tmp_path)
    tell(directory, *topic(partitions=2), *topic(OTHERS, "others"))
    directory.adopt_metadata([], [*keys(EVENTS, 0, 1), *keys(OTHERS, 0)])
    directory.close()
    write_topic_id(DISK, tmp_path / "others-0", uuid.UUID(int=77))
    for name, topic_id in (("gone-0", uuid.UUID(int=78)), ("nameless-0", None)):
        (tmp_path / name).mkdir()
        if topic_id is not None:
            write_topic_id(DISK, tmp_path / name, topic_id)
    again = open_at(tmp_path)
    assert len(again.logs) == 5
    assert aside(tmp_path, Aside.STRAY) == []
    tell(again, PartitionChangeRecord(partition_id=1, topic_id=EVENTS, replicas=(1, 3), isr=(1, 3)))
    found = again.adopt_metadata([], [*keys(EVENTS, 0), *keys(OTHERS, 0)])
    assert sorted(map(str, found)) == ["events-1", "gone-0", "nameless-0", "others-0"]
    assert again.adopt_metadata([], []) == []
    assert aside(tmp_path, Aside.STRAY) == ["events-1", "gone-0", "nameless-0", "others-0"]
    assert again.partitions() == [("events", 0), ("others", 0)]
    assert again.log_of(*keys(OTHERS, 0)).end_offset == 0
    again.close()


def test_applies_settings_that_change(tmp_path: Path) -> None:
    """Of a topic, of this broker and of all; those of others change nothing."""
    directory = open_at(tmp_path, config={"log.retention.ms": "1000"})
    tell(directory, *topic())
    directory.adopt_metadata([], keys(EVENTS, 0))
    log = directory.log("events", 0)
    assert log.config.retention_ms == 1000
    assert log.config_is_known

    def set_config(kind: int, resource: str, name: str, value: str | None) -> None:
        tell(directory, ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value))
        directory.apply_configs()

    set_config(2, "events", "cleanup.policy", "compact")
    assert log.config.cleanup_policy == {"compact"}
    set_config(4, "", "log.retention.ms", "2000")
    set_config(4, "7", "log.retention.ms", "3000")
    assert log.config.retention_ms == 2000
    set_config(4, "2", "log.retention.ms", "4000")
    assert log.config.retention_ms == 4000
    set_config(2, "events", "retention.ms", "5")
    set_config(2, "events", "cleanup.policy", None)
    assert log.config.retention_ms == 5
    assert log.config.cleanup_policy == {"delete"}
    directory.close()


def test_refuses_tiered_topics(tmp_path: Path) -> None:
    """Their records are partly where Octavo cannot read them."""
    directory = open_at(tmp_path)
    tiered = ConfigRecord(resource_type=2, resource_name="events", name="remote.storage.enable", value="true")
    tell(directory, *topic(), tiered)
    with pytest.raises(BadDirectory, match="topic events is tiered"):
        directory.adopt_metadata([], keys(EVENTS, 0))
    assert directory.partitions() == []
    directory.close()


def test_tells_under_which_epoch_it_was_closed(tmp_path: Path) -> None:
    """The mark is there only after a clean close, and a start that was never registered leaves what it found."""

    def mark() -> object:
        return json.loads((tmp_path / ".kafka_cleanshutdown").read_bytes())

    directory = open_at(tmp_path)
    tell(directory, *topic())
    directory.adopt_metadata([], keys(EVENTS, 0))
    directory.set_clean_epoch(42)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    directory.close()
    assert mark() == {"version": 0, "brokerEpoch": 42}
    again = open_at(tmp_path)
    assert again.epoch_of_clean_shutdown == 42
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    again.close()
    assert mark() == {"version": 0, "brokerEpoch": 42}
    (tmp_path / ".kafka_cleanshutdown").unlink()
    crashed = open_at(tmp_path)
    assert crashed.epoch_of_clean_shutdown == -1
    crashed.close()
    assert mark() == {"version": 0, "brokerEpoch": -1}
    failed = open_at(tmp_path)
    failed.note_failure()
    failed.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()

"""The metadata of a directory: made, changed, read again; damaged, lost, and of others."""

from __future__ import annotations

from errno import ENOSPC
from pathlib import Path
from uuid import UUID

import pytest

from octavo.errors import BadDirectory, CorruptFile, InvalidInput, LogError
from octavo.log.files.meta_properties import MetaProperties, random_uuid, read_meta_properties, write_meta_properties
from octavo.log.metadata import MetadataStore
from octavo.log.metadata.cluster_log import read_cluster_log
from octavo.log.storage import DISK, File
from octavo.records import BatchBuilder
from octavo.records.control import LeaderChange, QuorumVoter, control_batch
from octavo.schemas.metadata.progress import BeginTransactionRecord
from octavo.schemas.metadata.serde import write_metadata
from octavo.schemas.metadata.topics import TopicRecord

LOG = "__cluster_metadata-0/00000000000000000000.log"


def opened(*folders: Path, read_only: bool = False) -> MetadataStore:
    return MetadataStore.open(folders, storage=DISK, read_only=read_only, clock=lambda: 1_700_000_000_000)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def add_batch(folder: Path, *values: bytes) -> None:
    """As another writer adds to the log."""
    log = read_cluster_log(DISK, folder / "__cluster_metadata-0")
    builder = BatchBuilder(base_offset=log.next_offset, leader_epoch=log.leader_epoch)
    for value in values:
        builder.append(None, value, timestamp_ms=0)
    with (folder / LOG).open("ab") as file:
        file.write(builder.build())


def test_a_new_directory_gets_an_identity_and_features_that_every_kafka_4_takes(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.image.features == {"metadata.version": 25, "group.version": 1, "transaction.version": 2}
    assert (store.node_id, store.image.voters, store.image.kraft_version) == (1, (1,), 1)
    identity = read_meta_properties(DISK, tmp_path)
    assert identity == store.identity[tmp_path]
    assert identity is not None
    assert store.image.voter_details[0].directory_id == identity.directory_id


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    opened(tmp_path).create_topic("events", 2, {"retention.ms": "5"})
    before = files(tmp_path)
    again = opened(tmp_path)
    assert files(tmp_path) == before
    assert list(again.topics) == ["events"]


def test_topics_are_made_changed_and_deleted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    topic = store.create_topic("events", 3, {"retention.ms": "5", "segment.bytes": "1048576"})
    store.create_topic("gone", 1, {"retention.ms": "6"}, topic_id=UUID(int=777))
    store.delete_topic("gone")
    store.set_config("events", {"retention.ms": None, "cleanup.policy": "compact"})
    for view in (store, opened(tmp_path, read_only=True)):
        assert list(view.topics) == ["events"]
        assert view.topics["events"].id == topic.id
        assert view.topics["events"].config == {"segment.bytes": "1048576", "cleanup.policy": "compact"}
        assert sorted(view.topics["events"].partitions) == [0, 1, 2]
        state = view.topics["events"].partitions[1]
        assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((1,), (1,), 1, 0)
        assert view.is_here(state)
        assert view.folder_of(state) == tmp_path


def test_what_cannot_be_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    store = opened(tmp_path)
    topic = store.create_topic("events", 1, {})
    before = files(tmp_path)
    with pytest.raises(InvalidInput):
        store.create_topic("events", 1, {})
    with pytest.raises(InvalidInput):
        store.create_topic("other", 1, {}, topic_id=topic.id)
    with pytest.raises(InvalidInput):
        store.create_topic("other", 0, {})
    with pytest.raises(InvalidInput):
        store.create_topic("no/name", 1, {})
    with pytest.raises(InvalidInput, match="more than"):
        store.create_topic("other", 1, {f"name.{number}": "x" * 30_000 for number in range(300)})
    with pytest.raises(InvalidInput):
        store.delete_topic("other")
    with pytest.raises(InvalidInput):
        store.set_config("other", {})
    with pytest.raises(LogError):
        opened(tmp_path, read_only=True).create_topic("other", 1, {})
    assert files(tmp_path) == before


def test_reading_a_folder_that_is_nobodys_writes_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path, read_only=True)
    assert (len(store.topics), store.identity, store.node_id) == (0, {}, None)
    assert files(tmp_path) == {}


def test_partitions_go_where_the_fewest_are(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    store = opened(one, two)
    assert store.identity[one].cluster_id == store.identity[two].cluster_id
    store.create_topic("a", 1, {})
    store.create_topic("b", 3, {})
    store.create_topic("c", 1, {}, folders=[two])
    found = {
        f"{topic.name}-{number}": store.folder_of(state)
        for topic in store.topics.values()
        for number, state in topic.partitions.items()
    }
    assert found == {"a-0": one, "b-0": two, "b-1": one, "b-2": two, "c-0": two}
    assert opened(two, one).metadata_folder == one  # in whatever order they are given


def test_a_folder_is_added(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    first = opened(one)
    both = opened(one, two)
    assert both.identity[two].cluster_id == first.identity[one].cluster_id
    assert both.identity[two].directory_id != both.identity[one].directory_id


def test_folders_of_different_clusters_are_no_directory(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        opened(folder)
    ids = {folder: opened(folder).cluster_id for folder in (one, two)}
    with pytest.raises(BadDirectory, match=f"two: it belongs to cluster {ids[two]}, but .*one to cluster {ids[one]}"):
        opened(one, two)


def test_folders_of_different_nodes_are_no_directory(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for node, folder in enumerate((one, two), 1):
        folder.mkdir()
        write_meta_properties(DISK, folder, MetaProperties(cluster_id="same", node_id=node))
    with pytest.raises(BadDirectory, match=r"two: it belongs to node 2, but .*one to node 1"):
        opened(one, two)


def test_a_copy_of_a_folder_is_no_second_folder(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    opened(one)
    (two / "meta.properties").write_bytes((one / "meta.properties").read_bytes())
    with pytest.raises(BadDirectory, match="one is a copy of the other"):
        opened(one, two)


def test_a_crash_before_the_log_is_there_leaves_a_new_directory(tmp_path: Path) -> None:
    opened(tmp_path)
    (tmp_path / LOG).unlink()
    (tmp_path / "meta.properties").unlink()
    store = opened(tmp_path)
    assert store.image.voter_details[0].directory_id == store.identity[tmp_path].directory_id
    store.create_topic("events", 1, {})


def test_a_crash_before_all_folders_have_an_identity_leaves_the_voter_its_directory(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    opened(one, two)
    (one / "meta.properties").unlink()
    store = opened(two, one)
    assert store.identity[one].directory_id == store.image.voter_details[0].directory_id


def test_a_lost_identity_is_found_in_the_metadata(tmp_path: Path) -> None:
    topic = opened(tmp_path).create_topic("events", 1, {})
    (tmp_path / "meta.properties").unlink()
    store = opened(tmp_path)
    assert store.identity[tmp_path].directory_id == topic.partitions[0].directories[0]
    assert store.topics["events"] == topic


@pytest.mark.parametrize("tail", [b"\x00" * 100, b"garbage " * 20, b"\x00"])
def test_a_tail_that_is_no_batch_is_not_there_and_goes_with_the_next_change(tmp_path: Path, tail: bytes) -> None:
    opened(tmp_path).create_topic("events", 1, {})
    whole = (tmp_path / LOG).read_bytes()
    (tmp_path / LOG).write_bytes(whole + tail)
    store = opened(tmp_path)
    assert list(store.topics) == ["events"]
    assert (tmp_path / LOG).read_bytes() == whole + tail
    store.create_topic("more", 1, {})
    assert (tmp_path / LOG).read_bytes().startswith(whole)
    assert list(opened(tmp_path).topics) == ["events", "more"]


def test_a_change_that_was_cut_never_was(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.create_topic("events", 1, {})
    size = (tmp_path / LOG).stat().st_size
    store.create_topic("more", 1, {})
    whole = (tmp_path / LOG).read_bytes()
    for cut in range(size, len(whole)):
        (tmp_path / LOG).write_bytes(whole[:cut])
        assert list(opened(tmp_path, read_only=True).topics) == ["events"]


def test_damage_with_good_batches_behind_it_is_told(tmp_path: Path) -> None:
    opened(tmp_path).create_topic("events", 1, {})
    data = bytearray((tmp_path / LOG).read_bytes())
    data[70] ^= 1
    (tmp_path / LOG).write_bytes(data)
    with pytest.raises(CorruptFile, match=r"00000000000000000000\.log: at byte 0: checksum"):
        opened(tmp_path)
    assert (tmp_path / LOG).read_bytes() == data


@pytest.mark.parametrize("value", [b"\x01\x02\x00", write_metadata(TopicRecord(name="events", topic_id=UUID(int=7)))])
def test_a_record_that_cannot_be_there_is_told(tmp_path: Path, value: bytes) -> None:
    opened(tmp_path).create_topic("events", 1, {})
    add_batch(tmp_path, value)
    with pytest.raises(CorruptFile):
        opened(tmp_path)


def test_a_record_of_a_later_kafka_keeps_nobody_from_reading_and_adding(tmp_path: Path) -> None:
    opened(tmp_path)
    add_batch(tmp_path, b"\x01\x63\x00abc")
    store = opened(tmp_path)
    assert [record.type for record in store.image.unknown] == [99]
    store.create_topic("events", 1, {})
    assert list(opened(tmp_path).topics) == ["events"]


def test_a_transaction_that_was_left_open_is_aborted_before_anything_is_added(tmp_path: Path) -> None:
    opened(tmp_path)
    add_batch(
        tmp_path,
        write_metadata(BeginTransactionRecord(name="left")),
        write_metadata(TopicRecord(name="half", topic_id=random_uuid())),
    )
    store = opened(tmp_path)
    assert store.topics == {}
    store.create_topic("events", 1, {})
    assert list(store.topics) == ["events"]
    assert list(opened(tmp_path).topics) == ["events"]


def test_a_full_disk_leaves_the_metadata_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    store.create_topic("events", 1, {})
    before = files(tmp_path)

    def no_room(self: File) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(File, "sync", no_room)
    with pytest.raises(OSError, match="No space"):
        store.create_topic("more", 1, {})
    monkeypatch.undo()
    assert files(tmp_path) == before
    assert list(store.topics) == ["events"]
    store.create_topic("more", 1, {})
    assert list(opened(tmp_path).topics) == ["events", "more"]


def test_where_others_vote_topics_are_read_but_not_changed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.create_topic("events", 1, {})
    log = read_cluster_log(DISK, tmp_path / "__cluster_metadata-0")
    voters = tuple(QuorumVoter(id=number) for number in (1, 2, 3))
    change = LeaderChange(leader_id=2, voters=voters, granting_voters=voters)
    with (tmp_path / LOG).open("ab") as file:
        file.write(control_batch([change], base_offset=log.next_offset, timestamp_ms=0, leader_epoch=2))
    again = opened(tmp_path)
    assert list(again.topics) == ["events"]
    before = files(tmp_path)
    with pytest.raises(BadDirectory, match="not node 1 but the controllers 1, 2, 3 decide on its topics"):
        again.create_topic("more", 1, {})
    assert files(tmp_path) == before


def test_a_directory_of_zookeepers_is_read_and_becomes_one_of_kraft_with_the_first_topic(tmp_path: Path) -> None:
    write_meta_properties(DISK, tmp_path, MetaProperties(version=0, cluster_id="abc", node_id=0))
    store = opened(tmp_path)
    assert (len(store.topics), store.node_id) == (0, 0)
    assert store.identity[tmp_path].version == 0
    store.create_topic("events", 1, {})
    identity = opened(tmp_path).identity[tmp_path]
    assert (identity.version, identity.cluster_id, identity.node_id) == (1, "abc", 0)
    assert opened(tmp_path).topics["events"].partitions[0].directories == (identity.directory_id,)


def test_where_the_metadata_are_kept_elsewhere_topics_are_not_made(tmp_path: Path) -> None:
    identity = MetaProperties(cluster_id="abc", node_id=4, directory_id=random_uuid())
    write_meta_properties(DISK, tmp_path, identity)
    store = opened(tmp_path)
    with pytest.raises(BadDirectory, match=r"give the folder of metadata\.log\.dir as well"):
        store.create_topic("events", 1, {})
    assert list(files(tmp_path)) == ["meta.properties"]

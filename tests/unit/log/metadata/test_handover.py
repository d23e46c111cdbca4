"""Handing a directory over: what is made good, what is refused, and what the command says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from octavo.cli import main
from octavo.cli.exits import COULD_NOT_RUN, FINE
from octavo.errors import BadDirectory, DirectoryLocked, OctavoError
from octavo.log.files.meta_properties import MetaProperties, write_meta_properties
from octavo.log.files.partition_metadata import read_topic_id, write_topic_id
from octavo.log.files.text_checkpoint import EpochEntry, write_epochs
from octavo.log.metadata import MetadataStore, handover
from octavo.log.metadata.cluster_log import read_cluster_log
from octavo.log.names import TopicPartition
from octavo.log.ownership.lock import DirectoryLock
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from octavo.records.control import LeaderChange, QuorumVoter, control_batch

EVENTS_0 = TopicPartition("events", 0)
METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"


def metadata_of(*folders: Path) -> MetadataStore:
    return MetadataStore.open(folders, storage=DISK, read_only=True)


def directory(folder: Path, *, partitions: int = 2, leader_epoch: int = 0) -> UUID:
    """A directory with a topic `events`; its id."""
    folder.mkdir(exist_ok=True)
    store = MetadataStore.open([folder], storage=DISK, read_only=False)
    topic = store.create_topic("events", partitions, {"segment.bytes": "1048576"})
    for number in range(partitions):
        partition(folder, TopicPartition("events", number), topic.id, leader_epoch=leader_epoch)
    return topic.id


def partition(folder: Path, which: TopicPartition, topic_id: UUID | None, *, leader_epoch: int = 0) -> Path:
    path = folder / which.folder
    path.mkdir()
    if topic_id is not None:
        write_topic_id(DISK, path, topic_id)
    builder = BatchBuilder(leader_epoch=leader_epoch)
    builder.append(b"key", b"value", timestamp_ms=1)
    (path / "00000000000000000000.log").write_bytes(builder.build())
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_what_is_complete_is_left_as_it_is_but_has_no_leader(tmp_path: Path) -> None:
    directory(tmp_path)
    before = files(tmp_path)
    done = handover([tmp_path])
    after = files(tmp_path)
    assert [name for name in after if before.get(name) != after[name]] == [METADATA_LOG]
    states = metadata_of(tmp_path).topics["events"].partitions.values()
    assert [(state.leader, state.isr, state.leader_epoch) for state in states] == [(-1, (1,), 1)] * 2
    handover([tmp_path])
    assert files(tmp_path) == after
    assert dict(done.topics) == {"events": 2}
    assert (done.adopted, done.raised, done.missing, done.node_id) == ((), (), (), 1)
    assert done.unclean == (tmp_path,)
    assert done.settings["node.id"] == "1"
    assert done.settings["log.dirs"] == str(tmp_path)


def test_leader_epochs_are_brought_up_to_those_of_the_logs(tmp_path: Path) -> None:
    directory(tmp_path, leader_epoch=5)
    write_epochs(DISK, tmp_path / "events-0" / "leader-epoch-checkpoint", [EpochEntry(1, 0), EpochEntry(9, 1)])
    done = handover([tmp_path])
    assert done.raised == (EVENTS_0, TopicPartition("events", 1))
    states = metadata_of(tmp_path).topics["events"].partitions
    assert [(state.leader_epoch, state.partition_epoch) for state in states.values()] == [(10, 1), (6, 1)]
    assert handover([tmp_path]).raised == ()


def test_topics_that_the_metadata_do_not_know_are_added_and_kept_for_ever(tmp_path: Path) -> None:
    directory(tmp_path)
    topic_id = UUID(int=12345)
    partition(tmp_path, TopicPartition("found", 2), topic_id, leader_epoch=3)
    partition(tmp_path, TopicPartition("nameless", 0), None)
    done = handover([tmp_path])
    assert done.adopted == ("found", "nameless")
    assert done.missing == (TopicPartition("found", 0), TopicPartition("found", 1))
    topics = metadata_of(tmp_path).topics
    assert topics["found"].id == topic_id
    assert topics["found"].config == {"retention.ms": "-1"}
    assert topics["found"].partitions[2].leader_epoch == 4  # it has no leader
    assert read_topic_id(DISK, tmp_path / "nameless-0") == topics["nameless"].id


def test_topics_of_kafkas_own_state_are_added_as_compacted(tmp_path: Path) -> None:
    for name in ("__consumer_offsets", "__transaction_state", "__share_group_state"):
        partition(tmp_path, TopicPartition(name, 0), None)
    handover([tmp_path])
    assert {name: dict(topic.config) for name, topic in metadata_of(tmp_path).topics.items()} == {
        "__consumer_offsets": {"cleanup.policy": "compact"},
        "__transaction_state": {"cleanup.policy": "compact"},
        "__share_group_state": {"retention.ms": "-1"},  # as Kafka makes it: what it needs no more it deletes itself
    }


def test_a_folder_of_nothing_but_partitions_becomes_a_directory(tmp_path: Path) -> None:
    partition(tmp_path, EVENTS_0, UUID(int=12345))
    done = handover([tmp_path])
    assert done.adopted == ("events",)
    assert metadata_of(tmp_path).topics["events"].id == UUID(int=12345)


def test_a_partition_is_assigned_to_the_folder_that_it_is_in(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    directory(one)
    two.mkdir()
    (one / "events-1").rename(two / "events-1")
    done = handover([one, two])
    store = metadata_of(one, two)
    states = store.topics["events"].partitions
    assert [store.folder_of(state) for state in states.values()] == [one, two]
    assert done.settings["log.dirs"] == f"{one},{two}"
    assert done.settings["metadata.log.dir"] == str(one)


def refused(folder: Path, sentence: str, *others: Path, error: type[OctavoError] = BadDirectory) -> None:
    before = list(map(files, (folder, *others)))
    with pytest.raises(error, match=sentence):
        handover([folder, *others])
    assert list(map(files, (folder, *others))) == before
    assert not any((each / ".lock").exists() for each in (folder, *others))


def test_a_folder_of_another_topic_of_the_same_name_is_refused(tmp_path: Path) -> None:
    directory(tmp_path)
    write_topic_id(DISK, tmp_path / "events-1", UUID(int=777))
    refused(tmp_path, "events-1: it is of a topic with the id AAAAAAAAAAAAAAAAAAADCQ, but events is")


def test_two_strange_partitions_with_different_ids_are_refused(tmp_path: Path) -> None:
    partition(tmp_path, TopicPartition("found", 0), UUID(int=777))
    partition(tmp_path, TopicPartition("found", 1), UUID(int=778))
    refused(tmp_path, "move one of them away")


def test_two_strange_topics_with_one_id_are_refused(tmp_path: Path) -> None:
    partition(tmp_path, TopicPartition("found", 0), UUID(int=777))
    partition(tmp_path, TopicPartition("too", 0), UUID(int=777))
    refused(tmp_path, "too-0: its topic has the id of found, AAAAAAAAAAAAAAAAAAADCQ: move one of them away")


def test_a_strange_topic_with_the_id_of_a_known_one_is_refused(tmp_path: Path) -> None:
    partition(tmp_path, TopicPartition("copy", 0), directory(tmp_path))
    refused(tmp_path, "copy-0: its topic has the id of events")


@pytest.mark.parametrize(
    ("name", "rubbish"),
    [
        ("leader-epoch-checkpoint", b"0\nrubbish\n"),
        ("partition.metadata", b"0\nrubbish\n"),
        ("00000000000000000000.log", bytes(100)),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_written(tmp_path: Path, name: str, rubbish: bytes) -> None:
    partition(tmp_path, TopicPartition("first", 0), None)
    path = partition(tmp_path, TopicPartition("second", 0), None)
    (path / name).write_bytes(rubbish)
    refused(tmp_path, name, error=OctavoError)
    known = tmp_path / "known"
    known.mkdir()
    for each in ("first-0", "second-0"):
        (tmp_path / each).rename(known / each)
    directory(known)
    refused(known, name, error=OctavoError)


def test_where_others_decide_a_new_folder_gets_no_identity(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    directory(one)
    two.mkdir()
    log = read_cluster_log(DISK, one / "__cluster_metadata-0")
    voters = tuple(QuorumVoter(id=number) for number in (1, 2, 3))
    change = LeaderChange(leader_id=2, voters=voters, granting_voters=voters)
    with (one / "__cluster_metadata-0" / "00000000000000000000.log").open("ab") as file:
        file.write(control_batch([change], base_offset=log.next_offset, timestamp_ms=0, leader_epoch=2))
    refused(one, "not node 1 but the controllers 1, 2, 3 decide on its topics", two)


def test_where_the_metadata_are_elsewhere_a_new_folder_gets_no_identity(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    write_meta_properties(DISK, one, MetaProperties(cluster_id="abc", node_id=3, directory_id=UUID(int=12345)))
    refused(one, "its topics are kept somewhere else", two)
    (one / "bootstrap.checkpoint").write_bytes(b"rubbish" * 20)
    refused(one, "bootstrap.checkpoint", two, error=OctavoError)


def test_a_partition_too_many_is_refused(tmp_path: Path) -> None:
    topic_id = directory(tmp_path)
    partition(tmp_path, TopicPartition("events", 2), topic_id)
    refused(tmp_path, "the metadata say that node 1 has no such partition")


def test_a_folder_that_kafka_would_not_start_on_is_refused(tmp_path: Path) -> None:
    directory(tmp_path)
    (tmp_path / "backup").mkdir()
    refused(tmp_path, "backup")


def test_an_empty_folder_and_none_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, "nothing in it that could be handed over")
    with pytest.raises(BadDirectory, match="there is no such folder"):
        handover([tmp_path / "missing"])


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    directory(tmp_path)
    with DirectoryLock.acquire(tmp_path), pytest.raises(DirectoryLocked):
        handover([tmp_path])


def test_the_command_says_what_was_done_and_what_kafka_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory(tmp_path, leader_epoch=4)
    partition(tmp_path, TopicPartition("found", 1), None)
    partition(tmp_path, TopicPartition("__consumer_offsets", 0), None)
    assert main(["handover", str(tmp_path)]) == FINE
    told = capsys.readouterr().out
    assert f"{tmp_path}: ready for Apache Kafka 4.x\n" in told
    assert "3 topics, 5 partitions" in told
    assert "not in the metadata until now: __consumer_offsets. Kafka compacts them (cleanup.policy=compact)\n" in told
    assert "not in the metadata until now: found. Their configuration is not known" in told
    assert "leader epochs brought up to those of the logs: events-0, events-1" in told
    assert "without a folder, Kafka makes them empty: found-0" in told
    assert "\n  node.id=1\n" in told
    assert "\n  controller.quorum.bootstrap.servers=localhost:9093\n" in told


def test_the_help_says_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["handover", "--help"]) == FINE
    told = capsys.readouterr().out
    for part in ("Metadata are written", "do not know are added", "(retention.ms=-1)", "(cleanup.policy=compact)"):
        assert part in told


def test_the_command_refuses_with_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["handover", str(tmp_path / "missing")]) == COULD_NOT_RUN
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"octavo: {tmp_path}/missing: there is no such folder\n"


def test_the_log_needs_no_kio_before_there_are_metadata_to_read() -> None:
    code = "import sys; from octavo.log import DataDirectory, Log, Producer, Consumer; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"kio", "octavo.log.metadata", "octavo.schemas"} & set(done.stdout.split())


def test_an_empty_text_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = files(tmp_path)
    assert main(["handover", ""]) == COULD_NOT_RUN
    assert "'' is no path to a folder" in capsys.readouterr().err
    assert files(tmp_path) == before
    assert not (tmp_path / ".lock").exists()


def test_the_folder_of_a_partition_is_refused_and_left_without_a_lock(tmp_path: Path) -> None:
    directory(tmp_path)
    refused(tmp_path / "events-0", "it is inside the data directory")
    (tmp_path / "meta.properties").unlink()
    refused(tmp_path / "events-0", "this is the folder of a partition")


def test_where_one_folder_is_in_use_the_others_are_left_without_a_lock(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    directory(two)
    with DirectoryLock.acquire(two), pytest.raises(DirectoryLocked):
        handover([one, two])
    assert not (one / ".lock").exists()

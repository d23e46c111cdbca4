"""Which partitions a path leads to, and which replica of several is the log."""

from __future__ import annotations

import logging
import re
import shutil
from pathlib import Path

import pytest

from octavo.errors import BadDirectory, InvalidInput, MissingPartitions
from octavo.log import DataDirectory
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.files.meta_properties import MetaProperties, write_meta_properties
from octavo.log.names import TopicPartition
from octavo.log.storage import DISK
from octavo.log.watched.watched_log import WatchedLog
from octavo.spark import OctavoSource
from octavo.spark.files import Root
from octavo.spark.options import read_options
from octavo.spark.partitions import Replica, find_partitions
from octavo.spark.ranges import Logs
from tests.unit.spark.queries import offsets, read
from tests.unit.spark.topics import SMALL, TIME_MS, batch, write_topic


def topics(*paths: Path | str, **options: str) -> list[tuple[str, int]]:
    """Topic and partition of what is read there."""
    rows = read(",".join(map(str, paths)), columns="topic,partition", **options)
    return sorted({(row["topic"], row["partition"]) for row in rows})


def test_a_path_is_a_directory_a_partition_a_file_or_a_pattern(tmp_path: Path) -> None:
    write_topic(tmp_path, "a", 2, batches=30)
    write_topic(tmp_path, "a.b-c", batches=30)
    assert topics(tmp_path) == [("a", 0), ("a", 1), ("a.b-c", 0)]
    assert topics(tmp_path / "a-1") == [("a", 1)]
    assert topics(tmp_path / "a-*") == [("a", 0), ("a", 1)]
    assert topics(tmp_path / "a-1", tmp_path / "a.b-c-0") == [("a", 1), ("a.b-c", 0)]
    first, second, *_ = sorted((tmp_path / "a-0").glob("*.log"))
    assert offsets(first) == list(range(int(second.stem)))
    assert offsets(second)[0] == int(second.stem)
    with pytest.raises(BadDirectory, match="this is no segment of a partition"):
        read(first.with_suffix(".index"))


def test_several_files_of_a_partition_are_read_together(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=30)
    files = sorted((tmp_path / "events-0").glob("*.log"))
    bases = [int(path.stem) for path in files]
    assert len(files) == 4
    assert offsets(tmp_path / "events-0" / "*.log") == list(range(150))
    expected = [*range(bases[0], bases[1]), *range(bases[2], bases[3])]
    assert offsets(f"{files[2]},{files[0]},{files[2]}") == expected
    assert offsets(f"{files[2]},{files[0]}", startingTimestamp=str(TIME_MS + bases[1] * 10)) == expected[bases[1] :]
    assert offsets(f"{files[1]},{tmp_path},{files[2]}") == list(range(150))


def test_topics_are_subscribed_to_assigned_or_matched(tmp_path: Path) -> None:
    for topic in ("orders", "returns", "__consumer_offsets"):
        with DataDirectory.open(tmp_path) as data:
            data.create_topic(topic, 2, SMALL)
            for partition in (0, 1):
                data.log(topic, partition).append(batch(0))
    assert topics(tmp_path, subscribe="orders") == [("orders", 0), ("orders", 1)]
    assert topics(tmp_path, assign='{"orders":[1,7],"returns":[0]}') == [("orders", 1), ("returns", 0)]
    assert topics(tmp_path, subscribePattern="ret.*|x") == [("returns", 0), ("returns", 1)]
    assert topics(tmp_path, subscribePattern="rder") == [("orders", 0), ("orders", 1)]
    assert topics(tmp_path, subscribePattern="^rder") == []
    assert topics(tmp_path, subscribePattern=".*ers") == [("orders", 0), ("orders", 1)]
    assert topics(tmp_path) == [("orders", 0), ("orders", 1), ("returns", 0), ("returns", 1)]
    assert topics(tmp_path, subscribe="__consumer_offsets") == [("__consumer_offsets", 0), ("__consumer_offsets", 1)]
    assert topics(tmp_path / "__consumer_offsets-1") == [("__consumer_offsets", 1)]
    assert topics(tmp_path, subscribePattern="nothing") == []


def replica(folder: Path, count: int, epochs: str) -> Path:
    """A directory with one partition, of `count` records, and what it knows of its leaders."""
    write_topic(folder, batches=count // 5)
    (folder / "events-0" / "leader-epoch-checkpoint").write_text(epochs)
    (folder / "events-0" / "partition.metadata").unlink(missing_ok=True)
    (folder / "replication-offset-checkpoint").unlink(missing_ok=True)
    join_cluster(folder)
    return folder


def join_cluster(folder: Path, cluster_id: str = "one") -> None:
    """Have a directory say that it belongs to this cluster."""
    write_meta_properties(DISK, folder, MetaProperties(cluster_id=cluster_id, node_id=1))


def test_of_replicas_the_one_with_the_higher_last_epoch_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = replica(tmp_path / "1", 60, "0\n2\n0 0\n1 20\n")
    new = replica(tmp_path / "2", 40, "0\n3\n0 0\n1 20\n3 30\n")
    with caplog.at_level(logging.WARNING, "octavo.spark"):
        assert offsets(f"{old},{new}") == list(range(40))
    (warning,) = caplog.messages
    assert warning.startswith("events-0: offsets 30 to 59 in ")
    assert str(old) in warning


def test_of_replicas_of_one_epoch_the_longer_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shorter = replica(tmp_path / "1", 40, "0\n1\n0 0\n")
    longer = replica(tmp_path / "2", 60, "0\n1\n0 0\n")
    with caplog.at_level(logging.WARNING, "octavo.spark"):
        assert offsets(tmp_path / "*") == offsets(f"{longer},{shorter}") == list(range(60))
    assert not caplog.messages


def test_topics_of_one_name_and_different_ids_are_refused_when_they_are_loaded(tmp_path: Path) -> None:
    for name in ("1", "2"):
        write_topic(tmp_path / name, batches=1)
        join_cluster(tmp_path / name)
    with pytest.raises(InvalidInput, match="are not replicas: they belong to different topics named 'events'"):
        OctavoSource({"path": str(tmp_path / "*")}).schema()


@pytest.mark.parametrize("second", ["events-0", "events-1"])
def test_a_topic_in_directories_of_different_clusters_is_refused(tmp_path: Path, second: str) -> None:
    one = replica(tmp_path / "1", 40, "0\n1\n0 0\n")
    two = replica(tmp_path / "2", 60, "0\n1\n0 0\n")
    if second != "events-0":
        (two / "events-0").rename(two / second)
    assert len(offsets(f"{one},{two}")) == (60 if second == "events-0" else 100)
    join_cluster(two, "another")
    expected = f"{two / second}: it belongs to cluster another, but {one / 'events-0'} to cluster one"
    with pytest.raises(BadDirectory, match=re.escape(expected)):
        OctavoSource({"path": f"{one},{two}"}).schema()
    with pytest.raises(BadDirectory, match=re.escape(expected)):
        Logs(read_options({"path": f"{one},{two}"}), decides=True).look()


def test_different_topics_of_different_clusters_are_read_together(tmp_path: Path) -> None:
    write_topic(tmp_path / "1", "orders", batches=1)
    write_topic(tmp_path / "2", "returns", batches=1)
    assert topics(tmp_path / "*") == [("orders", 0), ("returns", 0)]


def test_a_replica_without_segments_does_not_hide_the_others(tmp_path: Path) -> None:
    write_topic(tmp_path / "1", partitions=2, batches=2)
    (tmp_path / "2" / "events-0").mkdir(parents=True)
    assert topics(tmp_path / "*") == [("events", 0), ("events", 1)]


def test_a_partition_without_segments_is_not_there_yet(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=2)
    (tmp_path / "new-0").mkdir()
    assert topics(tmp_path) == [("events", 0)]
    with pytest.raises(BadDirectory, match="there are no segments in this folder"):
        read(tmp_path, subscribe="new")


def test_a_partition_that_cannot_be_read_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_topic(tmp_path, partitions=2, batches=2)
    open_replica = Replica.open

    def fail(replica: Replica, checkpoints: WatchedCheckpoints | None = None) -> WatchedLog:
        if replica.partition.partition == 1:
            raise BadDirectory(replica.folder, "it cannot be read")
        return open_replica(replica, checkpoints)

    monkeypatch.setattr(Replica, "open", fail)
    with pytest.raises(BadDirectory, match="events-1: it cannot be read"):
        read(tmp_path)


def test_replicas_stay_open_from_look_to_look_and_what_parts_them_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = replica(tmp_path / "1", 60, "0\n2\n0 0\n1 20\n")
    new = replica(tmp_path / "2", 40, "0\n3\n0 0\n1 20\n3 30\n")
    opened = []
    open_replica = Replica.open

    def count(replica: Replica, checkpoints: WatchedCheckpoints | None = None) -> WatchedLog:
        opened.append(replica.folder)
        return open_replica(replica, checkpoints)

    monkeypatch.setattr(Replica, "open", count)
    logs = Logs(read_options({"path": f"{old},{new}"}), decides=True)
    with caplog.at_level(logging.WARNING, "octavo.spark"):
        for _ in range(3):
            (source,) = logs.look().values()
            assert (source.replica.folder.parent, source.end) == (new, 40)
    assert len(opened) == 2
    assert len(caplog.messages) == 1
    (old / "events-0" / "leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
    (source,) = logs.look().values()
    assert (source.replica.folder.parent, source.end) == (old, 60)
    assert len(opened) == 2


def test_the_same_folder_twice_is_one(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=2)
    assert offsets(f"{tmp_path},{tmp_path},{tmp_path / 'events-0'}") == list(range(10))


def test_the_same_folder_by_several_paths_is_one_replica(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=2)
    found = find_partitions(read_options({"path": f"{tmp_path},{tmp_path / 'events-0'}"}))
    assert [len(replicas) for replicas in found.values()] == [1]


def test_what_is_missing_is_told_when_it_is_loaded_unless_a_stream_may_go_on_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_topic(tmp_path, batches=2)
    for options in ({"subscribe": "events,gone"}, {"startingOffsets": '{"events":{"0":1},"gone":{"0":1}}'}):
        with pytest.raises(MissingPartitions) as refused:
            OctavoSource({"path": str(tmp_path)} | options).schema()
        caplog.clear()
        source = OctavoSource({"path": str(tmp_path), "failOnDataLoss": "false"} | options)
        reader = source.reader(source.schema())
        assert caplog.messages == [str(refused.value)]
        with pytest.raises(MissingPartitions):
            reader.partitions()


def test_secrets_in_an_address_are_not_told() -> None:
    root = Root("s3://key:secret@bucket/data?secret_key=secret")
    assert str(Replica(TopicPartition("a", 0), root, Path("bucket/data/a-0"))) == "bucket/data/a-0 of s3://bucket/data"


def test_folders_that_are_put_aside_are_not_read(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=2)
    shutil.copytree(tmp_path / "events-0", tmp_path / "events-0.0123456789abcdef0123456789abcdef-delete")
    shutil.copytree(tmp_path / "events-0", tmp_path / "events-1.0123456789abcdef0123456789abcdef-future")
    assert topics(tmp_path) == [("events", 0)]

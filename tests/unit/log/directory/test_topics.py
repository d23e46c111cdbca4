"""Create topics of many partitions: with little of everything, and completely or not at all."""

from __future__ import annotations

import itertools
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from octavo.errors import InvalidInput, UnknownPartition
from octavo.log import DataDirectory
from tests.unit.log.failing import FailingDisk
from tests.unit.log.logs import keys, make_batch

DELETED_AT_ONCE = {"file.delete.delay.ms": "0"}


def test_many_partitions_need_few_file_descriptors(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with DataDirectory.open(tmp_path) as data:
        used = max(int(path.name) for path in Path("/dev/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 12, limits[1]))
        try:
            data.create_topic("events", 300)
            data.log("events", 299).append(make_batch(first=7))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert len(data.logs) == 300
        assert keys(data.log("events", 299)) == [7]


class CountingFailures:
    """Fails at one operation, and counts those before it."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, what: str, path: Path) -> bool:
        if path.name in (".lock", "__cluster_metadata-0") or path.parent.name == "__cluster_metadata-0":
            return False
        self.left -= 1
        return self.left == -1


def test_an_error_at_any_operation_leaves_nothing_behind(tmp_path: Path) -> None:
    for at in itertools.count():
        disk = FailingDisk()
        folder = tmp_path / str(at)
        with DataDirectory.open(folder, storage=disk) as data:
            disk.fails = CountingFailures(at)
            try:
                data.create_topic("events", 3, DELETED_AT_ONCE)
            except OSError:
                disk.fails = None
                data.delete_files()
                assert data.topics == {}
                assert data.partitions() == []
                assert [path.name for path in folder.iterdir() if "events" in path.name] == []
                data.create_topic("events", 3)
            else:
                disk.fails = None
                break
        with DataDirectory.open(folder) as data:
            assert len(data.partitions()) == 3
    assert at > 10


def test_folders_that_are_in_the_way_are_set_aside(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("other")
        (tmp_path / "events-1").mkdir()
        data.create_topic("events", 3)
        assert len(list(tmp_path.glob("events-1.*-stray"))) == 1
        assert len(data.logs) == 4


def test_a_file_system_that_ignores_case_does_not_cost_another_topic_its_folder(tmp_path: Path) -> None:
    """As that of macOS does; here a link stands for the second name of the folder."""
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("Events")
        data.log("Events", 0).append(make_batch(first=7))
        (tmp_path / "events-0").symlink_to(tmp_path / "Events-0")
        with pytest.raises(FileExistsError, match="for this file system it is Events-0"):
            data.create_topic("events")
        assert set(data.topics) == {"Events"}
        assert list(tmp_path.glob("*-stray")) == []
        assert keys(data.log("Events", 0)) == [7]


def test_a_folder_that_cannot_be_made_takes_the_others_with_it(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        (tmp_path / "events-2").symlink_to(tmp_path / "nowhere")
        with pytest.raises(FileExistsError):
            data.create_topic("events", 3)
        assert data.partitions() == []
        assert sorted(path.name for path in tmp_path.glob("events-*")) == ["events-2"]
        (tmp_path / "events-2").unlink()
        data.create_topic("events", 3)


def test_topics_on_several_disks_are_made_on_all_or_none(tmp_path: Path) -> None:
    disk = FailingDisk()
    paths = [tmp_path / "a", tmp_path / "b"]
    with DataDirectory.open(paths, storage=disk) as data:
        disk.fails = lambda what, path: what == "sync folder" and path == paths[1]
        with pytest.raises(OSError, match="No space"):
            data.create_topic("events", 4)
        disk.fails = None
        assert data.topics == {}
        assert [path for each in paths for path in each.glob("events-*")] == []
        data.create_topic("events", 4)
        assert [len(list(each.glob("events-*"))) for each in paths] == [2, 2]


def test_a_topic_gets_more_partitions_and_keeps_them(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "data") as data:
        data.create_topic("events", 2)
        assert list(data.add_partitions("events", 4).partitions) == [0, 1, 2, 3]
        assert data.log("events", 3).end_offset == 0
        with pytest.raises(InvalidInput):
            data.add_partitions("events", 4)
        with pytest.raises(UnknownPartition):
            data.add_partitions("other", 4)
    with DataDirectory.open(tmp_path / "data") as data:
        assert len(data.topics["events"].partitions) == len(data.partitions()) == 4


def test_partitions_without_a_leader_are_led_in_a_new_epoch(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 2)
        data.create_topic("led", 1)
        (led,) = data.topics["led"].partitions.values()
        left = data.topics["events"].partitions.values()
        data.change_cluster([replace(state, leader=-1, leader_epoch=1, partition_epoch=1) for state in left])
    with DataDirectory.open(tmp_path) as data:
        data.lead_all()
        expected = [replace(state, leader=data.node_id, leader_epoch=2, partition_epoch=2) for state in left]
        assert list(data.topics["events"].partitions.values()) == expected
        assert [data.log("events", partition).leader_epoch for partition in range(2)] == [2, 2]
        assert data.topics["led"].partitions[0] == led
        end = data.metadata_end
        data.lead_all()
        assert data.metadata_end == end


def test_a_deletion_writes_nothing_of_what_it_deletes_to_the_disk(tmp_path: Path) -> None:
    """Mend 2.4: each deleted partition was flushed, with its indexes, before its folder was renamed."""
    disk, synced = FailingDisk(), list[str]()
    with DataDirectory.open(tmp_path, storage=disk) as data:
        data.create_topic("events")
        data.log("events", 0).append(make_batch())

        def note(what: str, path: Path) -> bool:
            if what.startswith("sync"):
                synced.append(str(path.relative_to(tmp_path)))
            return False

        disk.fails = note
        data.delete_topic("events")
        disk.fails = None
    assert synced == ["__cluster_metadata-0/00000000000000000000.log", "."]


def test_where_a_deletion_fails_the_logs_are_checked_when_the_directory_is_opened_again(tmp_path: Path) -> None:
    disk = FailingDisk()
    with DataDirectory.open(tmp_path, storage=disk) as data:
        data.create_topic("events")
        disk.fails = lambda what, path: what == "rename"
        with pytest.raises(OSError, match="No space left"):
            data.delete_topic("events")
        disk.fails = None
    assert not (tmp_path / ".kafka_cleanshutdown").exists()

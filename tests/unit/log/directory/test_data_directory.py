"""A directory of partitions: topics, locks, marks, several folders."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from octavo.errors import (
    BadDirectory,
    DirectoryLocked,
    InvalidConfig,
    InvalidInput,
    LogError,
    TopicExists,
    UnknownPartition,
)
from octavo.log import Background, DataDirectory, Log
from tests.unit.log.logs import SMALL, keys, make_batch


def test_a_new_directory_remembers_its_topics(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "data") as data:
        made = data.create_topic("events", partitions=3, config={"retention.ms": "1000"})
        data.create_topic("other")
        data.log("events", 2).append(make_batch(3))
    with DataDirectory.open(tmp_path / "data") as data:
        assert sorted(data.topics) == ["events", "other"]
        assert data.topics["events"].id == made.id
        assert data.partitions() == [("events", 0), ("events", 1), ("events", 2), ("other", 0)]
        assert data.log("events", 1).config.retention_ms == 1000
        assert [data.log("events", number).end_offset for number in range(3)] == [0, 0, 3]


def test_a_topic_can_be_given_its_id(tmp_path: Path) -> None:
    topic_id = uuid.uuid4()
    with DataDirectory.open(tmp_path) as data:
        assert data.create_topic("events", topic_id=topic_id).id == topic_id
    with DataDirectory.open(tmp_path) as data:
        assert data.topics["events"].id == topic_id


def test_what_is_no_topic_is_refused(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events")
        with pytest.raises(TopicExists):
            data.create_topic("events")
        with pytest.raises(InvalidInput, match="a/b"):
            data.create_topic("a/b")
        with pytest.raises(InvalidInput, match="at least one partition"):
            data.create_topic("none", partitions=0)
        with pytest.raises(InvalidConfig, match=r"retention\.ms"):
            data.create_topic("bad", config={"retention.ms": "soon"})
        with pytest.raises(UnknownPartition):
            data.log("events", 1)
        with pytest.raises(UnknownPartition):
            data.delete_topic("nobody")
        assert list(data.topics) == ["events"]


def test_a_topics_configuration_changes_for_its_open_logs(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", config={"retention.ms": "1000", "flush.messages": "7"})
        data.set_config("events", {"retention.ms": "2000", "flush.messages": None})
        assert data.log("events", 0).config.retention_ms == 2000
        with pytest.raises(InvalidConfig):
            data.set_config("events", {"retention.ms": "soon"})
    with DataDirectory.open(tmp_path) as data:
        assert data.topics["events"].config == {"retention.ms": "2000"}


def test_a_deleted_topic_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        old = data.create_topic("events", partitions=2)
        data.log("events", 0).append(make_batch(5))
        data.delete_topic("events")
        assert data.partitions() == []
        assert data.create_topic("events").id != old.id
        assert data.log("events", 0).end_offset == 0
    with DataDirectory.open(tmp_path) as data:
        assert data.partitions() == [("events", 0)]
        assert data.delete_files() == 2
        assert not list(tmp_path.glob("*-delete"))


def test_partitions_spread_over_several_folders(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    with DataDirectory.open(folders) as data:
        data.create_topic("events", partitions=4)
        for number in range(4):
            data.log("events", number).append(make_batch(number + 1))
    assert [len(list(folder.glob("events-*"))) for folder in folders] == [2, 2]
    with DataDirectory.open(folders) as data:
        assert [data.log("events", number).end_offset for number in range(4)] == [1, 2, 3, 4]
        assert data.log("events", 0).recovery.was_clean


def test_a_partition_in_two_folders_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with DataDirectory.open(tmp_path / name) as data:
            data.create_topic("events")
    with pytest.raises(LogError):
        DataDirectory.open([tmp_path / "one", tmp_path / "two"])
    with DataDirectory.open(tmp_path / "one"):  # the locks were given back
        pass


def test_only_one_has_it_open(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events")
        with pytest.raises(DirectoryLocked):
            DataDirectory.open(tmp_path)
        with pytest.raises(DirectoryLocked):
            Log.open(tmp_path / "events-0")


def test_a_crash_is_noticed(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", config=SMALL)
        for number in range(20):
            data.log("events", 0).append(make_batch(first=number))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    told: list[int] = []
    with DataDirectory.open(tmp_path, on_progress=lambda progress: told.append(progress.bytes_done)) as data:
        report = data.log("events", 0).recovery
        assert not report.was_clean
        assert report.segments_checked == report.segments > 1
        assert report.bytes_checked == data.log("events", 0).size == told[-1]
        assert keys(data.log("events", 0)) == list(range(20))
    with DataDirectory.open(tmp_path) as data:
        assert data.log("events", 0).recovery.was_clean


def test_one_partition_by_itself_uses_the_directorys_files(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", partitions=2, config={"retention.ms": "5"})
        data.log("events", 1).append(make_batch(2))
    with Log.open(tmp_path / "events-0") as log:
        assert log.config.retention_ms == 5
        log.append(make_batch(4))
    with DataDirectory.open(tmp_path) as data:
        assert [data.log("events", number).end_offset for number in range(2)] == [4, 2]
        assert all(report.was_clean for report in data.reports)


def test_one_partition_by_itself_does_not_make_the_others_clean(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", partitions=2)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    Log.open(tmp_path / "events-0").close()
    with DataDirectory.open(tmp_path) as data:
        assert not any(report.was_clean for report in data.reports)
    with DataDirectory.open(tmp_path) as data:
        assert all(report.was_clean for report in data.reports)


def test_the_folder_of_a_partition_has_its_name(tmp_path: Path) -> None:
    with pytest.raises(BadDirectory, match="events-0"):
        Log.open(tmp_path / "events")


def test_unknown_topics_are_kept_and_not_deleted(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "from") as data:
        data.create_topic("events", config=SMALL)
        for number in range(20):
            data.log("events", 0).append(make_batch(first=number))
    (tmp_path / "to").mkdir()
    (tmp_path / "from" / "events-0").rename(tmp_path / "to" / "events-0")
    with DataDirectory.open(tmp_path / "to", clock=lambda: 2**60) as data:
        assert data.topics == {}
        log = data.log("events", 0)
        assert Background(data, clock=lambda: 2**60, initial_delay_ms=0).run_once(2**60).deleted == []
        assert keys(log) == list(range(20))


def test_importing_and_reading_need_no_large_library(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events")
        data.log("events", 0).append(make_batch(3))
    program = (
        "import sys; from octavo.log import DataDirectory\n"
        "with DataDirectory.open(sys.argv[1], read_only=True) as data:\n"
        "    assert len(list(data.log('events', 0).reader().records())) == 3\n"
        "print([name for name in ('numpy', 'numba', 'pyarrow', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

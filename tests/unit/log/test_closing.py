"""What fails while a directory is opened or closed: everything is given back, and nothing is taken for sound."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from octavo.errors import LogError
from octavo.log import DataDirectory
from octavo.log.clock import wall_clock_ms
from octavo.log.closing import Attempts
from octavo.log.config.broker_defaults import UNKNOWN
from octavo.log.directory.data_folder import DataFolder, abandon
from tests.unit.log.failing import FailingDisk
from tests.unit.log.logs import SMALL, make_batch

MARK = ".kafka_cleanshutdown"


def open_two(tmp_path: Path, disk: FailingDisk) -> DataDirectory:
    data = DataDirectory.open([tmp_path / "one", tmp_path / "two"], storage=disk)
    data.create_topic("events", 4)
    for number in range(4):
        data.log("events", number).append(make_batch())
    return data


def test_everything_is_closed_whatever_fails(tmp_path: Path) -> None:
    disk = FailingDisk()
    data = open_two(tmp_path, disk)
    disk.fails = lambda what, path: what == "sync" and path.parts[-3] == "one" and path.suffix == ".log"
    with pytest.raises(OSError, match="No space left") as raised:
        data.close()
    disk.fails = None
    assert len(raised.value.__notes__) == 1  # there are two logs in that folder
    assert "No space left" in raised.value.__notes__[0]
    data.close()  # does nothing
    for log in data.logs:
        with pytest.raises(LogError):
            log.append(make_batch())
    assert [(tmp_path / name / MARK).exists() for name in ("one", "two")] == [False, True]
    with DataDirectory.open([tmp_path / "one", tmp_path / "two"]) as data:
        assert [data.log("events", number).end_offset for number in range(4)] == [1] * 4
        assert {report.was_clean for report in data.reports} == {False, True}
    assert all((tmp_path / name / MARK).exists() for name in ("one", "two"))


def test_locks_are_given_back_when_no_mark_can_be_written(tmp_path: Path) -> None:
    disk = FailingDisk()
    data = open_two(tmp_path, disk)
    disk.fails = lambda what, path: what == "rename" and path.name.startswith(MARK)
    with pytest.raises(OSError, match="No space left") as raised:
        data.close()
    assert len(raised.value.__notes__) == 1
    with DataDirectory.open([tmp_path / "one", tmp_path / "two"]) as data:
        assert not any(report.was_clean for report in data.reports)


def test_a_log_that_has_failed_leaves_no_mark(tmp_path: Path) -> None:
    data = DataDirectory.open(tmp_path)
    data.create_topic("events", 2)
    data.log("events", 1).append(make_batch(3))
    data.write_checkpoints()
    checkpoint = tmp_path / "replication-offset-checkpoint"
    assert "events 1 3" in checkpoint.read_text().splitlines()
    data.log("events", 1).append(make_batch(3))
    data.log("events", 1)._state.change.failure = OSError(errno.EIO, os.strerror(errno.EIO))
    data.close()
    assert not (tmp_path / MARK).exists()
    assert "events 1 3" in checkpoint.read_text().splitlines()  # what it was before
    with DataDirectory.open(tmp_path) as data:
        assert data.log("events", 1).end_offset == 6


def test_a_closed_directory_is_not_written_to(tmp_path: Path) -> None:
    data = DataDirectory.open(tmp_path)
    data.create_topic("events")
    data.close()
    assert not data.is_open
    with pytest.raises(LogError, match="closed"):
        data.write_checkpoints()
    with pytest.raises(LogError, match="closed"):
        data.delete_files()


def test_giving_up_closes_files_first(tmp_path: Path) -> None:
    """Closing a log takes files. Where opening has failed because there are too many, they must come from somewhere."""
    names = ["one", "two"]
    with DataDirectory.open([tmp_path / name for name in names]) as data:
        data.create_topic("events", 4, SMALL)
        for number in range(4):
            data.log("events", number).append(make_batch())
    disk = FailingDisk()
    folders = [DataFolder(tmp_path / name, disk) for name in names]
    for folder in folders:
        folder.begin()
        for partition in folder.partitions:
            log = folder.open_log(partition, UNKNOWN, clock=wall_clock_ms, on_progress=None)
            assert log.read(0, 1).size > 0  # which opens its files
    disk.most_open = 6  # the two locks, and those of one log
    assert not (tmp_path / "one" / MARK).exists()
    abandon(folders, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    assert all((tmp_path / name / MARK).exists() for name in names)
    with DataDirectory.open([tmp_path / name for name in names]) as data:
        assert all(report.was_clean for report in data.reports)


def test_a_clean_directory_stays_clean_when_it_cannot_be_opened(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 3)
        for number in range(3):
            data.log("events", number).append(make_batch())
    disk = FailingDisk()

    def fails(what: str, path: Path) -> bool:
        if what == "remove" and path.name == MARK:
            disk.most_open = 2  # the lock, and one more
        return False

    disk.fails = fails
    with pytest.raises(OSError, match="Too many open files"):
        DataDirectory.open(tmp_path, storage=disk)
    assert (tmp_path / MARK).exists()
    with DataDirectory.open(tmp_path) as data:
        assert all(report.was_clean for report in data.reports)


def test_a_folder_that_could_not_be_removed_is_not_forgotten(tmp_path: Path) -> None:
    disk = FailingDisk()
    with DataDirectory.open(tmp_path, storage=disk, clock=lambda: 0) as data:
        data.create_topic("events", 2, {"file.delete.delay.ms": "10"})
        data.delete_topic("events")
        assert data.delete_files(9) == 0
        disk.fails = lambda what, path: what == "remove" and "events-0" in path.parent.name
        with pytest.raises(OSError, match="No space left"):
            data.delete_files(10)
        assert len(list(tmp_path.glob("*-delete"))) == 1  # the other one is gone
        disk.fails = None
        assert data.delete_files(10) == 1
        assert not list(tmp_path.glob("*-delete"))


def test_a_partition_that_cannot_be_put_away_does_not_keep_the_others(tmp_path: Path) -> None:
    disk = FailingDisk()
    with DataDirectory.open(tmp_path, storage=disk) as data:
        data.create_topic("events", 3)
        disk.fails = lambda what, path: what == "rename" and path.name == "events-1"
        with pytest.raises(OSError, match="No space left"):
            data.delete_topic("events")
        disk.fails = None
        assert data.partitions() == [("events", 1)]
    with DataDirectory.open(tmp_path) as data:
        assert data.topics == {}
        assert data.partitions() == []  # what was not put away counts as unclean, and the deletion is finished


def test_2_5_an_error_of_a_full_disk_gives_way_to_one_that_may_have_lost_something() -> None:
    full, broken = OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken")
    for errors in ([full, broken], [broken, full], [full, broken, full]):
        attempts = Attempts()
        for error in errors:
            with attempts:
                raise error
        with pytest.raises(OSError, match="broken"):
            attempts.finish()
    attempts = Attempts()
    with attempts:
        raise full
    with pytest.raises(OSError, match="full"):
        attempts.finish()

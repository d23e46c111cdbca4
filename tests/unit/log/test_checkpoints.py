"""What a directory remembers of its partitions, with writers that meet and disks that fail."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from octavo.errors import BadDirectory
from octavo.log import DataDirectory
from octavo.log.checkpoints import Checkpoints, Kept, WatchedCheckpoints
from octavo.log.files.text_checkpoint import CLEANER, LOG_START, RECOVERY_POINT, REPLICATION, read_offsets
from octavo.log.names import TopicPartition
from octavo.log.storage import DISK
from tests.unit.log.failing import FailingDisk
from tests.unit.log.logs import make_batch

PARTITION = TopicPartition("events", 0)
OTHER = TopicPartition("events", 1)


def test_nothing_older_is_put_in_place_of_what_is_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events")
        log = data.log("events", 0)
        log.append(make_batch(10))
        other = threading.Thread(target=log.delete_records_before, args=(5,))
        kept = log._state.kept

        def kept_while_another_writes() -> Kept:
            now = kept()
            monkeypatch.undo()
            other.start()
            other.join(0.3)  # it has to wait until this is on the disk
            return now

        monkeypatch.setattr(log._state, "kept", kept_while_another_writes)
        data.write_checkpoints()
        other.join()
        assert log.start_offset == 5
        assert read_offsets(DISK, tmp_path / LOG_START) == {PARTITION: 5}


def test_topics_may_be_made_while_checkpoints_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 2)
        log = data.log("events", 0)
        kept = log._state.kept

        def kept_while_a_topic_is_made() -> Kept:
            monkeypatch.undo()
            data.create_topic("more", 3)
            return kept()

        monkeypatch.setattr(log._state, "kept", kept_while_a_topic_is_made)
        data.write_checkpoints()
        assert read_offsets(DISK, tmp_path / RECOVERY_POINT).keys() >= {PARTITION, OTHER}


def test_a_recovery_point_that_may_be_on_the_disk_is_lowered_there(tmp_path: Path) -> None:
    disk = FailingDisk()
    checkpoints = Checkpoints(disk, tmp_path)
    disk.fails = lambda what, path: what == "sync folder"  # when the file has its name already
    with pytest.raises(OSError, match="No space left"):
        checkpoints.write([(PARTITION, Kept(10, None, 10))])
    with pytest.raises(OSError, match="No space left"):
        checkpoints.lower_recovery_point(PARTITION, 5)
    disk.fails = None
    checkpoints.lower_recovery_point(PARTITION, 5)
    assert read_offsets(DISK, tmp_path / RECOVERY_POINT).get(PARTITION, 0) <= 5


def test_a_start_offset_that_could_not_be_written_is_tried_again(tmp_path: Path) -> None:
    disk = FailingDisk()
    checkpoints = Checkpoints(disk, tmp_path)
    disk.fails = lambda what, path: what == "write"
    with pytest.raises(OSError, match="No space left"):
        checkpoints.set_start_offset(PARTITION, 5)
    disk.fails = None
    checkpoints.set_start_offset(PARTITION, 5)
    assert read_offsets(DISK, tmp_path / LOG_START) == {PARTITION: 5}


def test_a_watcher_reads_checkpoints_when_they_have_changed(tmp_path: Path) -> None:
    disk = FailingDisk()
    checkpoints = Checkpoints(DISK, tmp_path)
    watched = WatchedCheckpoints(disk, tmp_path)
    assert (watched.start_offset(PARTITION), watched.high_watermark(PARTITION)) == (0, None)
    checkpoints.write([(PARTITION, Kept(7, 3, 5))])
    for _ in range(10):
        assert (watched.start_offset(PARTITION), watched.high_watermark(PARTITION)) == (3, 5)
        assert watched.high_watermark(OTHER) == 0  # it was never replicated, as far as anybody knows
    assert disk.opened.total() == 2
    checkpoints.set_start_offset(PARTITION, 4)
    assert (watched.start_offset(PARTITION), watched.high_watermark(PARTITION)) == (4, 5)
    assert disk.opened.total() == 3


def test_a_watcher_goes_by_no_high_watermarks_that_cannot_be_read(tmp_path: Path) -> None:
    watched = WatchedCheckpoints(DISK, tmp_path)
    (tmp_path / LOG_START).write_text("nonsense\n")
    assert watched.start_offset(PARTITION) == 0
    (tmp_path / REPLICATION).write_text("0\n2\nevents 0 7\n")
    for _ in range(2):
        with pytest.raises(BadDirectory, match="there are 1 entries where 2 were announced") as failed:
            watched.high_watermark(PARTITION)
        assert failed.value.path == str(tmp_path / REPLICATION)
    (tmp_path / REPLICATION).write_text("0\n1\nevents 0 7\n")
    assert watched.high_watermark(PARTITION) == 7


def test_what_is_erased_makes_no_checkpoint_of_what_was_never_written(tmp_path: Path) -> None:
    checkpoints = Checkpoints(DISK, tmp_path)
    checkpoints.erase([PARTITION])
    assert not list(tmp_path.iterdir())
    checkpoints.write([(PARTITION, Kept(7, 3, 5)), (OTHER, Kept(1, None, 1))])
    checkpoints.erase([PARTITION])
    assert read_offsets(DISK, tmp_path / REPLICATION) == {OTHER: 1}
    assert read_offsets(DISK, tmp_path / LOG_START) == {}


def test_what_is_forgotten_is_in_no_checkpoint_that_is_written_later(tmp_path: Path) -> None:
    """Mend 2.4: a deletion writes no checkpoint, which names all other partitions."""
    checkpoints = Checkpoints(DISK, tmp_path)
    checkpoints.write([(PARTITION, Kept(7, 3, 5)), (OTHER, Kept(1, None, 1))])
    checkpoints.set_cleaner_offset(PARTITION, 3)
    checkpoints.forget([PARTITION])
    assert read_offsets(DISK, tmp_path / REPLICATION) == {PARTITION: 5, OTHER: 1}
    assert checkpoints.may_name(PARTITION)
    assert checkpoints.high_watermark(PARTITION) is None
    assert checkpoints.partitions == {OTHER}
    checkpoints.write([])
    assert read_offsets(DISK, tmp_path / REPLICATION) == {OTHER: 1}
    assert read_offsets(DISK, tmp_path / LOG_START) == read_offsets(DISK, tmp_path / CLEANER) == {}
    assert not checkpoints.may_name(PARTITION)


def test_a_checkpoint_that_could_not_be_written_is_tried_again_by_who_erases(tmp_path: Path) -> None:
    disk = FailingDisk()
    checkpoints = Checkpoints(disk, tmp_path)
    checkpoints.write([(PARTITION, Kept(7, None, 5))])
    disk.fails = lambda what, path: what == "sync folder"  # when the file has its name already
    with pytest.raises(OSError, match="No space left"):
        checkpoints.set_start_offset(PARTITION, 3)
    disk.fails = None
    checkpoints.erase([PARTITION])
    assert read_offsets(DISK, tmp_path / LOG_START) == {}

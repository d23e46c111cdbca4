"""Flushes in the background: a roll does not wait, a failure is told, and what a power cut leaves is a prefix."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from octavo.errors import BadDirectory, LogError
from octavo.log import DataDirectory, Log, LogConfig
from octavo.log.checkpoints import Checkpoints
from octavo.log.flusher import Task
from octavo.log.names import LOG, LOST, TIME_INDEX, TopicPartition, file_name
from octavo.log.storage import DISK
from octavo.log.writing import flushing
from octavo.records import BatchBuilder
from tests.unit.log.failing import FailingDisk
from tests.unit.log.logs import SMALL, TIME_MS, keys, make_batch
from tests.unit.log.waiting import until

PARTITION: Final = TopicPartition("topic", 0)
COMPACTED: Final = {"cleanup.policy": "compact"}


class LaterDisk(FailingDisk):
    """A disk whose background has its turn when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[Task, None] = {}

    def run_soon(self, task: Task) -> None:
        self.tasks[task] = None

    def run_tasks(self) -> None:
        while self.tasks:
            self.tasks.popitem()[0]()


@pytest.fixture
def disk() -> LaterDisk:
    return LaterDisk()


def opened(folder: Path, disk: LaterDisk, config: dict[str, str] | None = None) -> Log:
    settings = LogConfig.from_properties(SMALL | (config or {}))
    return Log.open(folder / "topic-0", settings, storage=disk, clock=lambda: TIME_MS)


def rolled(folder: Path, disk: LaterDisk, config: dict[str, str] | None = None) -> Log:
    """A log with two segments of three records each, of which the first is flushed, and an empty third one."""
    log = opened(folder, disk, config)
    for first in (0, 3):
        log.append(make_batch(1, first=first))
        log.append(make_batch(2, first=first + 1))
        if first == 0:
            log.flush()
        log.roll()
    return log


def recorded(folder: Path) -> int | None:
    """The recovery point that a crash would leave."""
    checkpoints = Checkpoints(DISK, folder)
    return checkpoints.recovery_point(PARTITION) if checkpoints.has_recovery_point(PARTITION) else None


# --------------------------------------------------------------------------------------------------------------- rolls


def test_a_roll_does_not_wait_for_the_disk(tmp_path: Path, disk: LaterDisk) -> None:
    with rolled(tmp_path, disk) as log:
        disk.fails = lambda what, path: "sync" in what
        log.append(make_batch(1, first=6))
        log.roll()
        assert log.recovery_point == 3
        disk.fails = None
        disk.run_tasks()
        assert log.recovery_point == 7
        assert keys(log) == list(range(7))


def test_a_roll_after_a_flush_syncs_the_index_entries_that_sealing_wrote(tmp_path: Path, disk: LaterDisk) -> None:
    """Recovery would not rebuild them: all of the segment is before the recovery point."""
    with opened(tmp_path, disk) as log:
        log.append(make_batch(3))
        log.flush()
        synced: list[str] = []

        def note(what: str, path: Path) -> bool:
            if what == "sync":
                synced.append(path.name)
            return False

        disk.fails = note
        log.roll()
        assert file_name(0, TIME_INDEX) in synced


def test_the_first_roll_of_a_log_records_the_recovery_point(tmp_path: Path, disk: LaterDisk) -> None:
    with opened(tmp_path, disk) as log:
        log.append(make_batch(1))
        log.flush()
        log.append(make_batch(2, first=1))
        before = recorded(tmp_path)
        log.roll()
        assert (before, recorded(tmp_path), log.recovery_point) == (None, 1, 1)


def test_a_log_that_grows_has_its_recovery_point_recorded_before_it_rolls(
    tmp_path: Path, disk: LaterDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flushing, "_EARLY", 100)
    with opened(tmp_path, disk) as log:
        log.append(make_batch(3))
        disk.run_tasks()
        assert (recorded(tmp_path), log.recovery_point) == (0, 0)
        log.roll()
        assert log.recovery_point == 0


def test_rolls_of_a_compacted_log_wait(tmp_path: Path, disk: LaterDisk) -> None:
    """Compaction leaves gaps between segments. Nobody could tell those from what a power cut has taken."""
    with rolled(tmp_path, disk, COMPACTED) as log:
        assert (log.recovery_point, disk.tasks) == (6, {})


def test_a_compacted_log_is_flushed_in_steps_before_it_rolls(
    tmp_path: Path, disk: LaterDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flushing, "_STEP", 250)
    points = []
    with opened(tmp_path, disk, COMPACTED) as log:
        for first in range(6):
            log.append(make_batch(1, first=first))  # about 130 bytes
            disk.run_tasks()
            points.append(log.recovery_point)
    assert points == [0, 2, 2, 4, 4, 6]


def test_a_roll_waits_if_too_much_is_unflushed(
    tmp_path: Path, disk: LaterDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flushing, "_MOST_SEGMENTS", 2)
    points = []
    with rolled(tmp_path, disk) as log:
        for first in range(6, 10):
            log.append(make_batch(1, first=first))
            log.roll()
            points.append(log.recovery_point)
    assert points == [3, 7, 7, 9]


def test_a_change_of_policy_leaves_nothing_unflushed(tmp_path: Path, disk: LaterDisk) -> None:
    with DataDirectory.open(tmp_path, storage=disk, clock=lambda: TIME_MS) as data:
        data.create_topic("topic", config=SMALL)
        log = data.log("topic", 0)
        for first in range(3):
            log.append(make_batch(1, first=first))
            log.roll()
        assert log.recovery_point == 0
        data.set_config("topic", COMPACTED)
        assert (log.recovery_point, recorded(tmp_path)) == (3, 3)
        log.append(make_batch(1, first=3))
        log.roll()
        assert log.recovery_point == 4


def test_a_gap_that_a_follower_takes_over_is_not_taken_for_a_crash(tmp_path: Path, disk: LaterDisk) -> None:
    with rolled(made(tmp_path / "closed"), disk) as log:
        builder = BatchBuilder(base_offset=50, leader_epoch=0)
        for number in range(9):
            builder.append(b"%d" % number, bytes(90), timestamp_ms=TIME_MS)
        log.append(make_batch(1, first=6))
        log.append_as_follower(builder.build())  # does not fit into the segment, so it begins the next one
        assert [segment.base_offset for segment in log.segments] == [0, 3, 6, 50]
        crashed = tmp_path / "crashed"
        shutil.copytree(tmp_path / "closed", crashed)
    assert recorded(crashed) == 50
    with pytest.raises(BadDirectory, match="no segment holds the offsets 7 to 49"):
        opened(crashed, disk)  # as when it was closed cleanly
    with Log.open(crashed / "topic-0", LogConfig.from_properties(SMALL), may_have_gaps=True) as log:
        assert len(keys(log)) == 16


# ------------------------------------------------------------------------------------------ beside all that can happen


def test_a_flush_writes_what_the_background_has_not(tmp_path: Path, disk: LaterDisk) -> None:
    with rolled(tmp_path, disk) as log:
        log.append(make_batch(1, first=6))
        log.flush()
        assert log.recovery_point == 7
        disk.run_tasks()
        assert log.recovery_point == 7


def test_a_log_is_closed_before_its_background_has_its_turn(tmp_path: Path, disk: LaterDisk) -> None:
    rolled(tmp_path, disk).close()
    disk.fails = lambda what, path: "sync" in what
    disk.run_tasks()  # does nothing
    disk.fails = None
    with opened(tmp_path, disk) as log:
        assert (log.recovery.was_clean, log.recovery.is_unremarkable) == (True, True)
        assert keys(log) == list(range(6))


@pytest.mark.parametrize("sync", [LOG, ".index", ".timeindex"])
def test_a_failed_flush_fails_the_next_append(tmp_path: Path, disk: LaterDisk, sync: str) -> None:
    log = rolled(tmp_path, disk)
    disk.fails = lambda what, path: what == "sync" and path.name.endswith(sync)
    disk.run_tasks()
    disk.fails = None
    assert isinstance(log.failure, OSError)
    for _ in range(2):
        with pytest.raises(LogError, match="takes no more"):
            log.append(make_batch(1, first=6))
    with pytest.raises(LogError, match="takes no more"):
        log.flush()
    log.close()
    with opened(tmp_path, disk) as log:
        assert not log.recovery.was_clean
        assert keys(log) == list(range(6))


def test_a_failed_flush_that_nobody_has_seen_fails_the_closing(tmp_path: Path, disk: LaterDisk) -> None:
    log = rolled(tmp_path, disk)
    disk.fails = lambda what, path: what == "sync"
    disk.run_tasks()
    disk.fails = None
    with pytest.raises(OSError, match="No space"):
        log.close()
    log.close()
    assert not opened_after(tmp_path).recovery.was_clean


def opened_after(folder: Path) -> Log:
    with Log.open(folder / "topic-0", LogConfig.from_properties(SMALL)) as log:
        return log


def test_what_is_deleted_before_the_background_has_its_turn_is_left_alone(tmp_path: Path, disk: LaterDisk) -> None:
    with rolled(tmp_path, disk, {"file.delete.delay.ms": "0"}) as log:
        log.delete_oldest(2)
        log.delete_files()
        disk.run_tasks()
        assert (log.failure, log.recovery_point) == (None, 6)


def test_what_is_truncated_before_the_background_has_its_turn_is_not_believed(tmp_path: Path, disk: LaterDisk) -> None:
    with rolled(tmp_path, disk) as log:
        log.truncate_to(4)
        log.append(make_batch(2, first=4))
        disk.run_tasks()
        assert (log.failure, log.recovery_point, log.end_offset) == (None, 3, 6)


def test_a_topic_is_deleted_before_the_background_has_its_turn(tmp_path: Path, disk: LaterDisk) -> None:
    with DataDirectory.open(tmp_path, storage=disk, clock=lambda: TIME_MS) as data:
        data.create_topic("topic", config=SMALL)
        log = data.log("topic", 0)
        for first in range(3):
            log.append(make_batch(1, first=first))
            log.roll()
        data.delete_topic("topic")
        disk.run_tasks()
    with DataDirectory.open(tmp_path, storage=disk) as data:
        assert data.partitions() == []
        assert all(report.was_clean for report in data.reports)


def test_the_background_flushes_by_itself(tmp_path: Path) -> None:
    with Log.open(tmp_path / "topic-0", LogConfig.from_properties(SMALL), clock=lambda: TIME_MS) as log:
        for first in range(3):
            log.append(make_batch(1, first=first))
            log.roll()
        until(lambda: log.recovery_point == 3)


# ------------------------------------------------------------------------------------------------------------ recovery


def crash(folder: Path, disk: LaterDisk, config: dict[str, str] | None = None) -> Path:
    """The folder of a log that was not closed: four segments of three records each, flushed up to the second."""
    with rolled(made(folder / "closed"), disk, config) as log:
        log.append(make_batch(3, first=6))
        log.roll()
        log.append(make_batch(3, first=9))
        shutil.copytree(folder / "closed", folder / "crashed")
    return folder / "crashed"


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("lost", ["the last batch", "everything"])
def test_what_comes_after_lost_batches_is_cut_off(tmp_path: Path, disk: LaterDisk, lost: str) -> None:
    """The next segment may be on the disk when batches before it are not."""
    crashed = crash(tmp_path, disk)
    path = crashed / "topic-0" / file_name(3, LOG)
    size = len(make_batch(1, first=3)) if lost == "the last batch" else 0
    path.write_bytes(path.read_bytes()[:size])
    end = 4 if size else 3
    after_gap = path.with_name(file_name(6, LOG)).read_bytes()
    with opened(crashed, disk) as log:
        assert keys(log) == list(range(end))
        [cut] = log.recovery.cuts
        gap = f"the offsets {end} to 5 are not there; what comes after them is kept in files that end in .lost"
        assert cut == (path.name, size, 0, gap)
        assert {file_name(6, LOG), file_name(9, LOG)} <= set(log.recovery.removed)
        assert path.with_name(file_name(6, LOG) + LOST).read_bytes() == after_gap
        assert log.append(make_batch(1, first=end)).base_offset == end
    with opened(crashed, disk) as log:
        assert log.recovery.is_unremarkable


def test_the_first_recovery_point_that_is_recorded_is_after_a_gap_that_was_accepted(
    tmp_path: Path, disk: LaterDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise recovery would take that gap for one that a power cut has left."""
    monkeypatch.setattr(flushing, "_STEP", 100)
    crashed = crash(tmp_path, disk)
    (crashed / "recovery-point-offset-checkpoint").unlink()
    for path in (crashed / "topic-0").glob(file_name(3, ".*")):
        path.unlink()
    settings = LogConfig.from_properties(SMALL)
    with Log.open(crashed / "topic-0", settings, storage=disk, may_have_gaps=True) as log:
        log.append(make_batch(3, first=12))
        disk.run_tasks()
        assert recorded(crashed) == log.recovery_point == 15


def test_what_is_missing_before_the_recovery_point_is_not_cut_off(tmp_path: Path, disk: LaterDisk) -> None:
    """No crash of ours has taken it: it can be put back."""
    crashed = crash(tmp_path, disk)
    (crashed / "topic-0" / file_name(0, LOG)).write_bytes(make_batch(1))
    with pytest.raises(BadDirectory, match="no segment holds the offsets 1 to 2"):
        opened(crashed, disk)


@pytest.mark.parametrize("mark", ["recovery-point-offset-checkpoint", ".kafka_cleanshutdown"])
def test_without_a_recovery_point_or_after_a_clean_shutdown_nothing_is_cut_off(
    tmp_path: Path, disk: LaterDisk, mark: str
) -> None:
    crashed = crash(tmp_path, disk)
    if mark == ".kafka_cleanshutdown":
        shutil.copy(tmp_path / "closed" / mark, crashed)
    else:
        (crashed / mark).unlink()
    (crashed / "topic-0" / file_name(3, LOG)).unlink()
    with pytest.raises(BadDirectory, match="no segment holds the offsets 3 to 5"):
        opened(crashed, disk)


def test_what_comes_after_a_gap_of_a_compacted_log_stays(tmp_path: Path, disk: LaterDisk) -> None:
    crashed = crash(tmp_path, disk, COMPACTED)
    (crashed / "topic-0" / file_name(3, LOG)).write_bytes(make_batch(1)[:0])
    with opened(crashed, disk, COMPACTED) as log:
        assert keys(log) == [0, 1, 2, *range(6, 12)]

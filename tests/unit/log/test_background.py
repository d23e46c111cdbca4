"""What is done from time to time, and what happens when it cannot be done."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from octavo.log import Background, DataDirectory
from octavo.records import BatchBuilder
from tests.unit.effort import effort
from tests.unit.log.failing import FailingDisk
from tests.unit.log.logs import SMALL, TIME_MS, make_batch


def test_background_work_is_done_when_it_is_due(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        data.create_topic(
            "events", config=SMALL | {"flush.ms": "100", "retention.ms": "5000", "file.delete.delay.ms": "50"}
        )
        log = data.log("events", 0)
        background = Background(data, clock=lambda: TIME_MS, initial_delay_ms=1000, checkpoint_interval_ms=200)
        for number in range(20):
            log.append(make_batch(first=number))
        assert background.run_once(TIME_MS + 99) == ([], [], 0, False, [], [], None)
        assert background.run_once(TIME_MS + 100).flushed == [("events", 0)]
        assert log.recovery_point == 20
        assert background.run_once(TIME_MS + 1000).checkpoints_written
        assert not background.run_once(TIME_MS + 1199).checkpoints_written
        done = background.run_once(TIME_MS + 1000 + 300_000)
        assert len(done.deleted) > 1
        assert {expired.policy for _, expired in done.deleted} == {"time"}
        assert background.run_once(TIME_MS + 301_049).files_removed == done.files_removed == 0
        assert background.run_once(TIME_MS + 301_050).files_removed == len(done.deleted)


def test_logs_with_nothing_due_take_hardly_anything(tmp_path: Path) -> None:
    def takes(count: int) -> tuple[int, int]:
        with DataDirectory.open(tmp_path / str(count), clock=lambda: TIME_MS) as data:
            data.create_topic("events", count)
            background = Background(data, clock=lambda: TIME_MS, compaction=False)
            data.write_checkpoints()
            return effort(background.run_once), effort(data.write_checkpoints)

    few, many = takes(10), takes(30)
    assert many[0] - few[0] < 20 * 150
    assert many[1] - few[1] < 20 * 75


def test_a_thread_does_it_too(tmp_path: Path) -> None:
    flushed = threading.Event()
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", config={"flush.ms": "0"})
        log = data.log("events", 0)
        log.append(make_batch())
        with Background(data) as background:
            background.start(0.001)
            for _ in range(6000):
                if log.recovery_point == 1:
                    flushed.set()
                    break
                flushed.wait(0.01)
        assert flushed.is_set()


def test_checkpoints_that_cannot_be_written_are_tried_again(tmp_path: Path) -> None:
    disk = FailingDisk()
    with DataDirectory.open(tmp_path, storage=disk, clock=lambda: TIME_MS) as data:
        data.create_topic("events", config={"flush.ms": "0"})
        data.log("events", 0).append(make_batch())
        background = Background(data, clock=lambda: TIME_MS, initial_delay_ms=0)
        disk.fails = lambda what, path: what == "write" and "checkpoint" in path.name
        done = background.run_once()
        assert done.flushed == [("events", 0)]
        assert not done.checkpoints_written
        ((partition, error),) = done.failed
        assert partition is None
        assert isinstance(error, OSError)
        disk.fails = None
        assert background.run_once()[3:] == (True, [], [], None)


def test_folders_that_cannot_be_removed_keep_nothing_else(tmp_path: Path) -> None:
    disk = FailingDisk()
    with DataDirectory.open(tmp_path, storage=disk, clock=lambda: TIME_MS) as data:
        data.create_topic("events", config={"flush.ms": "0"})
        data.create_topic("gone", config={"file.delete.delay.ms": "0"})
        data.delete_topic("gone")
        data.log("events", 0).append(make_batch())
        background = Background(data, clock=lambda: TIME_MS)
        disk.fails = lambda what, path: what == "remove"
        done = background.run_once()
        assert done.flushed == [("events", 0)]
        assert [partition for partition, _ in done.failed] == [None]
        disk.fails = None
        assert background.run_once().files_removed == 1


def test_a_log_that_fails_keeps_no_other(tmp_path: Path) -> None:
    disk = FailingDisk()
    with DataDirectory.open(tmp_path, storage=disk) as data:
        data.create_topic("events", 2, {"flush.ms": "0"})
        for number in range(2):
            data.log("events", number).append(make_batch())
        disk.fails = lambda what, path: what == "sync" and path.parent.name == "events-0"
        done = Background(data).run_once()
        disk.fails = None
        assert done.flushed == [("events", 1)]
        assert [partition for partition, _ in done.failed] == [("events", 0)]


@pytest.mark.parametrize("error", [OSError("no room"), RuntimeError("a mistake")])
def test_the_thread_goes_on_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    with DataDirectory.open(tmp_path) as data:
        tried = threading.Event()
        again = threading.Event()

        def fail() -> None:
            (again if tried.is_set() else tried).set()
            raise error

        monkeypatch.setattr(data, "write_checkpoints", fail)
        background = Background(data, initial_delay_ms=0)
        assert background.last_error is None
        background.start(0.001)
        assert again.wait(60)
        monkeypatch.undo()
        background.stop()
        assert background.last_error is error


def test_nothing_is_done_in_a_closed_directory(tmp_path: Path) -> None:
    data = DataDirectory.open(tmp_path)
    data.create_topic("events", config={"flush.ms": "0"})
    data.log("events", 0).append(make_batch())
    background = Background(data, initial_delay_ms=0)
    data.close()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert background.run_once(int(time.time() * 1000) + 10**9) == ([], [], 0, False, [], [], None)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_producers_that_are_silent_for_a_day_are_forgotten(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "data", clock=lambda: TIME_MS) as data:
        data.create_topic("topic")
        builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=0)
        builder.append(b"key", b"value", timestamp_ms=TIME_MS)
        data.log("topic", 0).append(builder.build())
        background = Background(data, clock=lambda: TIME_MS, initial_delay_ms=0, compaction=False)
        assert background.run_once().forgotten == []
        assert background.run_once(TIME_MS + 599_999).forgotten == []  # it is looked at every ten minutes
        assert background.run_once(TIME_MS + 86_400_000).forgotten == [(("topic", 0), 7)]


def test_a_task_that_fails_again_and_again_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DataDirectory.open(tmp_path) as data:
        errors = iter([OSError("no room"), OSError("no room"), OSError("no disk")])
        over = threading.Event()

        def fail() -> None:
            error = next(errors, None)
            if error is None:
                over.set()
            else:
                raise error

        monkeypatch.setattr(data, "write_checkpoints", fail)
        told: list[str] = []
        background = Background(data, initial_delay_ms=0, checkpoint_interval_ms=1, on_failure=told.append)
        background.start(0.001)
        assert over.wait(60)
        background.stop()
        tried = "work in the background failed, and is tried again"
        assert told == [f"{tried}: no room", f"{tried}: no disk"]


def test_a_clock_that_is_set_back_puts_nothing_off(tmp_path: Path) -> None:
    hour_ms = 3_600_000
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        data.create_topic("gone", config={"file.delete.delay.ms": "60000"})
        data.create_topic(
            "events", config=SMALL | {"flush.ms": "100", "retention.bytes": "0", "file.delete.delay.ms": "60000"}
        )
        log = data.log("events", 0)
        background = Background(data, clock=lambda: TIME_MS, initial_delay_ms=1000, checkpoint_interval_ms=200)
        for number in range(20):
            log.append(make_batch(first=number))
        data.delete_topic("gone")
        before = background.run_once(TIME_MS + 1000)
        assert before.checkpoints_written
        assert before.deleted
        for number in range(20):
            log.append(make_batch(first=number))
        back_ms = TIME_MS - hour_ms
        assert background.run_once(back_ms).flushed == [("events", 0)]
        assert not background.run_once(back_ms + 199).checkpoints_written
        assert background.run_once(back_ms + 200).checkpoints_written
        assert background.run_once(back_ms + 58_999).files_removed == 0
        assert background.run_once(back_ms + 59_000).files_removed == 1  # the deleted topic
        assert background.run_once(back_ms + 60_000).files_removed == len(before.deleted)
        assert background.run_once(back_ms + 299_999).deleted == []
        assert background.run_once(back_ms + 300_000).deleted

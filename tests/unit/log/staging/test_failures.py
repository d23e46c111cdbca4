"""Disks that fail, other processes, and forks, in the middle of a commit."""

from __future__ import annotations

import errno
import threading
import time
from pathlib import Path

import pytest

from octavo.errors import CommitPending, DirectoryLocked, WrongProcess
from octavo.log import DataDirectory, ExpectedTopic
from octavo.log.names import TopicPartition
from octavo.log.staging import commits
from octavo.log.staging.appending import StagedBatches
from octavo.log.staging.journal import Journal, write_journal
from octavo.log.storage import Storage
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.failing import FailingDisk
from tests.unit.log.forks import run_in_fork
from tests.unit.log.logs import keys, make_batch
from tests.unit.log.staging.staged import ONE, TOPICS, TWO, area_of, batches, commit, commit_and_die, found, stage
from tests.unit.log.test_full_disk import FullDisk

TASKS = ({ONE: batches(*range(1, 12)), TWO: batches(20)}, {TWO: batches(*range(21, 30))})
BEFORE = {ONE: [0], TWO: []}
DONE = {ONE: list(range(12)), TWO: list(range(20, 30))}
JOURNAL = "octavo-commits"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    commit(folder, {ONE: batches(0)}, application="before")
    return folder


def present(data: DataDirectory) -> dict[object, list[int]]:
    return {partition: keys(data.log(*partition)) for partition in (ONE, TWO)}


def test_a_full_disk_undoes_the_commit_or_leaves_it_pending(tmp_path: Path) -> None:
    """Wherever the disk is full: nothing of it is there and it can be repeated, or the next opener finishes it."""
    outcomes = set()
    for room in range(0, 4000, 150):
        folder = tmp_path / str(room)
        disk = FullDisk()
        commit(folder, {ONE: batches(0)}, application="before")
        area = area_of(folder)
        files = stage(area, *TASKS)
        with DataDirectory.open(folder, storage=disk) as data:
            disk.room = room
            try:
                data.commit_staged(area, files, topics=TOPICS)
                outcomes.add("done")
                assert present(data) == DONE
            except CommitPending:
                outcomes.add("pending")
            except OSError:
                outcomes.add("undone")
                assert present(data) == BEFORE
                disk.room = None
                data.commit_staged(area, files, topics=TOPICS)
                assert present(data) == DONE
            disk.room = None
        DataDirectory.open(folder).close()
        assert found(folder) == DONE
        assert not list(area.folder.iterdir())
    assert outcomes >= {"done", "undone"}


def test_a_directory_with_a_pending_commit_can_be_opened_on_a_full_disk(folder: Path) -> None:
    """So that something can be deleted; the commit stays pending."""
    commit_and_die(folder, 2, *TASKS)
    area = area_of(folder)
    files = stage(area, *TASKS)
    disk = FailingDisk()
    disk.fails = lambda what, path: what == "write" and path.suffix == ".log"
    with DataDirectory.open(folder, storage=disk) as data:
        with pytest.raises(OSError, match="No space"):
            data.commit_staged(area, files, topics=TOPICS)
        disk.fails = None
        assert data.commit_staged(area, files, topics=TOPICS).is_repeated
        assert present(data) == DONE


@pytest.mark.parametrize(
    ("what", "where", "is_pending"),
    [
        ("write", f"{JOURNAL}.tmp", False),
        ("rename", f"{JOURNAL}.tmp", False),
        ("sync", "t-0", True),  # of a log: nobody can say what is on the disk
        ("sync", "staging", False),
    ],
)
def test_any_operation_may_fail(folder: Path, what: str, where: str, is_pending: bool) -> None:
    disk = FailingDisk()
    area = area_of(folder)
    files = stage(area, *TASKS)
    with DataDirectory.open(folder, storage=disk) as data:
        disk.fails = lambda asked, path: asked.startswith(what) and where in str(path.relative_to(folder.parent))
        with pytest.raises(CommitPending if is_pending else OSError):
            data.commit_staged(area, files, topics=TOPICS)
        disk.fails = None
        if not is_pending:
            assert present(data) == BEFORE
    DataDirectory.open(folder).close()
    assert found(folder) == (DONE if is_pending else BEFORE)
    assert commit(folder, *TASKS).is_repeated == is_pending
    assert found(folder) == DONE


def test_a_decision_that_may_have_come_to_the_disk_counts(folder: Path) -> None:
    disk = FailingDisk()
    area = area_of(folder)
    files = stage(area, *TASKS)
    with DataDirectory.open(folder, storage=disk) as data:
        disk.fails = lambda what, path: what == "sync folder" and path == folder
        with pytest.raises(CommitPending):
            data.commit_staged(area, files, topics=TOPICS)
        disk.fails = None
    DataDirectory.open(folder).close()
    assert found(folder) == DONE


def test_a_restored_log_that_begins_late_is_undone_as_well(folder: Path) -> None:
    disk = FailingDisk()
    area = area_of(folder, None)
    late = 1000
    batch = late.to_bytes(8) + make_batch()[8:]
    files = stage(area, {TopicPartition("u", 0): [batch], TopicPartition("u", 1): [batch]})
    with DataDirectory.open(folder, storage=disk) as data:
        data.create_topic("u", 2)
        disk.fails = lambda what, path: what == "write" and path.parent.name == "u-1" and path.suffix == ".log"
        with pytest.raises(OSError, match="No space"):
            data.commit_staged(area, files, keep_offsets=True)
        disk.fails = None
        assert [data.log("u", number).end_offset for number in range(2)] == [0, 0]
        data.commit_staged(area, files, keep_offsets=True)
        assert [data.log("u", number).start_offset for number in range(2)] == [late, late]


def test_a_commit_whose_end_cannot_be_noted_is_finished_later(folder: Path) -> None:
    disk = FailingDisk()
    area = area_of(folder)
    files = stage(area, *TASKS)
    writes = 0

    def second(what: str, path: Path) -> bool:
        nonlocal writes
        writes += what == "write" and path.name.startswith(JOURNAL)
        return writes > 1

    with DataDirectory.open(folder, storage=disk) as data:
        disk.fails = second
        with pytest.raises(CommitPending, match="its records will be appended by the next commit"):
            data.commit_staged(area, files, topics=TOPICS)
        assert present(data) == DONE
        disk.fails = None
        assert data.commit_staged(area, files, topics=TOPICS).is_repeated
        assert present(data) == DONE


def test_an_interrupted_commit_is_finished_by_the_next_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = StagedBatches.append

    def interrupted(*arguments: object) -> None:
        append(*arguments)  # type: ignore[arg-type]  # these are what it is called with
        raise KeyboardInterrupt

    area = area_of(folder)
    with DataDirectory.open(folder) as data:
        monkeypatch.setattr(StagedBatches, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            data.commit_staged(area, stage(area, *TASKS), topics=TOPICS)
        monkeypatch.undo()
        data.log(*ONE).append(make_batch(first=50))
        assert data.commit_staged(area, stage(area, *TASKS), topics=TOPICS).is_repeated
    assert found(folder) == {ONE: [*DONE[ONE], 50], TWO: DONE[TWO]}


# ----------------------------------------------------------------------------------------------------- other processes


def test_a_second_writer_waits_for_the_lock(folder: Path) -> None:
    holder = DataDirectory.open(folder)
    timer = threading.Timer(0.2, holder.close)
    began = time.monotonic()
    timer.start()
    with DataDirectory.open(folder, lock_timeout=60):
        assert time.monotonic() - began > 0.1
    timer.join()


def test_a_second_writer_is_told_who_holds_the_lock(folder: Path) -> None:
    with DataDirectory.open(folder) as holder:
        told = run_in_fork(lambda: DataDirectory.open(folder, lock_timeout=0.1))
        assert told.startswith("DirectoryLocked")
        assert f"in use by process {holder._folders[0].lock.pid}" in told
        with pytest.raises(DirectoryLocked):
            DataDirectory.open(folder, lock_timeout=0.01)


def test_a_fork_commits_nothing(folder: Path) -> None:
    area = area_of(folder)
    files = stage(area, *TASKS)
    with DataDirectory.open(folder) as data:
        with left_as_it_was(folder.parent):
            told = run_in_fork(lambda: data.commit_staged(area, files, topics=TOPICS))
            assert told.startswith(WrongProcess.__name__)
        data.commit_staged(area, files, topics=TOPICS)
    assert found(folder) == DONE


def test_a_journal_that_may_not_be_on_the_disk_leaves_the_commit_pending(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told that nothing was appended may repeat it, and that would double the records."""
    area = area_of(folder, None)
    files = stage(area, *TASKS)

    def write_and_fail(storage: Storage, path: Path, journal: Journal) -> None:
        write_journal(storage, path, journal)
        if journal.pending is None:
            raise OSError(errno.EIO, "the folder cannot be synced")

    with DataDirectory.open(folder) as data:
        monkeypatch.setattr(commits, "write_journal", write_and_fail)
        with pytest.raises(CommitPending, match="cannot be synced"):
            data.commit_staged(area, files, topics=TOPICS)
        assert present(data) == DONE


def test_what_was_rewritten_for_a_commit_that_is_undone_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: StagedBatches, *_: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(StagedBatches, "append", fail)
    area = area_of(tmp_path / "data")
    files = stage(area, {ONE: batches(1)})
    with DataDirectory.open(tmp_path / "data") as data, pytest.raises(OSError, match="full"):
        data.commit_staged(area, files, topics={ONE.topic: ExpectedTopic(1, {"compression.type": "gzip"})})
    assert [path.name for path in area.folder.iterdir()] == [file.name for file in files]

"""A commit that was interrupted is finished by whoever opens the directory next, or refused if that cannot be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.errors import BadDirectory, CommitPending, CommitUnresolved, DirectoryLocked
from octavo.log import CommitIdentity, DataDirectory, Log, StagedFile, StagingArea, discard_staged, give_up_commit
from octavo.log.names import TopicPartition
from octavo.log.staging.appending import StagedBatches
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.forks import exit_code_of_fork
from tests.unit.log.logs import keys, make_batch
from tests.unit.log.staging.staged import (
    KILLED,
    ONE,
    TOPIC,
    TOPICS,
    TWO,
    area_of,
    batches,
    commit,
    commit_and_die,
    die_before,
    found,
    stage,
)

TASKS = ({ONE: batches(1, 2, 3), TWO: batches(4)}, {ONE: batches(5), TWO: batches(6, 7)})
DONE = {ONE: [0, 1, 2, 3, 5], TWO: [4, 6, 7]}
END = 3  # the step after which nothing is pending
OPEN = {ONE: [0], TWO: []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    commit(folder, {ONE: batches(0)}, application="before")
    return folder


def resolve(folder: Path) -> dict[TopicPartition, list[int]]:
    DataDirectory.open(folder).close()
    return found(folder)


@pytest.mark.parametrize("step", range(END + 1))
def test_the_next_opener_finishes_what_was_decided(folder: Path, step: int) -> None:
    commit_and_die(folder, step, *TASKS)
    assert resolve(folder) == (DONE if step else OPEN)
    assert commit(folder, *TASKS).is_repeated == bool(step)
    assert found(folder) == DONE
    assert not list(area_of(folder).folder.iterdir())


def test_readers_do_not_finish_it(folder: Path) -> None:
    commit_and_die(folder, 2, *TASKS)
    with left_as_it_was(folder.parent):
        assert found(folder)[TWO] == []


def test_the_next_commit_finishes_the_one_before(folder: Path) -> None:
    commit_and_die(folder, 2, *TASKS)
    commit(folder, {ONE: batches(8)}, application="another")
    assert found(folder) == {ONE: [*DONE[ONE], 8], TWO: DONE[TWO]}


@pytest.mark.parametrize("step", range(1, END + 1))
@pytest.mark.parametrize("part", [0, 1, 2, 3])
def test_records_of_others_stay_where_they_are(folder: Path, step: int, part: int) -> None:
    """Of the first partition only `part` batches are left, as a crash of its own leaves it; then others append."""
    commit_and_die(folder, step, *TASKS)
    with Log.open(folder / str(ONE)) as log:
        log.truncate_to(1 + part)
        there = keys(log)
        for number in (10, 11):
            log.append(make_batch(first=number))
    if step == 1:
        there = [0]
    rest = [number for number in DONE[ONE] if number not in there]
    assert resolve(folder) == {ONE: [*there, 10, 11, *rest], TWO: DONE[TWO]}


def test_a_log_that_lost_its_end_gets_everything(folder: Path) -> None:
    commit(folder, {ONE: batches(8, 9)}, application="another")
    commit_and_die(folder, 1, *TASKS)
    with Log.open(folder / str(ONE)) as log:
        log.truncate_to(1)  # which a power cut may do, if nobody flushed it
    assert resolve(folder) == DONE


def test_a_log_that_lost_its_end_and_got_other_records_gets_everything(folder: Path) -> None:
    commit(folder, {ONE: batches(8, 9)}, application="another")
    commit_and_die(folder, 1, *TASKS)
    with Log.open(folder / str(ONE)) as log:
        log.truncate_to(1)
        log.append(make_batch(10, first=20))  # across the offset that the journal has
    assert resolve(folder) == {ONE: [0, *range(20, 30), *DONE[ONE][1:]], TWO: DONE[TWO]}


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("others", [0, 1, 4])
def test_an_opener_that_dies_is_followed_by_another(folder: Path, step: int, others: int) -> None:
    """Also if the batches go to other offsets than those that the commit had decided on."""
    commit(folder, {ONE: batches(8, 9)}, application="another")
    commit_and_die(folder, 1, *TASKS)
    with Log.open(folder / str(ONE)) as log:
        log.truncate_to(1)
        for number in range(others):
            log.append(make_batch(first=20 + number))

    def work() -> None:
        die_before(step)
        DataDirectory.open(folder).close()

    assert exit_code_of_fork(work) == KILLED
    assert resolve(folder) == {ONE: [0, *range(20, 20 + others), *DONE[ONE][1:]], TWO: DONE[TWO]}


# ---------------------------------------------------------------------------------------------------- cannot be told


def refuses(folder: Path, match: str) -> None:
    """Neither opening nor committing goes on; giving it up lets both."""
    before = found(folder)
    for _ in range(2):
        with pytest.raises(CommitUnresolved, match=match) as refused:
            DataDirectory.open(folder)
        assert str(folder / "octavo-commits") in str(refused.value)
        assert "give_up_commit" in str(refused.value)
    assert found(folder) == before
    assert give_up_commit(folder)
    assert not give_up_commit(folder)
    assert resolve(folder) == before
    assert commit(folder, {ONE: batches(0)}, application="before").is_repeated  # identities are kept


def test_deleted_records_are_refused(folder: Path) -> None:
    commit_and_die(folder, 2, *TASKS)
    with Log.open(folder / str(ONE)) as log:
        log.delete_records_before(2)
    refuses(folder, "deleted or compacted")


def test_compacted_records_are_refused(folder: Path) -> None:
    with DataDirectory.open(folder) as data:
        data.set_config(TOPIC, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    commit_and_die(folder, 2, *TASKS)
    with Log.open(folder / str(ONE)) as log:
        log.roll()
        log.append(make_batch(first=1))
        assert log.compact() is not None
    refuses(folder, "deleted or compacted")


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes().replace(b"\0", b"\1")),
        lambda path: path.write_bytes(b"".join(batches(1, 2, 9, 4))),  # sound batches, and others
    ],
)
def test_staged_files_that_are_gone_or_changed_are_refused(folder: Path, spoil: Callable[[Path], object]) -> None:
    commit_and_die(folder, 1, *TASKS)
    spoil(max(area_of(folder).folder.iterdir(), key=lambda path: path.stat().st_size))
    refuses(folder, "missing|changed|ends before|should be a staged batch|magic 2")


def test_a_partition_that_is_in_another_folder_is_refused(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    with DataDirectory.open(folders) as data:
        data.create_topic(TOPIC, 2)
        places = [data.log(*partition).folder.parent for partition in (ONE, TWO)]
    assert set(places) == set(folders)
    area = StagingArea.of(folders, identity=CommitIdentity("query", 0))
    files = stage(area, *TASKS)

    def work() -> None:
        die_before(1)
        with DataDirectory.open(folders) as data:
            data.commit_staged(area, files)

    assert exit_code_of_fork(work) == KILLED
    with pytest.raises(CommitUnresolved, match="there is no partition"):
        DataDirectory.open(folders[:1])
    DataDirectory.open(folders[::-1]).close()  # in any order
    with DataDirectory.open(folders) as data:
        assert [data.log(*partition).end_offset for partition in (ONE, TWO)] == [4, 3]


def test_two_journals_are_refused(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "octavo-commits").touch()
    with pytest.raises(BadDirectory, match="another such file"):
        DataDirectory.open(folders)


def test_records_for_a_topic_that_was_deleted_since_are_deleted_with_it(folder: Path) -> None:
    other = TopicPartition("other", 0)
    with DataDirectory.open(folder) as data:
        data.create_topic("other")
    commit_and_die(folder, 1, {ONE: batches(1), other: batches(2)})
    pending = (folder / "octavo-commits").read_bytes()
    (folder / "octavo-commits").unlink()
    with DataDirectory.open(folder) as data:  # as Apache Kafka opens it
        data.delete_topic("other")
        data.create_topic("other")  # by the same name
    (folder / "octavo-commits").write_bytes(pending)
    assert resolve(folder) == {ONE: [0, 1], TWO: [], other: []}
    assert commit(folder, {ONE: batches(1), other: batches(2)}).is_repeated


# ------------------------------------------------------------------------------------------------------------ give up


def test_giving_up_needs_the_lock(folder: Path) -> None:
    commit_and_die(folder, 1, *TASKS)
    with DataDirectory.open(folder), pytest.raises(DirectoryLocked):
        give_up_commit(folder)
    assert not give_up_commit(folder)


def test_files_that_a_pending_commit_needs_are_not_discarded(folder: Path) -> None:
    area = area_of(folder, version=1)
    commit_and_die(folder, 1, *TASKS)
    others = stage(area, *TASKS)
    needed = set(area.folder.iterdir()) - {area.folder / file.name for file in others}
    assert len(needed) == 2
    discard_staged(folder, area, [*others, *(StagedFile(path.name, ()) for path in needed)])
    assert set(area.folder.iterdir()) == needed
    assert resolve(folder) == DONE


# ------------------------------------------------------------------------------------------------------ other threads


@pytest.mark.parametrize("times", [1, 3, 100])
def test_records_that_other_threads_append_meanwhile_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    append = StagedBatches.append
    others: list[int] = []

    def after_another(*arguments: object) -> None:
        log = arguments[2]
        assert isinstance(log, Log)
        if len(others) < times and log.partition == ONE:
            others.append(100 + len(others))
            log.append(make_batch(first=others[-1]))
        append(*arguments)  # type: ignore[arg-type]  # these are what it is called with

    monkeypatch.setattr(StagedBatches, "append", after_another)
    area = area_of(folder)
    with DataDirectory.open(folder) as data:
        if times == 100:
            with pytest.raises(CommitPending, match="other threads"):
                data.commit_staged(area, stage(area, *TASKS), topics=TOPICS)
        else:
            data.commit_staged(area, stage(area, *TASKS), topics=TOPICS)
    monkeypatch.undo()
    assert resolve(folder) == {ONE: [0, *others, *DONE[ONE][1:]], TWO: DONE[TWO]}


def test_the_staging_may_be_elsewhere(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    area = StagingArea.of(folder, folder=tmp_path / "far" / "away" / "staging")
    files = stage(area, *TASKS)
    with DataDirectory.open(folder) as data:
        data.commit_staged(area, files, topics=TOPICS)
    assert found(folder) == DONE
    assert list(area.folder.iterdir()) == []

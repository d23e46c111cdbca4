"""Whatever is raised in the middle of a commit of staged batches: each row is there once, or not at all.

The exception comes at lines of a commit, or of the opening that finishes one. Then the commit is repeated, in the
process that goes on and in one that finds what a kill would leave. Every day a few lines are tried; in the soak one
after the other.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest

from octavo.log import CommitIdentity, DataDirectory, StagedFile, StagedWriter, StagingArea
from octavo.log.names import TopicPartition
from octavo.log.ownership.lock import _held
from tests.crash.storage import FastStorage
from tests.interrupts.changes import batch, held
from tests.interrupts.raising import chosen, free_locks, lines_of, raise_at_line
from tests.soak.plugin import Soak
from tests.unit.log.staging.staged import commit_and_die

ONE: Final = TopicPartition("t", 0)
TWO: Final = TopicPartition("t", 1)
ROWS: Final = {ONE: range(100, 120), TWO: range(200, 203)}
CONFIG: Final = {"internal.segment.bytes": "700", "retention.ms": "-1"}
FILES: Final = FastStorage()
A_FEW: Final = 12


def open_directory(folder: Path) -> DataDirectory:
    return DataDirectory.open(folder / "data", storage=FILES)


def area_of(folder: Path) -> StagingArea:
    return StagingArea.of(folder / "data", identity=CommitIdentity("query", 0))


def stage(folder: Path) -> list[StagedFile]:
    writer = StagedWriter(area_of(folder), storage=FILES)
    for partition, numbers in ROWS.items():
        writer.add(*partition, [batch(number) for number in numbers])
    file = writer.finish()
    assert file is not None
    return [file]


def commit(data: DataDirectory, folder: Path) -> None:
    data.commit_staged(area_of(folder), stage(folder))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory to be copied, with its staging."""
    folder = tmp_path_factory.mktemp("commits") / "world"
    folder.mkdir()
    with open_directory(folder) as data:
        data.create_topic("t", 2, CONFIG)
        for partition in ROWS:
            data.log(*partition).append(batch(0))
        data.create_topic("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    return folder


@pytest.fixture(scope="module")
def pending_world(world: Path) -> Path:
    """The same, with a commit that is half done."""
    folder = world.with_name("pending")
    shutil.copytree(world, folder)
    commit_and_die(
        folder / "data", 2, {partition: [batch(number) for number in numbers] for partition, numbers in ROWS.items()}
    )
    return folder


def rows(data: DataDirectory) -> dict[TopicPartition, list[int]]:
    return {
        partition: [int(key or b"-1") for _, key, _ in held(data.log(*partition)).records if key != b"0"]
        for partition in ROWS
    }


def check_repeated(data: DataDirectory, folder: Path) -> None:
    commit(data, folder)
    assert rows(data) == {partition: list(numbers) for partition, numbers in ROWS.items()}


def judge(folder: Path, data: DataDirectory | None) -> None:
    """Look at what is left after a kill, and in the process that goes on."""
    killed = folder.with_name("killed")
    shutil.rmtree(killed, ignore_errors=True)
    shutil.copytree(folder, killed, ignore=shutil.ignore_patterns(".lock"))
    with open_directory(killed) as found:
        assert rows(found) in ({ONE: [], TWO: []}, {partition: list(numbers) for partition, numbers in ROWS.items()})
        check_repeated(found, killed)
    if data is None:
        data = open_directory(folder)
    try:
        check_repeated(data, folder)
    finally:
        data.close()
    with open_directory(folder) as found:
        check_repeated(found, folder)


def interrupt_commits(world: Path, folder: Path, seeds: Iterable[int]) -> int:
    """Interrupt a commit at a line for each seed; of how many lines."""

    def prepare() -> tuple[DataDirectory, Callable[[], object]]:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(world, folder)
        data = open_directory(folder)
        files = stage(folder)
        return data, lambda: data.commit_staged(area_of(folder), files)

    data, change = prepare()
    change()
    data.close()
    data, change = prepare()  # once more: the first time something may be imported
    lines = lines_of(change)
    data.close()
    for seed in seeds:
        data, change = prepare()
        raise_at_line(change, *chosen(lines, seed))
        free_locks()
        judge(folder, data)
    return len(lines)


def interrupt_openings(world: Path, folder: Path, seeds: Iterable[int]) -> int:
    """Interrupt the opening of a directory with a pending commit, at lines of `octavo.log.staging`; of how many."""

    def prepare() -> Callable[[], None]:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(world, folder)
        return lambda: open_directory(folder).close()

    prepare()()
    lines = Counter({line: times for line, times in lines_of(prepare()).items() if "/staging/" in line[0]})
    for seed in seeds:
        raise_at_line(prepare(), *chosen(lines, seed))
        free_locks()
        for lock in list(_held.values()):  # of an opening that did not come to its end
            if lock.folder.is_relative_to(folder):
                lock.release()
        judge(folder, None)
    return len(lines)


def test_an_interrupted_commit_is_done_once_or_not_at_all(world: Path, tmp_path: Path) -> None:
    assert interrupt_commits(world, tmp_path / "copy", range(A_FEW)) > 300


def test_an_interrupted_opening_finishes_a_commit_once(pending_world: Path, tmp_path: Path) -> None:
    assert interrupt_openings(pending_world, tmp_path / "copy", range(A_FEW)) > 100


@pytest.mark.soak
def test_a_commit_is_done_once_or_not_at_all_wherever_it_is_interrupted(
    world: Path, tmp_path: Path, soak: Soak
) -> None:
    interrupt_commits(world, tmp_path / "copy", soak.seeds())


@pytest.mark.soak
def test_an_opening_finishes_a_commit_once_wherever_it_is_interrupted(
    pending_world: Path, tmp_path: Path, soak: Soak
) -> None:
    interrupt_openings(pending_world, tmp_path / "copy", soak.seeds())

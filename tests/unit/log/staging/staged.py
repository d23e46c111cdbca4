"""Commits for tests: batches that can be told apart, staged by a few tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from unittest import mock

from octavo.log import (
    CommitIdentity,
    DataDirectory,
    ExpectedTopic,
    StagedCommit,
    StagedFile,
    StagedWriter,
    StagingArea,
)
from octavo.log.names import TopicPartition
from octavo.log.staging import commits
from octavo.log.staging.appending import StagedBatches
from octavo.log.staging.journal import write_journal
from octavo.log.storage import DISK, Storage
from tests.unit.log.forks import exit_code_of_fork
from tests.unit.log.logs import keys, make_batch

TOPIC: Final = "t"
ONE: Final = TopicPartition(TOPIC, 0)
TWO: Final = TopicPartition(TOPIC, 1)
TOPICS: Final = {TOPIC: ExpectedTopic(2, {"internal.segment.bytes": "1000", "index.interval.bytes": "100"})}

KILLED: Final = 9  # how a process exits that dies in a commit

Task = Mapping[TopicPartition, Iterable[bytes]]


def area_of(folder: Path, application: str | None = "query", version: int = 0) -> StagingArea:
    """The area for a commit to the directory at `folder`."""
    return StagingArea.of(folder, identity=None if application is None else CommitIdentity(application, version))


def stage(area: StagingArea, *tasks: Task, storage: Storage = DISK, sync: bool = True) -> list[StagedFile]:
    """Have each task write its batches, one after the other."""
    files = []
    for task in tasks:
        writer = StagedWriter(area, storage=storage, sync=sync)
        for (topic, partition), batches in task.items():
            for batch in batches:
                writer.add(topic, partition, batch)
        file = writer.finish()
        if file is not None:
            files.append(file)
    return files


def commit(folder: Path, *tasks: Task, application: str | None = "query", version: int = 0) -> StagedCommit:
    """Stage and commit to the directory at `folder`."""
    area = area_of(folder, application, version)
    files = stage(area, *tasks)
    with DataDirectory.open(folder) as data:
        return data.commit_staged(area, files, topics=TOPICS)


def batches(*numbers: int) -> list[bytes]:
    """A batch of one record for each number, which is its key."""
    return [make_batch(first=number) for number in numbers]


def found(folder: Path) -> dict[TopicPartition, list[int]]:
    """The keys in each partition of the directory, without opening it for writing."""
    with DataDirectory.open(folder, read_only=True) as data:
        return {partition: keys(data.log(*partition)) for partition in data.partitions()}


def die_before(step: int, die: Callable[[], object] = lambda: os._exit(KILLED)) -> None:
    """Have this process, which ends with it, die before a step of its next commit.

    The first step writes the journal, which decides; then each partition is appended to; the last writes the journal.
    """
    append, left = StagedBatches.append, step

    def count() -> None:
        nonlocal left
        if not left:
            die()
        left -= 1

    def append_or_die(*arguments: Any) -> None:
        count()
        append(*arguments)

    def write_or_die(*arguments: Any) -> None:
        count()
        write_journal(*arguments)

    mock.patch.object(StagedBatches, "append", append_or_die).start()
    mock.patch.object(commits, "write_journal", write_or_die).start()


def commit_and_die(folder: Path, step: int, *tasks: Task, version: int = 0) -> None:
    """Stage and commit to the directory at `folder`, in a process that dies before `step`."""
    area = area_of(folder, version=version)
    files = stage(area, *tasks)

    def work() -> None:
        die_before(step)
        with DataDirectory.open(folder) as data:
            data.commit_staged(area, files, topics=TOPICS)

    assert exit_code_of_fork(work) == KILLED

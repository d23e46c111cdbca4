"""Seeded commits of staged batches: several tasks, topics and applications, and what a crash may leave of them.

Every record has a number of its own. A commit that was acknowledged is there, each of its records once. One that had
begun is there as a whole or not at all, once the directory was opened; and committing it again makes it be there once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final

from octavo.log import (
    CommitIdentity,
    DataDirectory,
    ExpectedTopic,
    Isolation,
    StagedFile,
    StagedWriter,
    StagingArea,
)
from octavo.log.names import TopicPartition
from octavo.log.storage import Storage
from octavo.records import BatchBuilder
from octavo.records.layout import Codec
from tests.clock import Clock
from tests.crash.opening import open_directory
from tests.crash.storage import CrashStorage

_COMMON: Final = {"internal.segment.bytes": "900", "index.interval.bytes": "150"}
TOPICS: Final = {
    "plain": ExpectedTopic(2, _COMMON),
    "stamped": ExpectedTopic(1, _COMMON | {"message.timestamp.type": "LogAppendTime"}),
    "packed": ExpectedTopic(1, _COMMON | {"compression.type": "lz4", "internal.segment.bytes": "5000"}),
    "restored": ExpectedTopic(1, _COMMON),
}
RESTORED: Final = TopicPartition("restored", 0)
PARTITIONS: Final = [
    TopicPartition(name, number) for name, topic in TOPICS.items() for number in range(topic.partitions)
]
APPLICATIONS: Final = ("one", "two")
DATA: Final = "data"  # the directory; its staging is beside it


@dataclass(frozen=True)
class Commit:
    """One commit: its identity, and the numbers of its records, batch by batch and task by task."""

    application: str
    version: int
    tasks: tuple[tuple[tuple[TopicPartition, tuple[int, ...]], ...], ...]
    base_offset: int | None = None  # of restored batches

    @property
    def numbers(self) -> list[tuple[TopicPartition, int]]:
        """All records, each with its partition."""
        return [(partition, number) for task in self.tasks for partition, batch in task for number in batch]

    def area(self, folder: Path) -> StagingArea:
        """Where its files are."""
        return StagingArea.of(folder / DATA, identity=CommitIdentity(self.application, self.version))

    def stage(self, folder: Path, storage: Storage, clock: Clock) -> list[StagedFile]:
        """Have all tasks write their files."""
        files = []
        offset = self.base_offset or 0
        for task in self.tasks:
            writer = StagedWriter(self.area(folder), storage=storage)
            for partition, numbers in task:
                builder = BatchBuilder(base_offset=offset, codec=Codec.LZ4 if numbers[0] % 5 == 0 else Codec.NONE)
                for number in numbers:
                    builder.append(b"%d" % number, bytes(number % 90), timestamp_ms=clock.now_ms)
                writer.add(*partition, builder.build())
                if self.base_offset is not None:
                    offset = builder.next_offset + number % 3  # which leaves gaps
            file = writer.finish()
            assert file is not None
            files.append(file)
        return files


@dataclass
class Known:
    """What was acknowledged, and what may be there besides."""

    done: list[Commit] = field(default_factory=list)
    begun: Commit | None = None
    others: list[tuple[TopicPartition, int]] = field(default_factory=list)  # appended by somebody else, and flushed
    unflushed: list[tuple[TopicPartition, int]] = field(default_factory=list)  # appended by somebody else


class CommitWorkload:
    """One run over one directory, by one process or by several, of which each goes on for a dead one."""

    def __init__(self, seed: int, folder: Path, storage: CrashStorage) -> None:
        self.random: Final = Random(seed)
        self.clock: Final = Clock()
        self.history: Final[list[tuple[int, Known]]] = []  # what is known from which operation on
        self.known = Known()
        self._folder = folder
        self._storage = storage
        self._versions = dict.fromkeys(APPLICATIONS, 0)
        self._number = 0
        self._note(self.known)

    def run(self, steps: int) -> None:
        """Make so many commits; the directory is opened for some of them anew."""
        data = open_data(self._folder, self._storage, self.clock)
        for _ in range(steps):
            self.clock.now_ms += self.random.choice((0, 1, 40))
            if self.random.random() < 0.4:
                data.close()
                data = open_data(self._folder, self._storage, self.clock)
            if data.topics and self.random.random() < 0.3:
                self._append(data)
            self._commit(data)
        data.close()

    def _commit(self, data: DataDirectory) -> None:
        commit = self.known.begun or self._new_commit(data)  # what a dead process began is repeated
        self._note(replace(self.known, begun=commit))
        area = commit.area(self._folder)
        files = commit.stage(self._folder, self._storage, self.clock)
        if self.random.random() < 0.2:  # another attempt at a task, that nobody asks for
            commit.stage(self._folder, self._storage, self.clock)
        keep = commit.base_offset is not None
        done = data.commit_staged(area, files, topics=TOPICS, keep_offsets=keep)
        assert not done.is_repeated or self.known.begun is not None
        self._note(replace(self.known, done=[*self.known.done, commit], begun=None))
        if self.random.random() < 0.2:
            files = commit.stage(self._folder, self._storage, self.clock)
            assert data.commit_staged(area, files, topics=TOPICS, keep_offsets=keep).is_repeated

    def _new_commit(self, data: DataDirectory) -> Commit:
        application = self.random.choice(APPLICATIONS)
        self._versions[application] += self.random.choice((1, 1, 3))
        base_offset = None
        partitions = [each for each in PARTITIONS if each != RESTORED]
        if self.random.random() < 0.25:
            partitions = [RESTORED]
            base_offset = data.log(*RESTORED).end_offset + 2 if "restored" in data.topics else 0
        tasks = []
        for _ in range(self.random.choice((1, 2, 3))):
            task = []
            for _ in range(self.random.choice((1, 2, 5))):
                numbers = range(self._number, self._number + self.random.choice((1, 1, 2, 4)))
                self._number = numbers.stop
                task.append((self.random.choice(partitions), tuple(numbers)))
            tasks.append(tuple(task))
        return Commit(application, self._versions[application], tuple(tasks), base_offset)

    def _append(self, data: DataDirectory) -> None:
        """Append something that is not part of any commit. If nobody flushes it, a power cut may take it."""
        log = data.log(self.random.choice(sorted(data.topics.keys() - {"restored"} or {"restored"})), 0)
        for _ in range(self.random.choice((1, 3))):
            builder = BatchBuilder()
            builder.append(b"%d" % self._number, bytes(40), timestamp_ms=self.clock.now_ms)
            self._note(replace(self.known, unflushed=[*self.known.unflushed, (log.partition, self._number)]))
            self._number += 1
            log.append(builder.build())
        if self.random.random() < 0.3:
            log.flush()
            flushed = [each for each in self.known.unflushed if each[0] == log.partition]
            self._note(replace(self.known, others=[*self.known.others, *flushed]))

    def _note(self, known: Known) -> None:
        self.known = known
        self.history.append((len(self._storage.journal), known))


def open_data(folder: Path, storage: Storage, clock: Clock) -> DataDirectory:
    """The directory, in a folder that has its staging as well."""
    return open_directory(folder / DATA, storage=storage, clock=clock)


def numbers_in(data: DataDirectory) -> list[tuple[TopicPartition, int]]:
    """All records, each with its partition, in the order of each log."""
    return [
        (partition, int(record.key or b"-1"))
        for partition in data.partitions()
        for batch in data.log(*partition).reader(isolation=Isolation.LOG_END)
        for record in batch
    ]


def check(data: DataDirectory, known: Known) -> None:
    """Each record is there once or, if nobody was told otherwise, not at all."""
    found = numbers_in(data)
    assert len(found) == len(set(found)), "some records are there twice"
    promised = {each for commit in known.done for each in commit.numbers} | set(known.others)
    assert promised <= set(found), f"lost: {sorted(promised - set(found))}"
    more = set(found) - promised - set(known.unflushed)
    begun = set(known.begun.numbers) if known.begun else set()
    assert more <= begun, f"nobody wrote {sorted(more - begun)}"
    assert more & begun in (set(), begun), "a commit is there in part"
    for partition in PARTITIONS:
        for commit in known.done:
            order = [number for each, number in commit.numbers if each == partition]
            there = [number for each, number in found if each == partition and number in set(order)]
            assert order == there, "the order within a partition is another"


def judge(folder: Path, known: Known, storage: Storage, clock: Clock) -> None:
    """Open what a crash has left, look at it, and commit again what had begun."""
    with open_data(folder, storage, clock) as data:
        check(data, known)
        if known.begun is not None:
            commit = known.begun
            files = commit.stage(folder, storage, clock)
            data.commit_staged(commit.area(folder), files, topics=TOPICS, keep_offsets=commit.base_offset is not None)
            known = replace(known, done=[*known.done, commit], begun=None)
            check(data, known)
    with open_data(folder, storage, clock) as data:
        check(data, known)
        assert all(report.was_clean for report in data.reports)

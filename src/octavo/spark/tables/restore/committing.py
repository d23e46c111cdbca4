"""Append what the tasks of an import have staged to the logs of the target: `TargetLogs`.

Topics are created before the commit. So that a process that dies between the two leaves no empty topics for good, it
first notes which topics it creates, in the staging folder. The next import deletes them if they are still empty.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from octavo.errors import DirectoryLocked, InvalidInput, OctavoError
from octavo.log import DataDirectory, ExpectedTopic, StagedCommit, StagedFile, StagingArea, discard_staged
from octavo.log.files.meta_properties import random_uuid
from octavo.log.names import TopicPartition
from octavo.log.partition_folders import check_data_folder, check_place
from octavo.log.staging.journal import journal_path, read_journal
from octavo.log.storage import DISK
from octavo.spark.tables.restore.created_topics import CreatedTopics


class ImportedTopic(NamedTuple):
    """A topic of the table, and what it is created with if the target does not have it."""

    first_offsets: Mapping[int, int]  # of each partition that has rows
    ends: Mapping[int, int]  # where the log of each partition ended, as far as the table tells
    topic_id: UUID | None
    config: Mapping[str, str]

    @property
    def partitions(self) -> int:
        """The number of partitions: nobody has noted those after the last one that was exported."""
        return max((*self.first_offsets, *self.ends)) + 1


class ImportedLogs(NamedTuple):
    """What the commit of an import has done."""

    offsets: Mapping[TopicPartition, range]  # from the first record to the end of the log
    created: tuple[str, ...]  # topics that were created


class TargetLogs:
    """The logs that a table is imported to."""

    def __init__(self, path: str | Path, lock_timeout: float, staging_path: str | Path | None = None) -> None:
        """Raises `InvalidInput` for an address, and `BadDirectory` if no logs can be there."""
        self.path: Final = _local_path(path)
        check_place(self.path)
        check_data_folder(self.path)
        self._lock_timeout: Final = lock_timeout
        self.area: Final = StagingArea.of(self.path, folder=staging_path)
        self._created: Final = CreatedTopics.of(self.area)

    def check(self, topics: Mapping[str, ImportedTopic]) -> None:
        """Check that the offsets can be imported, before much work is done. Raises as `commit` does."""
        if self.path.exists() and any(self.path.iterdir()):
            with self._open() as directory:
                self._check(directory, topics)

    def commit(self, files: Sequence[StagedFile], topics: Mapping[str, ImportedTopic], *, sync: bool) -> ImportedLogs:
        """Append the staged batches, all or none. Whatever is raised, the staged files are gone, or needed to finish.

        Raises `InvalidInput` if the logs have such offsets already, or too few partitions; `DirectoryLocked`,
        `OthersDecide`, `BadDirectory` and `OSError`. Raises `CommitPending` if the next opener finishes the commit.
        """
        try:
            with self._open() as directory:
                self._check(directory, topics)
                try:
                    created = self._create(directory, topics)
                    done = self._append(directory, files, topics, sync=sync)
                except (OctavoError, OSError):
                    with contextlib.suppress(OctavoError, OSError):  # the next import tries again
                        self._settle(directory)
                    raise
                self._created.remove()
        except BaseException:
            discard_staged(self.path, self.area, files)  # except for those that a pending commit needs
            raise
        return ImportedLogs(done.offsets, created)

    def _append(
        self, directory: DataDirectory, files: Sequence[StagedFile], topics: Mapping[str, ImportedTopic], *, sync: bool
    ) -> StagedCommit:
        for name, topic in topics.items():
            for partition in topic.ends.keys() - topic.first_offsets.keys():
                _begin_at(directory, TopicPartition(name, partition), topic.ends[partition])
        expected = {name: ExpectedTopic(len(directory.topics[name].partitions)) for name in topics}
        return directory.commit_staged(self.area, files, topics=expected, keep_offsets=True, sync=sync)

    def _open(self) -> DataDirectory:
        try:
            directory = DataDirectory.open(self.path, lock_timeout=self._lock_timeout)
        except DirectoryLocked as error:
            error.add_note("Stop the program that has it open, or import into another directory.")
            raise
        try:
            self._settle(directory)
        except BaseException:
            directory.close()
            raise
        return directory

    def _settle(self, directory: DataDirectory) -> None:
        """Delete the topics that an import has created, unless its commit followed, or is still to be finished."""
        if read_journal(DISK, journal_path([self.path])).pending is not None:
            return
        for name, topic_id in self._created.read().items():
            topic = directory.topics.get(name)
            if topic is not None and topic.id == topic_id:
                logs = [directory.log(name, partition) for partition in topic.partitions]
                if all(log.start_offset == log.end_offset for log in logs):
                    directory.delete_topic(name)
        self._created.remove()

    def _check(self, directory: DataDirectory, topics: Mapping[str, ImportedTopic]) -> None:
        for name, topic in sorted(topics.items()):
            known = directory.topics.get(name)
            if known is None:
                continue
            if len(known.partitions) < topic.partitions:
                raise InvalidInput(
                    f"the topic {name!r} in {self.path} has {len(known.partitions)} partitions, and the table has rows "
                    f"of {topic.partitions}"
                )
            for partition, first in sorted(topic.first_offsets.items()):
                end = directory.log(name, partition).end_offset
                if end > first:
                    raise InvalidInput(
                        f"{name}-{partition} in {self.path} has offsets up to {end - 1} already, and the table has "
                        f"{first}: import into another directory, or delete the topic there first"
                    )

    def _create(self, directory: DataDirectory, topics: Mapping[str, ImportedTopic]) -> tuple[str, ...]:
        """Create the topics that are missing, with the ids that they had, unless another topic has such an id."""
        taken = {topic.id for topic in directory.topics.values()}
        missing = {}
        for name in sorted(topics.keys() - directory.topics.keys()):
            known = topics[name].topic_id
            missing[name] = random_uuid() if known is None or known in taken else known
            taken.add(missing[name])
        if missing:
            self.area.make(DISK)
            self._created.write(missing)
        for name, topic_id in missing.items():
            directory.create_topic(name, topics[name].partitions, topics[name].config, topic_id=topic_id)
        return tuple(missing)


def _begin_at(directory: DataDirectory, partition: TopicPartition, offset: int) -> None:
    """Have a log without records begin where it ended: its next record gets this offset."""
    log = directory.log(*partition)
    if log.start_offset == log.end_offset < offset:
        log.begin_at(offset)


def _local_path(target: str | Path) -> Path:
    text = str(target)
    if "://" in text and not text.startswith("file://"):
        raise InvalidInput(f"{text} is no target: logs are written in a folder of a file system, not in a bucket")
    return Path(text.removeprefix("file://")).absolute()

"""Commit staged batches, and finish a commit that was interrupted: `StagedCommits`.

The order of the steps is in the docstring of this package. Two things follow from the journal alone:

- A commit that fails before the journal has it as pending never was. One that fails while its batches are appended is
  undone: the logs are truncated, then the journal is written without it. If that fails as well, it stays pending.
- Before the rest of a pending commit is appended at an offset that the journal does not have, what is in the logs is
  flushed, and the journal gets the rest with the new offset. So the next attempt knows where to look.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.errors import (
    AppendRefused,
    CommitPending,
    CommitUnresolved,
    CorruptFile,
    LogError,
    OctavoError,
    UnknownPartition,
)
from octavo.log.at_once import work_at_once, work_side_by_side
from octavo.log.log import Log
from octavo.log.names import TopicPartition, check_clients_may_write
from octavo.log.staging.appending import StagedBatches
from octavo.log.staging.area import StagingArea
from octavo.log.staging.journal import (
    Journal,
    PendingCommit,
    PendingPartition,
    journal_path,
    read_journal,
    write_journal,
)
from octavo.log.staging.matching import missing_part
from octavo.log.staging.outcome import ExpectedTopic, StagedCommit
from octavo.log.staging.planning import Planned, Planner
from octavo.log.staging.writer import StagedFile
from octavo.log.storage import Storage

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory

_ATTEMPTS: Final = 20  # at appending, while other threads append to the same logs


class StagedCommits:
    """Commits staged batches to one data directory. Callers hold the directory's lock."""

    def __init__(self, folders: Sequence[Path], storage: Storage) -> None:
        """Use the journal in one of the data folders. Raises `BadDirectory`."""
        self._path: Final = journal_path([folder.absolute().resolve() for folder in folders])
        self._storage: Final = storage

    def check(self) -> None:
        """Check the journal and the files of a pending commit, without changing anything.

        Raises `CorruptFile` and `CommitUnresolved`.
        """
        pending = read_journal(self._storage, self._path).pending
        if pending is not None:
            self._verify(pending.partitions, self._staged(pending))

    def commit(
        self,
        directory: DataDirectory,
        area: StagingArea,
        files: Sequence[StagedFile],
        topics: Mapping[str, ExpectedTopic],
        *,
        keep_offsets: bool,
        sync: bool,
    ) -> StagedCommit:
        """Commit as `DataDirectory.commit_staged` describes."""
        if not files:
            return StagedCommit({})
        journal = self.resolve(directory)
        now_ms = directory.now_ms()
        if area.identity is not None and journal.has(area.identity):
            area.remove_leftovers(self._storage, now_ms)
            return StagedCommit({}, is_repeated=True)
        partitions = {chunk.partition for file in files for chunk in file.chunks}
        logs = _find_logs(directory, partitions, topics)
        planner = Planner(area, self._storage, now_ms, keep_offsets=keep_offsets, sync=sync)
        try:
            planned = planner.plan(files, logs, {name: topic.id for name, topic in directory.topics.items()})
            if sync:
                area.sync(self._storage)
            pending = self._pending(area, planner.file_names, planned, now_ms, keep_offsets=keep_offsets)
            self._decide(journal.with_pending(pending))
        except CommitPending:
            raise
        except (OctavoError, OSError):
            planner.discard()
            raise
        try:
            offsets = self._append(directory, journal, pending, planned, sync=sync)
        except CommitPending:
            raise
        except (OctavoError, OSError):  # the logs are as they were
            planner.discard()
            raise
        area.remove_leftovers(self._storage, now_ms)
        return StagedCommit(offsets)

    def resolve(self, directory: DataDirectory) -> Journal:
        """Finish a pending commit, if there is one. Returns the journal.

        Raises `CommitUnresolved` if it cannot be told what is missing, or if a staged file was changed or removed.
        Raises `OSError`; then the commit stays pending.
        """
        journal = read_journal(self._storage, self._path)
        for _ in range(_ATTEMPTS):
            pending = journal.pending
            if pending is None:
                return journal
            staged = self._staged(pending)
            logs = self._logs(directory, pending)
            self._verify([each for each in pending.partitions if each.of in logs], staged)
            rest = self._missing(pending, staged, logs)
            work_at_once(Log.flush, list(logs.values()))
            if rest.partitions:
                journal = journal.with_pending(rest)
                write_journal(self._storage, self._path, journal)
                try:
                    for partition in rest.partitions:
                        staged.append(partition, logs[partition.of])
                except AppendRefused:
                    continue  # another thread has appended meanwhile
                work_at_once(Log.flush, [logs[partition.of] for partition in rest.partitions])
            journal = journal.with_committed(pending)
            write_journal(self._storage, self._path, journal)
            self._remove_staged(pending)
            return journal
        raise CommitPending(f"other threads append to the same logs, {_ATTEMPTS} times in a row")

    # -------------------------------------------------------------------------------------------------------- commits

    def _pending(
        self, area: StagingArea, files: tuple[str, ...], planned: Sequence[Planned], now_ms: int, *, keep_offsets: bool
    ) -> PendingCommit:
        """Return what the journal has to know of a commit."""
        staging = area.folder
        if staging.parent == self._path.parent.parent:  # then they may be moved or copied together
            staging = Path(os.pardir, staging.name)
        return PendingCommit(
            application="" if area.identity is None else area.identity.application,
            version=area.version,
            committed_ms=now_ms,
            keep_offsets=keep_offsets,
            staging=str(staging),
            files=files,
            partitions=tuple(each.pending for each in planned),
        )

    def _decide(self, journal: Journal) -> None:
        """Write the journal with a pending commit. Raises `CommitPending` if that fails after it is in place."""
        try:
            write_journal(self._storage, self._path, journal)
        except OSError as error:
            if self._has_pending():
                raise CommitPending(str(error)) from error
            raise

    def _append(
        self,
        directory: DataDirectory,
        journal: Journal,
        pending: PendingCommit,
        planned: Sequence[Planned],
        *,
        sync: bool,
    ) -> dict[TopicPartition, range]:
        """Append what was planned and is pending in the journal. Raises `CommitPending` if that is done only later."""
        staged = self._staged(pending, sync=sync)
        try:
            try:
                size = sum(piece.size for each in planned for piece in each.pending.pieces)
                work_side_by_side(lambda each: staged.append(each.pending, each.log), planned, size)
            except AppendRefused:  # another thread has appended meanwhile: the rest goes behind its records
                self.resolve(directory)
                return {}
            except (OctavoError, OSError) as error:
                self._undo(journal, planned, staged, error)
                raise
            if sync:
                work_at_once(Log.flush, [each.log for each in planned])
            try:
                write_journal(self._storage, self._path, journal.with_committed(pending))
            except OSError as error:  # which of the two journals the next opener will find is not known
                raise CommitPending(str(error)) from error
        except CommitPending:
            raise
        except (OctavoError, OSError) as error:
            if self._has_pending():
                raise CommitPending(str(error)) from error
            raise
        self._remove_staged(pending)
        return {each.pending.of: range(each.pending.base_offset, staged.ends[each.pending.of]) for each in planned}

    def _undo(self, journal: Journal, planned: Sequence[Planned], staged: StagedBatches, error: BaseException) -> None:
        """Truncate the logs to where they ended, and forget the commit. If that is not possible, it stays pending."""
        try:
            for each in planned:
                with each.log.lock:
                    if each.log.end_offset != staged.ends.get(each.pending.of, each.end_before):
                        raise CommitPending(f"another thread has appended to {each.pending.of}")
                    each.log.truncate_to(each.end_before)
            write_journal(self._storage, self._path, journal)
        except (OctavoError, OSError) as another:
            error.add_note(f"undoing it failed as well: {type(another).__name__}: {another}")

    # -------------------------------------------------------------------------------------------------------- pending

    def _staged(self, pending: PendingCommit, *, sync: bool = True) -> StagedBatches:
        return StagedBatches(pending, self._staging(pending), self._storage, sync=sync)

    def _staging(self, pending: PendingCommit) -> Path:
        """Return the folder of the staged files."""
        return Path(os.path.normpath(self._path.parent / pending.staging))

    def _verify(self, partitions: Iterable[PendingPartition], staged: StagedBatches) -> None:
        """Check that the staged batches are those that were planned. Raises `CommitUnresolved`."""
        try:
            for partition in partitions:
                staged.verify(partition)
        except CorruptFile as error:
            raise CommitUnresolved(self._path, str(error)) from error

    def _logs(self, directory: DataDirectory, pending: PendingCommit) -> dict[TopicPartition, Log]:
        """Return the logs of a pending commit, without those of topics that were deleted since it was decided.

        Their records would have been deleted with them. Raises `CommitUnresolved` if a partition is missing otherwise.
        """
        logs = {}
        for partition in pending.partitions:
            topic = directory.topics.get(partition.topic)
            if topic is not None and topic.id == partition.topic_id:
                try:
                    logs[partition.of] = directory.log(*partition.of)
                except UnknownPartition as error:
                    raise CommitUnresolved(self._path, str(error)) from error
        return logs

    def _missing(
        self, pending: PendingCommit, staged: StagedBatches, logs: Mapping[TopicPartition, Log]
    ) -> PendingCommit:
        """Return the pending commit without what is in the logs already, and with the offsets for the rest."""
        rest = []
        for partition in pending.partitions:
            log = logs.get(partition.of)
            if log is not None:
                with log.lock:
                    log.settle()  # what an interrupted append has written is about to be removed
                    rest.append(missing_part(self._path, staged, partition, log, keep_offsets=pending.keep_offsets))
        return replace(pending, partitions=tuple(partition for partition in rest if partition is not None))

    def _has_pending(self) -> bool:
        """Return whether a commit is pending, or may be."""
        try:
            return read_journal(self._storage, self._path).pending is not None
        except (OctavoError, OSError):
            return True

    def _remove_staged(self, pending: PendingCommit) -> None:
        """Remove the files of a commit that is finished. What cannot be removed is removed by a later commit."""
        for name in pending.files:
            with suppress(OSError):
                self._storage.remove(self._staging(pending) / name)


def _find_logs(
    directory: DataDirectory, partitions: Iterable[TopicPartition], topics: Mapping[str, ExpectedTopic]
) -> dict[TopicPartition, Log]:
    """Return the logs of the partitions, and create topics that are missing. Raises `LogError`."""
    partitions = sorted(partitions)
    for name in sorted({partition.topic for partition in partitions}):
        expected, found = topics.get(name), directory.topics.get(name)
        check_clients_may_write(name)
        if found is None and expected is not None:
            directory.create_topic(name, expected.partitions, expected.config)
        elif found is not None and expected is not None and len(found.partitions) != expected.partitions:
            raise LogError(
                f"the topic {name!r} has {len(found.partitions)} partitions, and the records were divided among "
                f"{expected.partitions}: stage them again"
            )
    logs = {partition: directory.log(*partition) for partition in partitions}
    for log in logs.values():
        log.settle()  # raises if the log takes no more
    return logs

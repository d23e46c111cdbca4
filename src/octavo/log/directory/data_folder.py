"""One folder of partitions: its lock, its mark of a clean shutdown, its checkpoints, and the logs in it."""

from __future__ import annotations

import contextlib
import errno
import os
import traceback
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import BadDirectory, OctavoError
from octavo.log.at_once import TOO_MANY_OPEN
from octavo.log.checkpoints import Checkpoints, Kept
from octavo.log.clock import Clock, Deadline
from octavo.log.closing import Attempts
from octavo.log.config.broker_defaults import TopicConfig
from octavo.log.files.clean_shutdown import read_broker_epoch, remove_mark, was_clean, write_mark
from octavo.log.files.partition_metadata import write_topic_ids
from octavo.log.log import Log
from octavo.log.names import META_PROPERTIES, Aside, AsideFolder, TopicPartition, aside_folder_name
from octavo.log.observer import DirectoryObserver
from octavo.log.ownership.lock import DirectoryLock
from octavo.log.ownership.owned_storage import OwnedStorage
from octavo.log.partition_folders import PartitionFolders, find_partitions
from octavo.log.recovery.loading import check_partition
from octavo.log.recovery.recover import Recover
from octavo.log.recovery_report import OnProgress
from octavo.log.storage import Storage
from octavo.log.writing.log_state import LogState, Stamp

_MANY: Final = 100  # logs that are worth threads when they are closed


class _Opened(NamedTuple):
    """An open log and its state. The folder needs the state to close the log and to write the checkpoints."""

    log: Log
    state: LogState


class DataFolder:
    """A folder of partitions that is open for writing."""

    def __init__(self, path: Path, storage: Storage) -> None:
        """Lock the folder, and read its checkpoints and partitions. Changes nothing. Raises `LogError`, `OSError`."""
        self.path: Final = path
        self._opened: Final[dict[TopicPartition, _Opened]] = {}
        self._written: dict[TopicPartition, Stamp] = {}  # how logs were when their checkpoints were last written
        self._observer: DirectoryObserver | None = None
        self._has_begun = False
        self._is_open = True
        self.recover = Recover.REFUSE  # what may be done where damage lies before sound batches
        self.has_failed = False  # the disk has: then the logs are checked when the folder is opened again
        self._is_loading = False  # a log is being opened, or an exception has interrupted its opening
        self._with_gaps: Final[set[TopicPartition]] = set()  # what `check` was told
        self._deleted: dict[Path, Deadline] = {}  # renamed folders, each with the time at which to remove it
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise BadDirectory(path, "there is no permission to read and write in this folder")
        self.lock: Final = DirectoryLock.acquire(path, storage)
        self.storage: Final[Storage] = OwnedStorage(storage, self.lock)
        try:
            self.was_clean: Final = was_clean(path)
            self.broker_epoch = read_broker_epoch(storage, path)  # written back into the mark, for Kafka
            self.checkpoints: Final = Checkpoints(self.storage, path, self.lock)
            self.partitions: Final = PartitionFolders(find_partitions(path, strict=True))
        except BaseException:
            self.lock.release()
            raise

    def begin(self) -> None:
        """Remove the mark of a clean shutdown, so that a crash from now on is noticed."""
        self._has_begun = True
        asides = ((path, AsideFolder.parse(path.name)) for path in sorted(self.path.iterdir()))
        self._deleted = {
            path: Deadline(0, 0) for path, aside in asides if aside is not None and aside.why is Aside.DELETE
        }
        if not remove_mark(self.storage, self.path):
            # A process that died may have renamed files without a sync. We have read the new names, so they must last.
            self.storage.sync_folder(self.path)

    def check(self, partition: TopicPartition, *, may_have_gaps: bool) -> None:
        """Check a partition of this folder without changing it. Raises an error if something is wrong with it."""
        if may_have_gaps:
            self._with_gaps.add(partition)
        checkpoints = self.checkpoints
        recovery_point = checkpoints.recovery_point(partition)
        check_partition(
            self.storage,
            self.partitions[partition],
            start_offset=checkpoints.start_offset(partition),
            may_have_gaps=self._may_have_gaps(partition),
            end_offset=(recovery_point or None) if self.was_clean else None,
            recovers_from=recovery_point if not self.was_clean and checkpoints.has_recovery_point(partition) else None,
        )

    def _may_have_gaps(self, partition: TopicPartition) -> bool:
        """Return whether offsets may be missing between two segments of a partition, other than by a crash."""
        return partition in self._with_gaps or self.checkpoints.cleaner_offset(partition) is not None

    def open_log(
        self,
        partition: TopicPartition,
        topic: TopicConfig,
        *,
        leader_epoch: int = 0,
        is_only_replica: bool = True,
        clock: Clock,
        on_progress: OnProgress | None,
        is_for_log: bool = False,
        is_new: bool = False,
    ) -> Log:
        """Open the log of a partition of this folder.

        is_for_log: closing the log also closes the folder
        is_new: `make_partitions` has just made the partition, so there is nothing in it
        """
        self._is_loading = True
        try:
            state = LogState.load(
                self.partitions[partition],
                partition,
                topic.config,
                self.checkpoints,
                clean=self.was_clean,
                leader_epoch=leader_epoch,
                is_only_replica=is_only_replica,
                storage=self.storage,
                clock=clock,
                config_is_known=topic.is_known,
                may_have_gaps=topic.may_be_compacted or self._may_have_gaps(partition),
                on_progress=on_progress,
                is_new=is_new,
                recover=self.recover,
            )
            log = Log(state, self.close if is_for_log else state.close)
            opened = self._opened[partition] = _Opened(log, state)
            self._observe(opened)
        except (OctavoError, OSError):
            self._is_loading = False  # opening the log again repeats all of this
            raise
        self._is_loading = False
        return log

    def observe(self, observer: DirectoryObserver) -> None:
        """Have `observer` told of changes of all logs, also of those that are opened later."""
        self._observer = observer
        for opened in list(self._opened.values()):
            self._observe(opened)

    def _observe(self, opened: _Opened) -> None:
        if self._observer is not None:
            opened.state.on_change = partial(self._observer.log_changed, opened.log)

    def log(self, partition: TopicPartition) -> Log | None:
        """Return the log of a partition; None if it is not open."""
        opened = self._opened.get(partition)
        return None if opened is None else opened.log

    @property
    def logs(self) -> dict[TopicPartition, Log]:
        """The open logs."""
        return {partition: opened.log for partition, opened in list(self._opened.items())}

    def set_config(self, partition: TopicPartition, topic: TopicConfig) -> None:
        """Change the configuration of a partition's log, if that log is open."""
        opened = self._opened.get(partition)
        if opened is not None:
            opened.state.set_config(topic.config, is_known=topic.is_known)

    def prepare_policy(self, partition: TopicPartition) -> None:
        """Prepare an open log for another `cleanup.policy`; see `Flushing.expect_gaps`."""
        opened = self._opened.get(partition)
        if opened is not None:
            opened.state.flushing.expect_gaps()

    def forget_files(self) -> None:
        """Close the files of all logs until they are needed again."""
        for opened in list(self._opened.values()):
            opened.state.forget_files()

    def make_partitions(self, partitions: Iterable[TopicPartition], topic_id: uuid.UUID | None = None) -> None:
        """Make a folder for each of these partitions of a topic, all or none. They are on the disk when this returns.

        If a folder has that name already, it is renamed to a stray one. `topic_id`: the id of the topic, to be recorded
        in the folders. Raises `OSError`.
        """
        partitions = list(partitions)
        if any(map(self.checkpoints.may_name, partitions)):
            self.checkpoints.erase(partitions)  # entries of partitions of that name that were deleted
        made = []
        try:
            for partition in partitions:
                path = self.path / partition.folder
                if path.exists():
                    self._check_name(path)
                    self.storage.rename(path, self.path / aside_folder_name(partition, Aside.STRAY))
                self.partitions[partition] = path  # set first, so that `put_away` finds what an exception leaves
                try:
                    self.storage.make_folder(path)
                except OSError:
                    del self.partitions[partition]
                    raise
                made.append(partition)
            if topic_id is not None:
                write_topic_ids(self.storage, {self.partitions[partition]: topic_id for partition in made})
            self.storage.sync_folder(self.path)
        except OSError:
            self.take_back(made)
            raise

    def _check_name(self, path: Path) -> None:
        """Raise `FileExistsError` if this is the folder of another partition for a file system that ignores case."""
        folded = path.name.casefold()
        for other in self.partitions.values():
            if other.name != path.name and other.name.casefold() == folded and other.samefile(path):
                raise FileExistsError(errno.EEXIST, f"for this file system it is {other.name}", str(path))

    def take_back(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop partitions that could not be made completely.

        If a folder cannot be removed, it stays, and is found when the directory is opened again.
        """
        for partition in partitions:
            path = self.partitions.pop(partition, None)
            self._opened.pop(partition, None)
            if path is not None:
                with contextlib.suppress(OSError):
                    self._remove_folder(path)

    def put_away(self, partitions: Iterable[TopicPartition], now_ms: int, why: Aside = Aside.DELETE) -> None:
        """Close partitions, and rename their folders for deletion once `file.delete.delay.ms` has passed.

        Strays are renamed, too, but stay. If one cannot be renamed, the others still are, and the first error is
        raised. If an exception interrupts this call, it may be repeated for the same partitions.
        """
        attempts = Attempts()
        gone = []
        for partition in partitions:
            with attempts:
                self._put_away(partition, now_ms, why)
                gone.append(partition)
        with attempts:
            self.storage.sync_folder(self.path)
            self.checkpoints.forget(gone)
        for partition in gone:
            self._opened.pop(partition, None)
            del self.partitions[partition]
        attempts.finish()

    def _put_away(self, partition: TopicPartition, now_ms: int, why: Aside) -> None:
        opened = self._opened.get(partition)
        delay_ms = 0
        if opened is not None:
            delay_ms = opened.log.config.file_delete_delay_ms
            with contextlib.suppress(OSError):  # the partition is put away in any case
                opened.state.close(is_deleted=why is Aside.DELETE)
        if self.partitions[partition].exists():  # if not, it was renamed, and the next opening finds it
            aside = self.path / aside_folder_name(partition, why)
            try:
                self.storage.rename(self.partitions[partition], aside)
            except OSError:
                self.has_failed = True  # what is left was not written to the disk, and has to be checked
                raise
            if why is Aside.DELETE:
                self._deleted[aside] = Deadline(now_ms, delay_ms)

    def remove_deleted(self, now_ms: int) -> int:
        """Remove the folders of deleted partitions whose delay has passed. Returns how many were removed."""
        attempts = Attempts()
        before = len(self._deleted)
        for path in [path for path, delay in self._deleted.items() if delay.is_over(now_ms)]:
            with attempts:
                self._remove_folder(path)
                del self._deleted[path]
        attempts.finish()
        return before - len(self._deleted)

    def _remove_folder(self, path: Path) -> None:
        """Remove a folder with its files. If it is a symbolic link, only the link is removed, as in Kafka."""
        if path.is_symlink():
            self.storage.remove(path)
            return
        try:
            files = sorted(path.iterdir())
        except FileNotFoundError:
            return  # somebody else has removed it
        for file in files:
            self.storage.remove(file)
        self.storage.remove_folder(path)

    def write_checkpoints(self) -> None:
        """Write the checkpoints of the open logs to the disk."""
        written: dict[TopicPartition, Stamp] = {}
        self.checkpoints.write(self._kept(written))
        self._written = written  # last: if the write has failed, all of it is written again

    def _kept(self, written: dict[TopicPartition, Stamp]) -> Iterator[tuple[TopicPartition, Kept]]:
        """Yield the offsets of logs for the checkpoints, if they may be others. They are read when their turn comes.

        A failed log is left out: it can be opened again with the offsets that are already in the checkpoints.
        written: gets the stamps of all logs that the checkpoints will be right for
        """
        before = self._written
        for partition, (log, state) in list(self._opened.items()):
            stamp = state.stamp  # before the offsets: what changes in between is written the next time
            if before.get(partition) == stamp:
                written[partition] = stamp
            elif log.failure is None:
                yield partition, state.kept()
                written[partition] = stamp

    def close(self) -> None:
        """Close the logs, write the mark of a clean shutdown, and release the lock. Raises the first `OSError`.

        After an unclean shutdown, the mark is written only if every partition was opened and thereby checked. It is not
        written if a log could not be closed properly, or the lock was lost. If an exception from outside interrupts
        this call, call it again. In a fork of the process that opened the folder nothing is written.
        """
        if not self._is_open:
            return
        if self.lock.is_elsewhere:
            for opened in list(self._opened.values()):
                opened.state.close()
            self.lock.release()
            self._is_open = False
            return
        attempts = Attempts()
        self._close_logs(attempts)
        for opened in list(self._opened.values()):
            attempts.insist(opened.state.close)  # those that an exception from outside has left open
        with attempts:
            self.lock.check_lock()
            self._written = {}
            self.write_checkpoints()
        is_well = attempts.error is None and all(opened.log.failure is None for opened in self._opened.values())
        is_well = is_well and not self._is_loading  # such a log is not in `_opened`, and is not closed
        is_well = is_well and not self.has_failed
        if is_well and (self.was_clean or self._opened.keys() == self.partitions.keys()):
            with attempts:
                write_mark(self.storage, self.path, self.broker_epoch)
        attempts.insist(self.lock.release)
        self._is_open = False
        attempts.finish()

    def _close_logs(self, attempts: Attempts) -> None:
        """Close the logs, many at once: each of them waits for the disk.

        That takes more open files than one after the other, which a process may lack. So few logs are left to `close`.
        """
        if len(self._opened) < _MANY:
            return
        errors: list[Exception] = []

        def close(opened: _Opened) -> None:
            try:
                opened.state.close()
            except (OctavoError, OSError) as error:
                errors.append(error)

        with attempts:
            self.storage.at_once(close, list(self._opened.values()))
        for error in errors:
            with attempts:
                raise error

    def leave(self) -> None:
        """Close the folder after the opening of its directory has failed, at whatever point."""
        if self._has_begun:
            self.close()
        else:
            self.lock.release()


def share_broker_epoch(folders: Sequence[DataFolder]) -> None:
    """Give new folders the broker epoch that the marks of the other folders agree on.

    Kafka treats marks that do not agree as an unclean shutdown, and elects new leaders for all partitions.
    """
    epochs = {folder.broker_epoch for folder in folders if folder.was_clean}
    for folder in folders:
        is_new = not folder.partitions and not (folder.path / META_PROPERTIES).exists()
        if is_new and not folder.was_clean and len(epochs) == 1:
            [folder.broker_epoch] = epochs


def abandon(folders: Sequence[DataFolder], error: BaseException) -> None:
    """Close the folders after opening has failed with `error`. Those that were clean get their mark again."""
    if isinstance(error, OSError) and error.errno in TOO_MANY_OPEN:
        traceback.clear_frames(error.__traceback__)  # frames of the failed opening still hold files
    for folder in folders:
        folder.forget_files()  # in all folders, before any log is closed: closing needs files
    for folder in folders:
        with contextlib.suppress(OctavoError, OSError):
            folder.leave()

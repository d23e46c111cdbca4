"""One folder of partitions: its lock, its mark of a clean shutdown, its checkpoints, and the logs in it."""

from __future__ import annotations

import contextlib
import errno
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from octavo.errors import BadDirectory, InvalidInput, OctavoError
from octavo.log.broker_defaults import TopicConfig
from octavo.log.checkpoints import Checkpoints, Kept
from octavo.log.loader import check_partition
from octavo.log.lock import DirectoryLock
from octavo.log.log import Clock, Log
from octavo.log.names import (
    META_PROPERTIES,
    METADATA_TOPIC,
    Aside,
    AsideFolder,
    TopicPartition,
    aside_folder_name,
    base_offset_of,
)
from octavo.log.owned_storage import OwnedStorage
from octavo.log.report import OnProgress
from octavo.log.shutdown import read_broker_epoch, remove_mark, was_clean, write_mark
from octavo.log.storage import Storage

Paths = Path | str | Sequence[Path | str]

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
_NO_PARTITIONS: Final = frozenset({"remote-log-index-cache"})  # folders that Kafka knows, and that are nothing here
_TOO_MANY_FILES: Final = (errno.EMFILE, errno.ENFILE)


def folder_paths(paths: Paths) -> list[Path]:
    """The folders of one data directory. Raises `InvalidInput` for none at all, and for what is no path.

    An empty text is refused: as a `Path` it would be the current folder, which nobody asked for.
    """
    several = [paths] if isinstance(paths, Path | str) else list(paths)
    if not several:
        raise InvalidInput("a data directory has at least one folder")
    for path in several:
        if not str(path) or "\0" in str(path):
            raise InvalidInput(f"{str(path)!r} is no path to a folder")
    return [Path(path) for path in several]


def check_data_folder(path: Path, *, read_only: bool = False) -> None:
    """Raises `BadDirectory` for what cannot be a data directory: a partition's folder, or one inside a directory.

    read_only: a directory inside another may be read: somebody may have put a copy there
    """
    path = path.absolute()
    if not read_only and (path.parent / META_PROPERTIES).exists():
        raise BadDirectory(path, f"it is inside the data directory {path.parent}: open that one")
    if not path.is_dir() or all(base_offset_of(each.name) is None for each in path.iterdir()):
        return
    if TopicPartition.parse(path.name) is not None:
        raise BadDirectory(path, f"this is the folder of a partition: open {path.parent}, or Log.open({str(path)!r})")
    if not find_partitions(path):
        raise BadDirectory(path, "segments lie in it, as in a partition; a data directory has folders such as events-0")


def find_partitions(folder: Path, *, strict: bool = False) -> dict[TopicPartition, Path]:
    """The folders of partitions, but of the one that holds Kafka's own metadata.

    `strict`: raises `BadDirectory` for a folder that is no partition's, which Kafka would not start on either.
    """
    partitions = {}
    for path in sorted(folder.iterdir()):
        if not path.is_dir() or path.name in _NO_PARTITIONS:
            continue
        partition = TopicPartition.parse(path.name)
        if partition is not None:
            partitions[partition] = path
        elif strict and AsideFolder.parse(path.name) is None:
            raise BadDirectory(path, "a data directory has no folder of such a name: move it somewhere else")
    partitions.pop(METADATA_PARTITION, None)
    return partitions


class Attempts:
    """Several steps, each in a `with`, that are all done whichever of them fail."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        """Nothing is needed for a step."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self.error is None:
            self.error = error
        elif error is not None:
            for note in (f"also: {type(error).__name__}: {error}", *getattr(error, "__notes__", ())):
                self.error.add_note(note)
        return True

    def insist(self, step: Callable[[], None]) -> None:
        """Do a step that may be called again: once more, where an exception from outside has interrupted it."""
        with self:
            step()
            return
        with self:
            step()

    def finish(self) -> None:
        """Raise the first error, if there was one, with the others as its notes."""
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # which has the frames of its callers: a circle, that would keep files open


def find_all_partitions(folders: Iterable[Path]) -> dict[TopicPartition, Path]:
    """The same of all folders of a directory, strictly. Raises `BadDirectory` for a partition that is in two."""
    found: dict[TopicPartition, Path] = {}
    for folder in folders:
        for partition, path in find_partitions(folder, strict=True).items():
            other = found.setdefault(partition, path)
            if other != path:
                raise BadDirectory(path, f"the same partition is in {other.parent}: only one of them can be right")
    return found


class DataFolder:
    """A folder that is open to be written."""

    def __init__(self, path: Path, storage: Storage) -> None:
        """Take its lock, and look at what there is; nothing else is changed yet. Raises `LogError`, `OSError`."""
        self.path: Final = path
        self.logs: Final[dict[TopicPartition, Log]] = {}
        self._has_begun = False
        self._is_open = True
        self._is_loading = False  # a log is being opened, or an exception has interrupted that
        self._deleted: list[tuple[int, Path]] = []  # put away, and when they may be removed
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise BadDirectory(path, "there is no permission to read and write in this folder")
        self.lock: Final = DirectoryLock.acquire(path, storage)
        self.storage: Final[Storage] = OwnedStorage(storage, self.lock)
        try:
            self.was_clean: Final = was_clean(path)
            self.broker_epoch = read_broker_epoch(storage, path)  # to go back into the mark, for Kafka
            self.checkpoints: Final = Checkpoints(self.storage, path, self.lock)
            self.partitions: Final = find_partitions(path, strict=True)
        except BaseException:
            self.lock.release()
            raise

    def begin(self) -> None:
        """From now on the folder counts as not closed."""
        self._has_begun = True
        asides = ((path, AsideFolder.parse(path.name)) for path in sorted(self.path.iterdir()))
        self._deleted = [(0, path) for path, aside in asides if aside is not None and aside.why is Aside.DELETE]
        if not remove_mark(self.storage, self.path):
            # What a process that died has renamed here is seen, and so it must last.
            self.storage.sync_folder(self.path)

    def check(self, partition: TopicPartition, *, may_have_gaps: bool) -> None:
        """Raises what is wrong with one of the partitions, before anything is changed."""
        check_partition(
            self.storage,
            self.partitions[partition],
            start_offset=self.checkpoints.start_offset(partition),
            may_have_gaps=may_have_gaps or self.checkpoints.cleaner_offset(partition) is not None,
            end_offset=(self.checkpoints.recovery_point(partition) or None) if self.was_clean else None,
        )

    def open_log(
        self,
        partition: TopicPartition,
        topic: TopicConfig,
        *,
        leader_epoch: int = 0,
        is_only_replica: bool = True,
        clock: Clock,
        on_progress: OnProgress | None,
    ) -> Log:
        """Open one of the partitions."""
        self._is_loading = True
        try:
            log = self.logs[partition] = Log(
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
                on_progress=on_progress,
            )
        except (OctavoError, OSError):
            self._is_loading = False  # opening it again does the same over
            raise
        self._is_loading = False
        return log

    def make_partition(self, partition: TopicPartition) -> Path:
        """An empty folder for a partition; one of that name, that nobody knows any more, is put aside."""
        path = self.path / partition.folder
        if self.checkpoints.may_know(partition):
            self.checkpoints.forget([partition])  # what is left of one that was deleted on a full disk
        if path.exists():
            self.storage.rename(path, self.path / aside_folder_name(partition, Aside.STRAY))
        self.partitions[partition] = path  # before it is made, so that `put_away` finds what an exception leaves
        try:
            self.storage.make_folder(path)
        except OSError:
            del self.partitions[partition]
            raise
        self.storage.sync_folder(self.path)
        return path

    def take_back(self, partition: TopicPartition) -> None:
        """Have a partition not be there that could not be made whole. Its folder may stay, and is made use of later."""
        path = self.partitions.pop(partition, None)
        self.logs.pop(partition, None)
        if path is not None:
            with contextlib.suppress(OSError):
                self._remove_folder(path)

    def put_away(self, partition: TopicPartition, now_ms: int) -> None:
        """Close a partition, and let its folder have the name of a deleted one, until its files' delay is over.

        It may be called again for a partition of which an exception has interrupted it.
        """
        log = self.logs.get(partition)
        delay_ms = 0
        if log is not None:
            delay_ms = log.config.file_delete_delay_ms
            with contextlib.suppress(OSError):  # it goes in any case
                log.close()
        if self.partitions[partition].exists():  # else it has been renamed, and goes when the directory is next opened
            deleted = self.path / aside_folder_name(partition, Aside.DELETE)
            self.storage.rename(self.partitions[partition], deleted)
            self._deleted.append((now_ms + delay_ms, deleted))
        self.logs.pop(partition, None)
        del self.partitions[partition]
        self.storage.sync_folder(self.path)
        self.checkpoints.forget([partition])

    def remove_deleted(self, now_ms: int) -> int:
        """Remove the folders of deleted partitions whose delay is over; how many."""
        attempts = Attempts()
        before = len(self._deleted)
        for deleted in [deleted for deleted in self._deleted if deleted[0] <= now_ms]:
            with attempts:
                self._remove_folder(deleted[1])
                self._deleted.remove(deleted)
        attempts.finish()
        return before - len(self._deleted)

    def _remove_folder(self, path: Path) -> None:
        """Remove a folder with its files. Of a link only the link goes, as in Kafka."""
        if path.is_symlink():
            self.storage.remove(path)
            return
        try:
            files = sorted(path.iterdir())
        except FileNotFoundError:
            return  # somebody else has done it
        for file in files:
            self.storage.remove(file)
        self.storage.remove_folder(path)

    def write_checkpoints(self) -> None:
        """Have what is to be remembered of the open logs on the disk."""
        self.checkpoints.write(self._kept())

    def _kept(self) -> Iterator[tuple[TopicPartition, Kept]]:
        """Of each log what it is when asked; but of one that failed, what the disk has is what it can begin with."""
        for partition, log in list(self.logs.items()):
            if log.failure is None:
                yield partition, log.kept()

    def close(self) -> None:
        """Close the logs, mark the folder as closed in good order, give the lock back. Raises the first `OSError`.

        After an unclean stop the mark is made only if every partition was opened, and by that checked; where a log
        could not be closed well it is not made at all, nor where the lock was lost. Where an exception interrupts even
        this, it can be called again. In a fork of the process that opened the folder nothing is written.
        """
        if not self._is_open:
            return
        if self.lock.is_elsewhere:
            for log in list(self.logs.values()):
                log.close_alone()
            self.lock.release()
            self._is_open = False
            return
        attempts = Attempts()
        for log in list(self.logs.values()):
            attempts.insist(log.close_alone)
        with attempts:
            self.lock.check_lock()
            self.write_checkpoints()
        is_well = attempts.error is None and all(log.failure is None for log in self.logs.values())
        is_well = is_well and not self._is_loading  # whose log is in nobody's hands
        if is_well and (self.was_clean or self.logs.keys() == self.partitions.keys()):
            with attempts:
                write_mark(self.storage, self.path, self.broker_epoch)
        attempts.insist(self.lock.release)
        self._is_open = False
        attempts.finish()

    def leave(self) -> None:
        """Close it after opening has failed, whatever has come of that."""
        if self._has_begun:
            self.close()
        else:
            self.lock.release()


def share_broker_epoch(folders: Sequence[DataFolder]) -> None:
    """Have the marks of new folders tell the same epoch of the broker as those beside them.

    Kafka takes marks that do not agree for an unclean shutdown, and elects new leaders for all partitions.
    """
    epochs = {folder.broker_epoch for folder in folders if folder.was_clean}
    for folder in folders:
        is_new = not folder.partitions and not (folder.path / META_PROPERTIES).exists()
        if is_new and not folder.was_clean and len(epochs) == 1:
            [folder.broker_epoch] = epochs


def abandon(folders: Sequence[DataFolder], error: BaseException) -> None:
    """Give the folders back after opening has failed with `error`: those that were clean are marked so again."""
    if isinstance(error, OSError) and error.errno in _TOO_MANY_FILES:
        traceback.clear_frames(error.__traceback__)  # who was about to open a log still has its files
    for folder in folders:
        for log in list(folder.logs.values()):
            log.forget_files()  # of all, before any is closed: that needs files
    for folder in folders:
        with contextlib.suppress(OctavoError, OSError):
            folder.leave()

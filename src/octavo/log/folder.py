"""One folder of partitions: its lock, its mark of a clean shutdown, its checkpoints, and the logs in it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from octavo.errors import BadDirectory, OctavoError
from octavo.log.checkpoints import Checkpoints
from octavo.log.config import LogConfig
from octavo.log.loader import check_partition
from octavo.log.lock import DirectoryLock
from octavo.log.log import Clock, Log
from octavo.log.names import METADATA_TOPIC, Aside, AsideFolder, TopicPartition, aside_folder_name
from octavo.log.report import OnProgress
from octavo.log.shutdown import read_broker_epoch, remove_mark, was_clean, write_mark
from octavo.log.storage import Storage

_NO_PARTITIONS: Final = frozenset({"remote-log-index-cache"})  # folders that Kafka knows, and that are nothing here


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
    partitions.pop(TopicPartition(METADATA_TOPIC, 0), None)
    return partitions


class DataFolder:
    """A folder that is open to be written."""

    def __init__(self, path: Path, storage: Storage) -> None:
        """Take its lock, and look at what there is; nothing else is changed yet. Raises `LogError`, `OSError`."""
        self.path: Final = path
        self.logs: Final[dict[TopicPartition, Log]] = {}
        self._storage = storage
        self._has_begun = False
        self._deleted: list[tuple[int, Path]] = []  # put away, and when they may be removed
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise BadDirectory(path, "there is no permission to read and write in this folder")
        self._lock = DirectoryLock.acquire(path, storage)
        try:
            self.was_clean: Final = was_clean(path)
            self._broker_epoch: Final = read_broker_epoch(storage, path)  # to go back into the mark, for Kafka
            self.checkpoints: Final = Checkpoints(storage, path)
            self.partitions: Final = find_partitions(path, strict=True)
        except BaseException:
            self._lock.release()
            raise

    def begin(self) -> None:
        """From now on the folder counts as not closed."""
        self._has_begun = True
        asides = ((path, AsideFolder.parse(path.name)) for path in sorted(self.path.iterdir()))
        self._deleted = [(0, path) for path, aside in asides if aside is not None and aside.why is Aside.DELETE]
        if not remove_mark(self._storage, self.path):
            # What a process that died has renamed here is seen, and so it must last.
            self._storage.sync_folder(self.path)

    def check(self, partition: TopicPartition, config: LogConfig | None, *, may_have_gaps: bool) -> None:
        """Raises what is wrong with one of the partitions, before anything is changed."""
        check_partition(
            self._storage,
            self.partitions[partition],
            start_offset=self.checkpoints.start_offset(partition),
            may_have_gaps=may_have_gaps or config is None or config.is_compacted,
        )

    def open_log(
        self,
        partition: TopicPartition,
        config: LogConfig | None,
        *,
        leader_epoch: int = 0,
        clock: Clock,
        on_progress: OnProgress | None,
    ) -> Log:
        """Open one of the partitions. No `config`: it is not known."""
        log = self.logs[partition] = Log(
            self.partitions[partition],
            partition,
            LogConfig() if config is None else config,
            self.checkpoints,
            clean=self.was_clean,
            leader_epoch=leader_epoch,
            storage=self._storage,
            clock=clock,
            config_is_known=config is not None,
            on_progress=on_progress,
        )
        return log

    def make_partition(self, partition: TopicPartition) -> Path:
        """An empty folder for a partition; one of that name, that nobody knows any more, is put aside."""
        path = self.path / partition.folder
        if path.exists():
            self._storage.rename(path, self.path / aside_folder_name(partition, Aside.STRAY))
        self._storage.make_folder(path)
        self._storage.sync_folder(self.path)
        self.partitions[partition] = path
        return path

    def put_away(self, partition: TopicPartition, now_ms: int) -> None:
        """Close a partition, and let its folder have the name of a deleted one, until its files' delay is over."""
        log = self.logs.pop(partition, None)
        delay_ms = 0
        if log is not None:
            delay_ms = log.config.file_delete_delay_ms
            with contextlib.suppress(OSError):  # it goes in any case
                log.close()
        deleted = self.path / aside_folder_name(partition, Aside.DELETE)
        self._storage.rename(self.partitions.pop(partition), deleted)
        self._storage.sync_folder(self.path)
        self.checkpoints.forget([partition])
        self._deleted.append((now_ms + delay_ms, deleted))

    def remove_deleted(self, now_ms: int) -> int:
        """Remove the folders of deleted partitions whose delay is over; how many."""
        due = [path for due_ms, path in self._deleted if due_ms <= now_ms]
        self._deleted = [(due_ms, path) for due_ms, path in self._deleted if due_ms > now_ms]
        for path in due:
            for file in sorted(path.iterdir()):
                self._storage.remove(file)
            self._storage.remove_folder(path)
        return len(due)

    def write_checkpoints(self) -> None:
        """Have what is to be remembered of the open logs on the disk."""
        self.checkpoints.write([(partition, log.kept()) for partition, log in self.logs.items()])

    def close(self) -> None:
        """Close the logs, mark the folder as closed in good order, give the lock back.

        After an unclean stop the mark is made only if every partition was opened, and by that checked.
        """
        try:
            for log in self.logs.values():
                log.close()
            self.write_checkpoints()
            if self.was_clean or self.logs.keys() == self.partitions.keys():
                write_mark(self._storage, self.path, self._broker_epoch)
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Give the lock back after opening has failed."""
        try:
            if self._has_begun:
                with contextlib.suppress(OctavoError, OSError):
                    self.close()
        finally:
            self._lock.release()

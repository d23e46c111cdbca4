"""A `Storage` that keeps a journal of all that it is asked to do, and can stop in the middle of it.

    storage = CrashStorage(folder)                    # what is in the folder now counts as synced
    ...                                               # whatever uses a Storage; reads and maps are real
    for number, disk in storage.crash_points():       # the disk before operation 0, 1, 2, ... was over
        write_image(disk.image(survival, random), elsewhere)

Everything is really done in `folder`, which is the machine's page cache, so to speak: a process that is killed leaves
exactly that behind. What a power cut leaves is made up from the journal, by the rules of `Disk`; so one run of a
program gives the images of a cut at each of its operations. Where the program itself has to meet the cut, `stop_at`
raises `PowerCut` at one operation, before it, in the middle of it or right after it, and at whatever is tried later.
After `restart` another program goes on with what the first left in the page cache, as when only a process died.

Nothing is really synced: that would only take time. What is to be done in the background waits until `run_tasks`. So
the same seed gives the same journal, and a crash may come long before the background would have begun.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from threading import RLock
from typing import Final

from octavo.log.at_once import Item
from octavo.log.flusher import Task
from octavo.log.ownership.lock import _held
from octavo.log.storage import File, Storage
from octavo.records.layout import Buffer
from tests.crash.disk import (
    ROOT,
    Disk,
    NameChange,
    Operation,
    Slot,
    Sync,
    SyncFolder,
    Truncate,
    Write,
    read_image,
)


class PowerCut(BaseException):
    """The power is off. No `except Exception` goes on after it."""


class Moment(Enum):
    """When the power goes off, seen from an operation. Halfway, a write is torn; other operations are whole or not."""

    BEFORE = "before"
    HALFWAY = "halfway"
    AFTER = "after"


class FastFile(File):
    """A file that is not really synced."""

    __slots__ = ()

    def sync(self) -> None:
        """Nothing."""


class FastStorage(Storage):
    """A disk for tests that ask for no more than a page cache."""

    def open(self, path: Path) -> File:
        return FastFile(path, os.O_RDONLY)

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        return FastFile(path, os.O_RDWR | (os.O_CREAT if create else 0))

    def sync_folder(self, path: Path) -> None:
        """Nothing."""


class CrashFile(File):
    """A file of a `CrashStorage`."""

    __slots__ = ("_inode", "_storage")

    def __init__(self, path: Path, flags: int, storage: CrashStorage, inode: int) -> None:
        super().__init__(path, flags)
        self._storage: Final = storage
        self._inode: Final = inode

    def write_at(self, buffers: Sequence[Buffer], position: int) -> None:
        data = b"".join(buffers)
        with self._storage.doing(Write(self._inode, position, data)) as halfway:
            super().write_at([data[: len(data) // 2] if halfway else data], position)

    def truncate(self, size: int) -> None:
        with self._storage.doing(Truncate(self._inode, size)):
            super().truncate(size)

    def sync(self) -> None:
        with self._storage.doing(Sync(self._inode)):
            pass


class CrashStorage(Storage):
    """The disk under a test of crashes. May be used by several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.journal: Final[list[Operation]] = []
        self._stop_at: tuple[int, Moment] | None = None
        self._stopped = False
        self._lock: Final = RLock()
        self._tasks: dict[Task, None] = {}
        self._inodes: dict[Slot, int] = {}
        self._next_inode = ROOT
        self._before: list[tuple[Slot, int, bytes | None]] = []
        for path, content in read_image(folder).items():
            slot = self._slot(folder / path)
            self._inodes[slot] = self._new_inode()
            self._before.append((slot, self._inodes[slot], content))

    def stop_at(self, number: int, moment: Moment) -> None:
        """Raise `PowerCut` at the operation of this number."""
        self._stop_at = (number, moment)

    def restart(self) -> None:
        """Go on after a stop, for another program. Of a dead process no lock is left."""
        self._stop_at = None
        self._stopped = False
        self._tasks.clear()
        for lock in list(_held.values()):
            if lock.folder.is_relative_to(self.folder):
                lock.release()

    def crash_points(self) -> Iterator[tuple[int, Disk]]:
        """For each operation its number and the disk as it is before that one is over; at the end, after the last.

        The disk is the same object every time. An operation that is not over may have been done or not, in part or
        wholly: it counts among what was not synced. Only of a sync nothing can be said until it is over.
        """
        disk = Disk()
        for slot, inode, content in self._before:
            disk.put(slot, inode, content)
        with self._lock:
            journal = list(self.journal)
        for number, operation in enumerate(journal):
            if isinstance(operation, Sync | SyncFolder):
                yield number, disk
                disk.apply(operation)
            else:
                disk.apply(operation)
                yield number, disk
        yield len(journal), disk

    def run_soon(self, task: Task) -> None:
        self._tasks[task] = None

    def run_tasks(self) -> None:
        """What waits for the background."""
        while self._tasks:
            self._tasks.popitem()[0]()

    def disk(self) -> Disk:
        """The disk as it is now."""
        for _, disk in self.crash_points():
            last = disk
        return last

    @contextmanager
    def doing(self, operation: Operation) -> Iterator[bool]:
        """Around every operation. Gives whether it has to stop halfway."""
        with self._lock:
            number = len(self.journal)
            stop = self._stop_at is not None and self._stop_at[0] == number
            moment = self._stop_at[1] if stop and self._stop_at else None
            if self._stopped or moment is Moment.BEFORE:
                self._stopped = True
                raise PowerCut
            halfway = moment is Moment.HALFWAY
            if halfway and isinstance(operation, Write):
                operation = operation._replace(data=operation.data[: len(operation.data) // 2])
            yield halfway
            if not (halfway and isinstance(operation, Sync | SyncFolder)):
                self.journal.append(operation)
            if moment is not None:
                self._stopped = True
                raise PowerCut

    def open(self, path: Path) -> File:
        with self._lock:
            return CrashFile(path, os.O_RDONLY, self, self._inode(path))

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        with self._lock:
            slot = self._slot(path)
            inode = self._inodes.get(slot)
            if inode is None and create:
                inode = self._new_inode()
                with self._naming("create", inode, (slot, inode)):
                    return CrashFile(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, self, inode)
            return CrashFile(path, os.O_RDWR, self, self._inode(path))

    def rename(self, source: Path, target: Path) -> None:
        with self._lock:
            old, new = self._slot(source), self._slot(target)
            inode = self._inode(source)
            with self._naming("rename", inode, (old, None), (new, inode)):
                super().rename(source, target)

    def remove(self, path: Path) -> None:
        with self._lock, self._naming("remove", self._inode(path), (self._slot(path), None)):
            super().remove(path)

    def make_folder(self, path: Path) -> None:
        with self._lock:
            slot = self._slot(path)
            inode = self._new_inode()
            with self._naming("make_folder", inode, (slot, inode)):
                super().make_folder(path)

    def remove_folder(self, path: Path) -> None:
        with self._lock, self._naming("remove_folder", self._inode(path), (self._slot(path), None)):
            super().remove_folder(path)

    def sync_folder(self, path: Path) -> None:
        with self.doing(SyncFolder(self._inode(path))):
            pass

    def at_once(self, work: Callable[[Item], None], items: Sequence[Item]) -> None:
        """One after the other, so that the journal is the same in every run."""
        for item in items:
            work(item)

    @contextmanager
    def _naming(self, what: str, inode: int, *slots: tuple[Slot, int | None]) -> Iterator[None]:
        with self.doing(NameChange(what, inode, slots)):
            yield
            for slot, bound in slots:
                if bound is None:
                    self._inodes.pop(slot, None)
                else:
                    self._inodes[slot] = bound

    def _new_inode(self) -> int:
        self._next_inode += 1
        return self._next_inode

    def _slot(self, path: Path) -> Slot:
        return self._inode(path.parent), path.name

    def _inode(self, path: Path) -> int:
        """Raises `FileNotFoundError` also for a file that exists, if it was made behind the back of the storage."""
        inode = ROOT
        for name in path.relative_to(self.folder).parts:
            found = self._inodes.get((inode, name))
            if found is None:
                raise FileNotFoundError(2, "not known to the storage", str(path))
            inode = found
        return inode

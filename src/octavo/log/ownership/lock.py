"""Kafka's lock on a data directory: the process that holds `.lock` may write. Kafka and Octavo keep each other out.

Java's `FileChannel` takes a POSIX record lock over the whole file. Such a lock belongs to a process, and is gone as
soon as the process closes *any* descriptor of the file: copying the directory would be enough. So Octavo takes an
open-file-description lock, which conflicts with Java's but belongs to the one descriptor that took it. Only Linux has
these locks. On other systems Octavo takes the POSIX lock, and takes it again whenever it checks it: if it was lost, and
another process has got it meanwhile, that is noticed.

The system does not tell which process holds an open-file-description lock. So the owner writes its process id into the
file, which Kafka never reads, and empties the file at the end. The id counts only while the lock is held, because a
process that is killed leaves it there.

A fork shares the descriptor, and with it the lock. The child closes its copy, so that the lock ends with the parent.

No lock helps if the file is deleted or replaced while the lock is held, or the directory moved: the next process locks
another file. `check_lock` notices that. Every change calls it if half a second has passed since the last time. When the
lock is released, the file stays where it is, as in Kafka.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from octavo.errors import BadDirectory, DirectoryLocked, LockLost
from octavo.log.names import LOCK
from octavo.log.ownership import record_lock
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.ownership.owner import Owner
from octavo.log.storage import DISK, File, Storage

_ATTEMPTS: Final = 10  # the owner may release the lock after the refusal and before we ask who it is
_MAX_NOTE: Final = 1024
_SURE_S: Final = 0.5  # for so long the lock counts as in place, once that was seen
_NOTE: Final = re.compile(rb"([0-9]+ [^ \n]+ [0-9]+\n)?")  # a file that holds anything else is not written to


class _FileId(NamedTuple):
    """The identity of a file or folder, whatever path leads to it."""

    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> _FileId:
        return cls(status.st_dev, status.st_ino)


# The locks that this process holds, by their folders. If opening is interrupted and nobody refers to a lock any more,
# it is closed and drops out.
_held: Final[weakref.WeakValueDictionary[_FileId, DirectoryLock]] = weakref.WeakValueDictionary()
_registry: Final = make_rlock()


class DirectoryLock(Owner):
    """The lock on a data directory. This process may write there until `release`. A context manager."""

    def __init__(self, folder: Path, file: File, *, is_of_file: bool) -> None:
        """Do not call this; use `acquire`."""
        super().__init__(folder)
        self._file: File | None = file
        self._is_of_file: Final = is_of_file  # it ends with this file, and not with any descriptor of the same file
        self._id: Final = _FileId.of(os.fstat(file.descriptor))
        self._note = b""  # what this process has written to the file
        self.sure_until_s = time.monotonic() + _SURE_S

    @classmethod
    def acquire(cls, folder: Path, storage: Storage = DISK) -> Self:
        """Take the lock of `folder`, without waiting.

        Raises `DirectoryLocked` with the id of the process that holds it, which may be this one. Raises `OSError` if
        the folder cannot be written to.
        """
        with _registry:
            folder_id = _FileId.of(folder.stat())
            if folder_id in _held:
                raise DirectoryLocked(folder, os.getpid())
            file, is_of_file = _locked_file(folder, storage)
            lock = cls(folder, file, is_of_file=is_of_file)
            lock._write_note(f"{lock.pid} {_process_space()}\n")
            _held[folder_id] = lock
        return lock

    def check_lock(self) -> None:
        """Raise `LockLost` if the lock file was deleted, replaced or closed, or another process has got the lock.

        Every later check raises it too.
        """
        asked_s = time.monotonic()
        self.check()
        if not (self._has_descriptor() and _id_of(self.folder / LOCK) == self._id and self._is_still_locked()):
            self.refuse_writes(LockLost(self.folder))
            self.check()
        self.sure_until_s = asked_s + _SURE_S

    def release(self) -> None:
        """Release the lock. May be called more than once. In a fork, the lock stays with its owner."""
        if self.is_elsewhere:
            self._forget()
            return
        with _registry:
            if self._has_descriptor():
                assert self._file is not None
                if self._is_still_locked():
                    self._write_note("")
                record_lock.give_back(self._file)
                self._file.close()
            self._forget()

    def _forget(self) -> None:
        """Forget the lock in this process, whether or not another process holds it."""
        self._file = None
        for folder_id in [each for each, lock in list(_held.items()) if lock is self]:
            del _held[folder_id]

    def _has_descriptor(self) -> bool:
        """Return whether the descriptor is still that of the lock file. Some programs close all descriptors."""
        file = self._file
        if file is None:
            return False
        try:
            is_same = _FileId.of(os.fstat(file.descriptor)) == self._id
        except OSError:
            is_same = False
        if not is_same:
            file.descriptor = -1  # another file may have this number by now
        return is_same

    def _is_still_locked(self) -> bool:
        """Return whether this process has the lock, and take it again if it was lost and nobody else has had it."""
        if self._is_of_file or self._file is None:
            return True
        try:
            record_lock.take(self._file)
            return not self._note or self._file.read_at(_MAX_NOTE, 0) == self._note
        except OSError:  # among them what says that another process has it
            return False

    def _write_note(self, text: str) -> None:
        """Write a note on the owner into the lock file. The file keeps its times, for tools that compare directories.

        This bypasses the `Storage`: nothing depends on the note, and a full disk must not prevent opening the
        directory. A file with any other content is left alone: `.lock` may be a link to somebody's file.
        """
        assert self._file is not None
        descriptor = self._file.descriptor
        with contextlib.suppress(OSError):
            if not _NOTE.fullmatch(self._file.read_at(_MAX_NOTE + 1, 0)):
                return
            status = os.fstat(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text.encode(), 0)
            self._note = text.encode()
            os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_locked(folder: Path) -> bool:
    """Return whether a process has the lock of a directory; it may be this one.

    A lock on another machine is not always seen. For information only: that may change any time.
    """
    with _registry:
        if _id_of(folder) in _held:
            return True
        try:
            return record_lock.holder(DISK.open(folder / LOCK))[0]
        except (OSError, BadDirectory):
            return False


def lock_owner(folder: Path) -> int | None:
    """Return the id of the process that has the directory open for writing; it may be this one.

    Returns None if no process has it open, or the id is unknown. For information only: the owner may change any time.
    """
    path = folder / LOCK
    with _registry:
        if _id_of(folder) in _held:
            return os.getpid()
        return _owner(DISK.open(path)).pid if path.exists() else None


def broker_in(folder: Path) -> int | None:
    """Return the id of a process that holds the lock as Java does, so most likely a broker that runs; None if none is.

    For information only, to refuse early what would be refused in the end.
    """
    with _registry, contextlib.suppress(OSError):
        if _id_of(folder) not in _held:  # otherwise closing the file might end a lock of this process
            has_holder, pid = record_lock.holder(DISK.open(folder / LOCK))
            return pid if has_holder and pid > 0 else None
    return None


def _id_of(path: Path) -> _FileId | None:
    try:
        return _FileId.of(path.stat())
    except OSError:
        return None


def _locked_file(folder: Path, storage: Storage) -> tuple[File, bool]:
    """Return the open file with the lock, and whether that belongs to it and not to the process."""
    owner = _HeldBy(True, None)
    for _ in range(_ATTEMPTS):
        file = storage.open_to_write(folder / LOCK, create=True)
        try:
            is_of_file = record_lock.take(file)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            owner = _owner(file)
            if owner.locked:
                break
        else:
            if _id_of(folder / LOCK) == _FileId.of(os.fstat(file.descriptor)):
                return file, is_of_file  # otherwise somebody has deleted the file meanwhile
    raise DirectoryLocked(folder, owner.pid)


class _HeldBy(NamedTuple):
    locked: bool
    pid: int | None


def _owner(file: File) -> _HeldBy:
    """Return the owner of a lock that would conflict with one on the whole file."""
    has_holder, pid = record_lock.holder(file)
    if not has_holder:
        return _HeldBy(False, None)
    return _HeldBy(True, pid if pid > 0 else _noted_process(file))


def _noted_process(file: File) -> int | None:
    """Return the process id in the lock file; None if it is from another machine or container."""
    pid, _, space = file.read_at(_MAX_NOTE, 0).decode("utf-8", "replace").strip().partition(" ")
    return int(pid) if pid.isdecimal() and space == _process_space() else None


def _process_space() -> str:
    """Return a name of the machine and the container: process ids are unique only within these."""
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = 0
    return f"{os.uname().nodename} {namespace}"


def _forget_all() -> None:
    """Close the inherited descriptors in a forked process, so that the locks end with the parent."""
    for lock in list(_held.values()):
        if lock._file is not None:
            with contextlib.suppress(OSError):
                lock._file.close()
        lock._forget()


os.register_at_fork(after_in_child=_forget_all)

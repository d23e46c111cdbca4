"""Kafka's lock on a data directory: who holds `.lock` may write, and Kafka and Octavo keep each other out.

It is a POSIX record lock over the whole file, the kind that Java's `FileChannel` takes. Such locks belong to a process
and not to an open file, with two consequences. They do not hold inside one process: a registry keeps its threads apart.
And they are gone as soon as the process closes *any* descriptor of the file: whoever reads `.lock` in a process that
holds it, to copy the directory for one, gives it away.

The file is left where it is when the lock is released, as Kafka leaves it.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from octavo.errors import DirectoryLocked
from octavo.log.names import LOCK
from octavo.log.storage import DISK, File, Storage

_ATTEMPTS: Final = 10  # the owner may let go between the refusal and the question who it is


class _FileId(NamedTuple):
    """A file, whatever path leads to it."""

    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> _FileId:
        return cls(status.st_dev, status.st_ino)


_held: Final[dict[_FileId, DirectoryLock]] = {}
_registry = threading.Lock()


class DirectoryLock:
    """A data directory that this process may write to, until `release`. A context manager."""

    def __init__(self, folder: Path, file: File) -> None:
        """Not for callers: see `acquire`."""
        self.folder: Final = folder
        self._file: File | None = file

    @classmethod
    def acquire(cls, folder: Path, storage: Storage = DISK) -> Self:
        """Take the lock of `folder`, without waiting.

        Raises `DirectoryLocked` with the process that has it, which may be this one, and `OSError` where the folder
        cannot be written to.
        """
        path = folder / LOCK
        with _registry:
            # Looked at before it is opened: closing it again would release the lock that this process holds.
            if _is_held(path):
                raise DirectoryLocked(folder, os.getpid())
            file = storage.open_to_write(path, create=True)
            _lock(folder, file)
            lock = cls(folder, file)
            _held[_FileId.of(os.fstat(file.descriptor))] = lock
        return lock

    def release(self) -> None:
        """Let others have the directory. May be called again."""
        with _registry:
            file, self._file = self._file, None
            if file is None:
                return
            fcntl.lockf(file.descriptor, fcntl.LOCK_UN)
            _held.pop(_FileId.of(os.fstat(file.descriptor)), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_owner(folder: Path) -> int | None:
    """The process that has the directory open to write, this one too; None where nobody has or it cannot be told.

    For people: by the time of the answer it may be another.
    """
    path = folder / LOCK
    with _registry:
        if _is_held(path):
            return os.getpid()
        return _owner(DISK.open(path)).pid if path.exists() else None


def _is_held(path: Path) -> bool:
    """Whether this process has the lock."""
    try:
        return _FileId.of(path.stat()) in _held
    except FileNotFoundError:
        return False


class _Owner(NamedTuple):
    locked: bool
    pid: int | None


def _lock(folder: Path, file: File) -> None:
    owner = _Owner(True, None)
    for _ in range(_ATTEMPTS):
        try:
            fcntl.lockf(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except (BlockingIOError, PermissionError):  # POSIX lets a system say either
            owner = _owner(file)
            if owner.locked:
                break
    raise DirectoryLocked(folder, owner.pid)


def _owner(file: File) -> _Owner:
    """Whose lock would be in the way of one on the whole file."""
    if sys.platform == "linux":
        layout = struct.Struct("@hhqqi4x")  # type, whence, start, size, pid
        question = layout.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = layout.unpack(fcntl.fcntl(file.descriptor, fcntl.F_GETLK, question))
    else:
        layout = struct.Struct("@qqihh")  # start, size, pid, type, whence: the BSDs and macOS
        question = layout.pack(0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
        _, _, pid, kind, _ = layout.unpack(fcntl.fcntl(file.descriptor, fcntl.F_GETLK, question))
    if kind == fcntl.F_UNLCK:
        return _Owner(False, None)
    return _Owner(True, pid if pid > 0 else None)  # a process in another container, or on another machine, has none


def _forget() -> None:
    """In a process made by a fork, which has the memory of its parent but not its locks."""
    global _registry
    _held.clear()
    _registry = threading.Lock()  # whoever held it is not here


os.register_at_fork(after_in_child=_forget)

"""Files that are opened when they are needed, and the limit on how many of them a process has open.

A log has three or four files for each of its segments, and a process may open thousands of logs. So each of these files
is a `LazyFile`: it is opened by its name when somebody reads or writes, and closed again when `OPEN_FILES` has too many
open. A `File` that somebody is still using stays open until they drop it, whatever is closed here.

Nothing is synced when a file is closed to make room. What was written to it is in the page cache, and a later sync
through another descriptor of the same file writes it to the disk. If the system fails to write it meanwhile, Linux
reports that to the first sync of a descriptor that was opened later, unless it has dropped the whole inode from memory
in between. Files that have nothing to be synced are therefore closed first.
"""

from __future__ import annotations

import errno
import os
import resource
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from octavo.log.at_once import TOO_MANY_OPEN
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.storage import File, Storage

Result = TypeVar("Result")

_MOST_OPEN: Final = 4096  # even if the system allows more
_FEWEST_OPEN: Final = 16


class LazyFile:
    """A file that is opened on demand. Any thread may read it; one at a time writes, renames and removes it.

    A reader that opens the file by its name while it is being renamed gets the right one: either it has opened the file
    before, or it notices that the name has changed and takes the file that was opened for the rename.
    """

    __slots__ = (
        "__weakref__",
        "_file",
        "_identity",
        "_is_missing",
        "_is_pinned",
        "_out",
        "_renames",
        "_storage",
        "is_dirty",
        "is_used",
        "path",
    )

    def __init__(self, storage: Storage, path: Path) -> None:
        self.path = path  # its present name
        self.is_used = False  # used since `OpenFiles` last looked
        self.is_dirty = False  # written since the last sync
        self._storage: Final = storage
        self._file: File | None = None  # open for reading
        self._out: File | None = None  # open for writing; then `_file` is the same
        self._renames = 0  # incremented when a rename begins and again when it ends
        self._identity: int | None = None  # of a renamed file, because another may take its new name
        self._is_missing = False  # there was nothing to rename
        self._is_pinned = False  # must not be closed, because it could not be opened again

    @property
    def is_open(self) -> bool:
        """Whether the file is open now."""
        return self._file is not None

    def to_read(self) -> File:
        """Return the file, open for reading. Raises `FileNotFoundError`."""
        file = self._file
        if file is None:
            file = self._open_to_read()
        self.is_used = True
        return file

    def to_read_if_there(self) -> File | None:
        """Return the file, open for reading, or None if there is none."""
        try:
            return self.to_read()
        except FileNotFoundError:
            return None

    def to_write(self, *, create: bool = False) -> File:
        """Return the file, open for writing. Raises `FileNotFoundError`, unless it may be created."""
        file = self._out
        if file is None:
            file = self._open_to_write(create)
        self.is_used = self.is_dirty = True
        return file

    def sync(self) -> None:
        """Write everything to the disk. Raises `FileNotFoundError`."""
        file = self._out
        if file is None:
            file = self.to_read()
        self.is_dirty = False
        file.sync()

    def forget(self) -> bool:
        """Close the file until it is needed again. Returns False if it is pinned, and so stays open."""
        if self._is_pinned:
            return False
        self._file = self._out = None
        return True

    def rename(self, target: Path) -> None:
        """Rename the file. Raises `OSError`, and then the file keeps its old name."""
        if self.path == target:
            return
        self._is_pinned = True  # a reader must find it open while the name is in doubt
        try:
            file = self.to_read_if_there()
            if file is not None:
                self._identity = self._storage.identity(file)
            self._renames += 1
            if file is None:
                self._is_missing = True  # a file that gets one of the two names later is another one
            else:
                self._storage.rename(self.path, target)
            self.path = target
        finally:
            self._renames += 1
            self._is_pinned = False

    def remove(self) -> None:
        """Remove the file's name. Readers that have this object can go on."""
        self._is_pinned = True
        file = self.to_read_if_there()
        if file is not None and self._storage.status(self.path).identity == self._storage.identity(file):
            self._storage.remove(self.path)

    def _open_to_read(self) -> File:
        while True:
            renames = self._renames
            try:
                file = self._open(lambda: self._storage.open(self.path))
            except FileNotFoundError:
                if self._file is None and renames == self._renames:
                    raise
            else:
                if renames == self._renames:
                    if self._file is None:  # otherwise a writer has opened it meanwhile
                        self._file = file
                    OPEN_FILES.add(self)
                    return file
            if self._file is not None:
                return self._file

    def _open_to_write(self, create: bool) -> File:
        file = self._open(lambda: self._storage.open_to_write(self.path, create=create))
        self._out = self._file = file
        OPEN_FILES.add(self)
        return file

    def _open(self, open_file: Callable[[], File]) -> File:
        if self._is_missing:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
        file = with_room(open_file)
        if self._identity is not None and self._storage.identity(file) != self._identity:
            raise FileNotFoundError(errno.ENOENT, "another file has its name", str(self.path))
        return file


class OpenFiles:
    """The open lazy files of this process, at most half as many as the process may open."""

    def __init__(self) -> None:
        self._lock: Final = make_rlock()  # re-entrant, for signal handlers
        self._files: list[weakref.ref[LazyFile]] = []  # in the order of opening; some may be closed by now

    def add(self, file: LazyFile) -> None:
        """Count a file that has just been opened, and close others if there are too many."""
        limit = most_open()
        with self._lock:
            self._files.append(weakref.ref(file))
            if len(self._files) > limit:
                self._close(limit - limit // 8)

    def close_all(self) -> None:
        """Close every file that can be opened again."""
        with self._lock:
            self._close(0)

    def _close(self, keep: int) -> None:
        """Close files until `keep` are open: first those with nothing to sync, and of these, unused ones first."""
        found = {id(file): file for file in (reference() for reference in self._files) if file is not None}
        files = [file for file in found.values() if file.is_open]
        too_many = len(files) - keep
        if too_many > 0:
            for file in sorted(files, key=_reasons_to_stay):
                too_many -= file.forget()
                if too_many <= 0:
                    break
        for file in files:
            file.is_used = False
        self._files = [weakref.ref(file) for file in files if file.is_open]


def with_room(action: Callable[[], Result]) -> Result:
    """Do something that opens files. If the process can open no more, close those that can be opened again, and retry.

    That happens if other code in this process has more files open than its share.
    """
    try:
        return action()
    except OSError as error:
        if error.errno not in TOO_MANY_OPEN:
            raise
        OPEN_FILES.close_all()
        return action()


def most_open() -> int:
    """Return how many lazy files may be open: half of what the process may open, because it needs other files, too."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return _MOST_OPEN
    return max(_FEWEST_OPEN, min(allowed // 2, _MOST_OPEN))


def _reasons_to_stay(file: LazyFile) -> tuple[bool, bool]:
    return file.is_dirty, file.is_used


OPEN_FILES: Final = OpenFiles()

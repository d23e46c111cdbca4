"""One folder, listed once: what checks look at instead of the disk.

A running broker may rename or delete any file at any time. So a file that was listed may be gone when it is opened;
`Gone` says so, and the folder is then looked at again.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from octavo.errors import BadDirectory
from octavo.errors.root import Signal
from octavo.log.names import LOG, base_offset_of
from octavo.log.storage import DISK, File


class Gone(Signal):
    """A file that was listed is not there any more, or another one is there under its name."""


class Identity(NamedTuple):
    """What changes if a file is written or replaced."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        """Return the identity of a file from its status."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True)
class Entry:
    """A file or folder in a folder."""

    name: str
    identity: Identity
    is_file: bool
    is_folder: bool  # neither for a device, a socket, a FIFO or a link that leads nowhere

    @property
    def size(self) -> int:
        """Bytes of the file when it was listed."""
        return self.identity.size


class Folder:
    """The entries of one folder, as they were when it was listed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: Mapping[str, Entry] = {entry.name: entry for entry in _entries(path)}
        self._changed: set[str] = set()  # between two listings

    def list_again(self) -> None:
        """List the folder anew. What is different from the listing before counts as changed for ever."""
        before, self.entries = self.entries, {entry.name: entry for entry in _entries(self.path)}
        self._changed |= {name for name in {*before, *self.entries} if before.get(name) != self.entries.get(name)}
        for listed in ("files", "segments"):
            self.__dict__.pop(listed, None)

    @cached_property
    def files(self) -> Mapping[str, Entry]:
        """The regular files, by name, in the order of their names."""
        return {name: entry for name, entry in sorted(self.entries.items()) if entry.is_file}

    @cached_property
    def segments(self) -> list[int]:
        """The base offsets of the segments, ascending: one for each `.log` file with an offset for a name."""
        offsets = (base_offset_of(name) for name in self.files if name.endswith(LOG))
        return sorted(offset for offset in offsets if offset is not None)

    @contextmanager
    def open(self, name: str) -> Iterator[int]:
        """Open a listed file for reading; the result is its descriptor. Raises `Gone` if it is not there any more."""
        try:
            descriptor = os.open(self.path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Gone(name) from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Gone(name)
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def open_file(self, name: str) -> Iterator[File]:
        """Open a listed file for reading. Raises `Gone` if it is not there any more, or is not a regular file."""
        try:
            file = DISK.open(self.path / name)
        except (FileNotFoundError, BadDirectory):
            raise Gone(name) from None
        try:
            yield file
        finally:
            file.close()

    def read(self, name: str, limit: int) -> bytes:
        """Return the first bytes of a file, at most `limit`. Raises `Gone` if it is not there any more."""
        with self.open(name) as descriptor:
            return read_at(descriptor, limit, 0)

    def is_unchanged(self, name: str) -> bool:
        """Whether a file is on the disk exactly as it was listed; also if it was not and is not there."""
        if name in self._changed:
            return False
        try:
            status = _status(self.path / name)
        except FileNotFoundError:
            return name not in self.entries
        return name in self.entries and self.entries[name].identity == Identity.of(status)


def read_at(descriptor: int, size: int, position: int) -> bytes:
    """Read `size` bytes from `position`; fewer only at the end of the file."""
    pieces = []
    while size > 0:
        piece = os.pread(descriptor, size, position)
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
        position += len(piece)
    return b"".join(pieces)


def _status(path: Path) -> os.stat_result:
    """Return the status of what is at a path; if it is a link that leads nowhere, that of the link."""
    try:
        return path.stat()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            raise
        return path.lstat()


def _entries(path: Path) -> Iterator[Entry]:
    try:
        listing = os.scandir(path)
    except NotADirectoryError:
        raise BadDirectory(path, "this is a file, and not a folder") from None
    with listing:
        for each in listing:
            try:
                status = _status(Path(each.path))
            except FileNotFoundError:  # deleted after it was listed
                continue
            yield Entry(each.name, Identity.of(status), stat.S_ISREG(status.st_mode), stat.S_ISDIR(status.st_mode))

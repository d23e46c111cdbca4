"""All file system operations of a log, in one place.

`Storage` is the disk. Tests use another storage, which loses, tears and reorders what was not synced. So nothing else
in `octavo.log` writes, renames, truncates or syncs. When a method returns, what it wrote is in the page cache. It is on
the disk when a sync returns: a file's bytes after a sync of the file, a name after a sync of its folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import BadDirectory
from octavo.log.at_once import Item, work_at_once
from octavo.log.disk_errors import is_broken as is_broken
from octavo.log.disk_errors import is_full as is_full
from octavo.log.flusher import FLUSHER, Task
from octavo.log.sync import sync_file, sync_names
from octavo.log.writeback import begin_writeback
from octavo.records.layout import Buffer

TMP: Final = ".tmp"
_NO_FILE: Final = "this should be a file, and is a pipe, a socket or a device"
_LISTINGS: Final = 20  # attempts to list a folder that changes meanwhile, until two listings agree
_MAX_BUFFERS: Final = 1024  # IOV_MAX: the limit of one system call


class FileStatus(NamedTuple):
    """The identity, size and modification time of a file. They show whether the file was replaced or changed."""

    identity: int
    size: int
    modified_ns: int


class File:
    """An open file. It is closed with the last reference to it, so that readers of a deleted file can finish."""

    __slots__ = ("__weakref__", "descriptor", "path")

    def __init__(self, path: Path, flags: int) -> None:
        """Open a regular file. Raises `OSError`, and `BadDirectory` for other kinds: a pipe might block for ever."""
        try:
            self.descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        except OSError as error:
            if error.errno != errno.ENXIO:  # the error for sockets
                raise
            raise BadDirectory(path, _NO_FILE) from None
        self.path = path  # the name under which it was opened
        mode = os.fstat(self.descriptor).st_mode
        if not stat.S_ISREG(mode):
            problem = "this should be a file, and is a folder" if stat.S_ISDIR(mode) else _NO_FILE
            raise BadDirectory(path, problem)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # opening may have failed, or the file is closed
            os.close(self.descriptor)

    def close(self) -> None:
        """Close the file now. Nobody else may be using it. May be called again."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def size(self) -> int:
        """Return the number of bytes in the file."""
        return os.fstat(self.descriptor).st_size

    def read_at(self, size: int, position: int) -> bytes:
        """Read `size` bytes from `position`; fewer only at the end of the file."""
        data = os.pread(self.descriptor, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size and (data := os.pread(self.descriptor, size - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`. Returns the number of bytes read."""
        got = 0
        while got < len(buffer) and (count := os.preadv(self.descriptor, [buffer[got:]], position + got)):
            got += count
        return got

    def next_data(self, position: int) -> int:
        """Return the end of the hole at `position`, which reads as zeros; `position` itself if there is no hole."""
        try:
            return os.lseek(self.descriptor, position, os.SEEK_DATA)
        except OSError as error:  # ENXIO: only a hole follows; otherwise the file system cannot tell
            return max(position, self.size()) if error.errno == errno.ENXIO else position

    def write_at(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of `buffers`, one after the other. Raises `OSError`, and then any part may have been written."""
        size = sum(map(len, buffers))
        if len(buffers) <= _MAX_BUFFERS:
            try:
                done = os.pwritev(self.descriptor, buffers, position)
            except OSError as error:
                error.filename = str(self.path)  # so that people see which disk is full
                raise
            if done == size:
                return
        else:
            done = 0
        self._write_rest(memoryview(b"".join(buffers)), position, done)

    def _write_rest(self, data: memoryview, position: int, done: int) -> None:
        try:
            while done < len(data):
                done += os.pwrite(self.descriptor, data[done:], position + done)
        except OSError as error:
            error.filename = str(self.path)
            raise

    def truncate(self, size: int) -> None:
        """Cut or extend the file to `size`."""
        os.ftruncate(self.descriptor, size)

    def begin_sync(self, position: int = 0, size: int = 0) -> None:
        """Have the disk begin to write `size` bytes from `position`, or all from there on, so that `sync` waits less.

        Does nothing where the operating system has no such call. Errors are left for `sync` to find.
        """
        begin_writeback(self.descriptor, position, size)

    def sync(self) -> None:
        """Write all bytes of the file to the disk."""
        sync_file(self.descriptor)


class Storage:
    """The disk, with the operations that a log needs."""

    def status(self, path: Path) -> FileStatus:
        """Return the status of a file. Raises `FileNotFoundError`."""
        status = path.stat()
        return FileStatus(status.st_ino, status.st_size, status.st_mtime_ns)

    def identity(self, file: File) -> int:
        """Return the identity of an open file, the same as in `status`."""
        return os.fstat(file.descriptor).st_ino

    def is_folder(self, path: Path) -> bool:
        """Return whether there is a folder of this name."""
        return path.is_dir()

    def files(self, folder: Path, suffix: str | tuple[str, ...]) -> dict[str, FileStatus]:
        """Return the files whose names end with `suffix`, sorted by name. Statuses are read once all names are known.

        Raises `FileNotFoundError` if there is no such folder, or one of the files has been removed meanwhile.
        """
        names = _names(folder, suffix)
        for _ in range(_LISTINGS):  # a listing may miss both names of a file that is renamed meanwhile
            before, names = names, _names(folder, suffix)
            if names == before:
                break
        return {name: self.status(folder / name) for name in names}

    def open(self, path: Path) -> File:
        """Open an existing file for reading."""
        return File(path, os.O_RDONLY)

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        """Open a file for reading and writing.

        `create`: make the file if it is missing. The new name is on the disk once the folder is synced.
        """
        return File(path, os.O_RDWR | (os.O_CREAT if create else 0))

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file or folder. A file that already has the new name is replaced."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file's name. Readers that have it open can go on."""
        path.unlink()

    def set_modified(self, path: Path, modified_ms: int) -> None:
        """Set the modification time of a file. A crash may undo this."""
        nanoseconds = modified_ms * 1_000_000
        os.utime(path, ns=(nanoseconds, nanoseconds))

    def make_folder(self, path: Path) -> None:
        """Make a folder in an existing one."""
        path.mkdir()

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        path.rmdir()

    def sync_folder(self, path: Path) -> None:
        """Write the names in a folder to the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync_names(descriptor)
        finally:
            os.close(descriptor)

    def run_soon(self, task: Task) -> None:
        """Run a task that writes to the disk in a background thread, once if it is given again before it begins."""
        FLUSHER.run_soon(task)

    def sync_folders(self, paths: Iterable[Path]) -> None:
        """Write the names in several folders to the disk, all at once."""
        self.at_once(self.sync_folder, list(paths))

    def replace_file(self, path: Path, data: bytes) -> None:
        """Replace the contents of a file, or make a new file, atomically. It is on the disk when this returns."""
        self.replace_files({path: data})

    def replace_files(self, contents: Mapping[Path, bytes]) -> None:
        """Replace several files, each atomically, as `replace_file` does. They share the time that syncs take.

        A crash or an error may leave any of them replaced and the others not.
        """
        temporaries = {path: path.with_name(path.name + TMP) for path in contents}
        self.at_once(lambda path: self._write_synced(temporaries[path], contents[path]), list(contents))
        for path, temporary in temporaries.items():
            self.rename(temporary, path)
        self.sync_folders(dict.fromkeys(path.parent for path in contents))

    def _write_synced(self, path: Path, data: bytes) -> None:
        if path.is_symlink():  # not made by us, and it may point to anybody's file
            self.remove(path)
        file = self.open_to_write(path, create=True)
        file.truncate(0)
        file.write_at([data], 0)
        file.sync()

    def at_once(self, work: Callable[[Item], None], items: Sequence[Item]) -> None:
        """Call `work`, which syncs something, with every item, from several threads. Raises the first error.

        A file system has to wait for the disk once for all syncs that are under way together, instead of once for each.
        """
        work_at_once(work, items)


def _names(folder: Path, suffix: str | tuple[str, ...]) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.name.endswith(suffix))


DISK: Final = Storage()

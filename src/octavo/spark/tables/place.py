"""Where the tasks of an export write files. Spark sends this to the workers."""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

import pyarrow as pa

from octavo.errors import BadTable
from octavo.log.storage import DISK, Storage
from octavo.spark.files import RemoteStorage, Root, shown
from octavo.spark.tables.written import parse_path

STAGED: Final = ".staged"
UNFINISHED: Final = ".part"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlace:
    """Where data files are written, and what is in them.

    root: the local path or the address of the table
    staging: a folder in `root` where files wait for the commit, under names that no reader takes for data; None if
        they get their final names at once, because nothing refers to them before the commit
    has_partition_columns: whether `topic` and `day` are also columns in the files
    compression: the codec of Parquet
    sync: whether files are on the disk before the commit, so that not even a power cut takes them
    """

    root: Root
    staging: str | None = None
    has_partition_columns: bool = False
    compression: str = "snappy"
    sync: bool = True
    storage: Storage | None = None  # None for the disk, or whatever `root` leads to

    def written_as(self, path: str) -> str:
        """Return where a data file is until the commit: at its path, or in the staging folder."""
        return path if self.staging is None else f"{self.staging}/{staged_name(path)}"

    def create(self, path: str) -> NewFile:
        """Create a data file of about this path; `finish` gives it its name. Raises `OSError`."""
        return RemoteNewFile(self, path) if not self.root.is_local else LocalNewFile(self, path)

    def open(self, path: str) -> Any:
        """Open a data file that was committed, for pyarrow to read. Raises `OSError`."""
        if self.root.is_local:
            return pa.OSFile(str(Path(self.root.address, path)))
        return cast(RemoteStorage, self.root.storage()).filesystem.open_input_file(str(self.root.path() / path))

    def remove(self, path: str) -> None:
        """Remove a file that will not be committed, as far as that is possible."""
        name = self.written_as(path)
        with contextlib.suppress(OSError):
            if self.root.is_local:
                (self.storage or DISK).remove(Path(self.root.address, name))
            else:
                filesystem = cast(RemoteStorage, self.root.storage()).filesystem
                filesystem.delete_file(str(self.root.path() / name))

    def __str__(self) -> str:
        return shown(self.root.address)


def staged_name(path: str) -> str:
    """Return the name under which a data file waits for the commit. Raises `BadTable` for other paths."""
    if parse_path(path) is None:
        raise BadTable(path, "no data file of a table has this name")
    folder, _, name = path.rpartition("/")
    digest = hashlib.sha256(folder.encode()).hexdigest()[:16]  # files of all topics wait in the same folder
    return f"_{digest}-{name}{STAGED}"


class _WrittenByArrow:
    """What pyarrow wants to know and do besides writing."""

    closed = False

    def close(self) -> None:
        """Do nothing: pyarrow calls this before the file is finished."""

    def flush(self) -> None:
        """Do nothing: there is no buffer here."""

    def writable(self) -> bool:
        """Whether the file can be written to."""
        return True

    def readable(self) -> bool:
        """Whether the file can be read."""
        return False

    def seekable(self) -> bool:
        """Whether positions can be chosen."""
        return False


class NewFile(_WrittenByArrow, ABC):
    """A data file that is written from front to back. pyarrow writes to it."""

    @abstractmethod
    def write(self, data: Any) -> int:
        """Append bytes to the file."""

    @abstractmethod
    def tell(self) -> int:
        """Return the number of bytes that were written."""

    @abstractmethod
    def finish(self, path: str) -> str:
        """Let the file be complete; it is on the disk then. Return its path: `path`, if it can still be chosen."""

    @abstractmethod
    def discard(self) -> None:
        """Remove the file, as far as that is possible. What is written afterwards goes nowhere."""


class LocalNewFile(NewFile):
    """A file on a local or shared disk. Until it is complete, no reader takes its name for that of data."""

    def __init__(self, place: FilePlace, path: str) -> None:
        self._place: Final = place
        self._storage: Final = place.storage or DISK
        self._root: Final = Path(place.root.address)
        if place.staging is None:
            _make_folders(self._storage, self._root, path)
            folder = self._root / PurePosixPath(path).parent
        else:
            folder = self._root / place.staging  # which the driver has made, unless the round is over
        self._unfinished: Final = folder / f"_{uuid.uuid4().hex}{UNFINISHED}"
        self._file: Final = self._storage.open_to_write(self._unfinished, create=True)
        self._position = 0
        self._is_discarded = False

    def write(self, data: Any) -> int:
        """Append bytes to the file."""
        view = memoryview(data).cast("B")
        if not self._is_discarded:
            self._file.write_at([view], self._position)
        self._position += len(view)
        return len(view)

    def tell(self) -> int:
        """Return the number of bytes that were written."""
        return self._position

    def finish(self, path: str) -> str:
        """Write the file to the disk, and give it its name."""
        if self._place.sync:
            self._file.sync()
        self._file.close()
        self._storage.rename(self._unfinished, self._root / self._place.written_as(path))
        return path

    def discard(self) -> None:
        """Remove the file."""
        self._is_discarded = True
        with contextlib.suppress(OSError):
            self._file.close()
            self._storage.remove(self._unfinished)


class RemoteNewFile(NewFile):
    """An object in a remote store. It appears as a whole when it is finished, under the name that it began with."""

    def __init__(self, place: FilePlace, path: str) -> None:
        assert place.staging is None
        filesystem = cast(RemoteStorage, place.root.storage()).filesystem
        self._path: Final = path
        self._stream: Final = filesystem.open_output_stream(str(place.root.path() / path))
        self._is_discarded = False

    def write(self, data: Any) -> int:
        """Append bytes to the object."""
        if not self._is_discarded:
            self._stream.write(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes that were written."""
        return int(self._stream.tell())

    def finish(self, path: str) -> str:
        """Complete the object."""
        self._stream.close()
        return self._path

    def discard(self) -> None:
        """Leave the object incomplete: nothing refers to it."""
        self._is_discarded = True


def _make_folders(storage: Storage, root: Path, path: str) -> None:
    folder = root
    for part in PurePosixPath(path).parts[:-1]:
        folder = folder / part
        if not storage.is_folder(folder):
            with contextlib.suppress(FileExistsError):  # another task was faster
                storage.make_folder(folder)

"""Where the tasks of an export write files. Spark sends this to the workers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

from octavo.errors import BadTable
from octavo.log.storage import DISK, File, Storage
from octavo.spark.files import RemoteStorage, Root, shown
from octavo.spark.tables.written import parse_path

STAGED: Final = ".staged"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlace:
    """Where data files are written, and what is in them.

    root: the local path or the address of the table
    staging: a folder in `root` where files wait for the commit, under names that no reader takes for data; None if
        they get their final names at once, because nothing refers to them before the commit
    has_partition_columns: whether `topic` and `day` are also columns in the files
    compression: the codec of Parquet
    """

    root: Root
    staging: str | None = None
    has_partition_columns: bool = False
    compression: str = "snappy"
    storage: Storage | None = None  # None for the disk, or whatever `root` leads to

    def written_as(self, path: str) -> str:
        """Return where a data file is written: its path, or another one in the staging folder."""
        return path if self.staging is None else f"{self.staging}/{staged_name(path)}"

    def create(self, path: str) -> Any:
        """Create a data file; return an object with `write` and `close`. It is on the disk after `close`."""
        name = self.written_as(path)
        if not self.root.is_local:
            filesystem = cast(RemoteStorage, self.root.storage()).filesystem
            return filesystem.open_output_stream(str(self.root.path() / name))
        storage = self.storage or DISK
        return NewFile(storage, _made_folder(storage, Path(self.root.address), name) / PurePosixPath(name).name)

    def remove(self, path: str) -> None:
        """Remove a file that was not finished, as far as that is possible."""
        with contextlib.suppress(OSError):
            if self.root.is_local:
                (self.storage or DISK).remove(Path(self.root.address, self.written_as(path)))
            else:
                filesystem = cast(RemoteStorage, self.root.storage()).filesystem
                filesystem.delete_file(str(self.root.path() / self.written_as(path)))

    def __str__(self) -> str:
        return shown(self.root.address)


def staged_name(path: str) -> str:
    """Return the name under which a data file waits for the commit. Raises `BadTable` for other paths."""
    if parse_path(path) is None:
        raise BadTable(path, "no data file of a table has this name")
    return "_" + path.rpartition("/")[2] + STAGED


def _made_folder(storage: Storage, root: Path, name: str) -> Path:
    folder = root
    for part in PurePosixPath(name).parts[:-1]:
        folder = folder / part
        if not storage.is_folder(folder):
            with contextlib.suppress(FileExistsError):  # another task was faster
                storage.make_folder(folder)
    return folder


class NewFile:
    """A new local file that is written from front to back. pyarrow writes to it."""

    def __init__(self, storage: Storage, path: Path) -> None:
        self._file: Final[File] = storage.open_to_write(path, create=True)
        self._position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Append bytes to the file."""
        view = memoryview(data).cast("B")
        self._file.write_at([view], self._position)
        self._position += len(view)
        return len(view)

    def tell(self) -> int:
        """Return the number of bytes that were written."""
        return self._position

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

    def close(self) -> None:
        """Write everything to the disk and close the file."""
        if not self.closed:
            self.closed = True
            try:
                self._file.sync()
            finally:
                self._file.close()

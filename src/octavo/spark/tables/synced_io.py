"""Have what `pyiceberg` writes on a local disk before the catalog refers to it.

SQLite syncs its file when it commits, but pyarrow, with which `pyiceberg` writes metadata and manifests, syncs nothing.
After a power cut the catalog could name a file that is empty. The property `py-io-impl` of a catalog names this class.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from octavo.log.storage import DISK


class SyncedFileIO(PyArrowFileIO):
    """Files on local disks, each synced when it is closed."""

    def new_output(self, location: str) -> PyArrowFile:
        """Return a file to be written."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        return SyncedFile(location, path, self.fs_by_scheme(scheme, netloc))


class SyncedFile(PyArrowFile):
    """A file that is synced when it is closed."""

    def create(self, overwrite: bool = False) -> OutputStream:
        """Create the file for writing."""
        return _SyncedStream(super().create(overwrite), Path(self._path))


class _SyncedStream(OutputStream):
    def __init__(self, stream: Any, path: Path) -> None:
        self._stream: Final = stream
        self._path: Final = path

    def write(self, b: bytes) -> int:
        """Append bytes."""
        return int(self._stream.write(b))

    def tell(self) -> int:
        """Return the number of bytes that were written."""
        return int(self._stream.tell())

    def close(self) -> None:
        """Close the file and have it on the disk, with its name."""
        if self._stream.closed:
            return
        self._stream.close()
        file = DISK.open(self._path)
        try:
            file.sync()
        finally:
            file.close()
        DISK.sync_folder(self._path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""A `Storage` that only the process that opened the directory may use for changes: `OwnedStorage`.

Every change of a log checks the `Owner` when it begins. But a fork may happen in the middle of a change, in a callback
that runs while a directory is opened or compacted. The child then leaves through code that undoes the change, and the
child must not undo it. So the owner is checked again for every file or folder that is made, changed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from octavo.log.flusher import Task
from octavo.log.ownership.owner import Owner
from octavo.log.storage import File, FileStatus, Storage


class OwnedStorage(Storage):
    """A storage in which only the owner of a directory may change anything. Other processes get `WrongProcess`."""

    def __init__(self, storage: Storage, owner: Owner) -> None:
        self._inner: Final = storage
        self._owner: Final = owner

    def status(self, path: Path) -> FileStatus:
        return self._inner.status(path)

    def identity(self, file: File) -> int:
        return self._inner.identity(file)

    def is_folder(self, path: Path) -> bool:
        return self._inner.is_folder(path)

    def files(self, folder: Path, suffix: str | tuple[str, ...]) -> dict[str, FileStatus]:
        return self._inner.files(folder, suffix)

    def open(self, path: Path) -> File:
        return self._inner.open(path)

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        self._owner.check()
        return self._inner.open_to_write(path, create=create)

    def rename(self, source: Path, target: Path) -> None:
        self._owner.check()
        self._inner.rename(source, target)

    def remove(self, path: Path) -> None:
        self._owner.check()
        self._inner.remove(path)

    def set_modified(self, path: Path, modified_ms: int) -> None:
        self._owner.check()
        self._inner.set_modified(path, modified_ms)

    def make_folder(self, path: Path) -> None:
        self._owner.check()
        self._inner.make_folder(path)

    def remove_folder(self, path: Path) -> None:
        self._owner.check()
        self._inner.remove_folder(path)

    def sync_folder(self, path: Path) -> None:
        self._owner.check()
        self._inner.sync_folder(path)

    def run_soon(self, task: Task) -> None:
        self._owner.check()
        self._inner.run_soon(task)

    def sync_folders(self, paths: Iterable[Path]) -> None:
        self._owner.check()
        self._inner.sync_folders(paths)

    def replace_files(self, contents: Mapping[Path, bytes]) -> None:
        self._owner.check()
        self._inner.replace_files(contents)

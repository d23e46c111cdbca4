"""Disks that refuse to do something, and that count what they are asked for."""

from __future__ import annotations

import errno
import os
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from octavo.log.storage import File, Storage
from octavo.records.layout import Buffer


class FailingFile(File):
    """A file on a `FailingDisk`."""

    __slots__ = ("_disk",)

    def __init__(self, path: Path, flags: int, disk: FailingDisk) -> None:
        super().__init__(path, flags)
        self._disk = disk

    def write_at(self, buffers: Sequence[Buffer], position: int) -> None:
        self._disk.ask("write", self.path)
        super().write_at(buffers, position)

    def sync(self) -> None:
        self._disk.ask("sync", self.path)
        super().sync()


class FailingDisk(Storage):
    """A disk that `fails` where that says so, of an operation and a path, and that has so many files open at most."""

    def __init__(self) -> None:
        self.fails: Callable[[str, Path], bool] | None = None
        self.most_open: int | None = None
        self.opened: Counter[str] = Counter()  # by name
        self._open: weakref.WeakSet[File] = weakref.WeakSet()

    def ask(self, what: str, path: Path) -> None:
        if self.fails is not None and self.fails(what, path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def _opens(self, file: Callable[[], File], path: Path) -> File:
        if self.most_open is not None and len(self._open) >= self.most_open:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        opened = file()
        self.opened[path.name] += 1
        self._open.add(opened)
        return opened

    def open(self, path: Path) -> File:
        return self._opens(lambda: FailingFile(path, os.O_RDONLY, self), path)

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        return self._opens(lambda: FailingFile(path, flags, self), path)

    def rename(self, source: Path, target: Path) -> None:
        self.ask("rename", source)
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self.ask("remove", path)
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        self.ask("sync folder", path)
        super().sync_folder(path)

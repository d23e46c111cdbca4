"""A disk on which appends fail, or are the last thing that a process does: `SimulatedDisk`."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Final

from octavo.log.at_once import Item
from octavo.log.flusher import Task
from octavo.log.names import METADATA_TOPIC
from octavo.log.ownership.lock import _held  # the locks of a process that was killed have to be dropped
from octavo.log.storage import File
from octavo.records.layout import Buffer
from tests.crash.storage import FastFile, FastStorage, PowerCut


class Fault(Enum):
    """What happens to an append."""

    NONE = auto()
    FAILS = auto()  # nothing is written
    FAILS_HALFWAY = auto()  # a part is written
    KILLED_BEFORE = auto()  # the process dies: nothing is written
    KILLED_HALFWAY = auto()
    KILLED_AFTER = auto()  # everything is written, and nobody is told


class SimulatedFile(FastFile):
    """A file to which something is written."""

    __slots__ = ("_disk",)

    def __init__(self, disk: SimulatedDisk, path: Path, flags: int) -> None:
        super().__init__(path, flags)
        self._disk: Final = disk

    def write_at(self, buffers: Sequence[Buffer], position: int) -> None:
        self._disk.check_alive()
        fault = self._disk.next_fault(self.path)
        if fault is Fault.NONE:
            super().write_at(buffers, position)
            return
        data = b"".join(buffers)
        written = {Fault.FAILS_HALFWAY: len(data) // 2, Fault.KILLED_HALFWAY: len(data) // 2}.get(fault, 0)
        if fault is Fault.KILLED_AFTER:
            written = len(data)
        super().write_at([data[:written]], position)
        if fault in (Fault.FAILS, Fault.FAILS_HALFWAY):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._disk.kill()

    def truncate(self, size: int) -> None:
        self._disk.check_alive()
        super().truncate(size)


class SimulatedDisk(FastStorage):
    """A disk. `choose` says what happens to each append to a log."""

    def __init__(self, folder: Path, choose: Callable[[], Fault]) -> None:
        self.folder: Final = folder
        self._choose: Final = choose
        self._is_killed = False

    def next_fault(self, path: Path) -> Fault:
        """Return what happens to a write."""
        is_append = path.suffix == ".log" and not path.parent.name.startswith(METADATA_TOPIC)
        return self._choose() if is_append else Fault.NONE

    def kill(self) -> None:
        """End the process that uses the disk. Raises `PowerCut` now, and at each change that it tries later."""
        self._is_killed = True
        raise PowerCut

    def check_alive(self) -> None:
        """Raise `PowerCut` if the process is dead."""
        if self._is_killed:
            raise PowerCut

    def restart(self) -> None:
        """Let another process use the disk. Of a dead process no lock is left."""
        self._is_killed = False
        for lock in list(_held.values()):
            if lock.folder.is_relative_to(self.folder):
                lock.release()

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        self.check_alive()
        return SimulatedFile(self, path, os.O_RDWR | (os.O_CREAT if create else 0))

    def run_soon(self, task: Task) -> None:
        """Nothing: a flush in the background changes nothing that anybody sees here."""

    def at_once(self, work: Callable[[Item], None], items: Sequence[Item]) -> None:
        for item in items:
            work(item)

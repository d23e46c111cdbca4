"""Write a staged file: `StagedWriter`. Each task, and each attempt at it, writes one of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import Closed, InvalidInput
from octavo.log.names import TopicPartition
from octavo.log.staging.area import StagingArea
from octavo.log.storage import DISK, File, Storage
from octavo.records.layout import Buffer


class StagedChunk(NamedTuple):
    """Batches of one partition that are next to one another in a staged file."""

    partition: TopicPartition
    position: int
    size: int


class StagedFile(NamedTuple):
    """A staged file and what it contains. A task sends it to whoever commits, who checks the batches."""

    name: str
    chunks: tuple[StagedChunk, ...]


class StagedWriter:
    """Writes the batches of one task to a file of their own, which is made with the first of them."""

    def __init__(self, area: StagingArea, *, storage: Storage = DISK, sync: bool = True) -> None:
        """Write to a new file in `area`. `sync`: have the file on the disk when `finish` returns."""
        self._area: Final = area
        self._storage: Final = storage
        self._sync: Final = sync
        self._path: Path | None = None
        self._file: File | None = None
        self._size = 0
        self._chunks: list[StagedChunk] = []
        self._is_open = True

    @property
    def name(self) -> str | None:
        """The name of the file; None if nothing was added."""
        return None if self._path is None else self._path.name

    def add(self, topic: str, partition: int, batches: Buffer | Sequence[Buffer]) -> int:
        """Add whole batches of magic 2 for a partition; returns their position in the file. Raises `OSError`.

        In the order of these calls they will be in the log. Base offsets and leader epochs are 0, and are assigned by
        the commit; only a commit with `keep_offsets` keeps the base offsets.
        """
        if not self._is_open:
            raise Closed("the staged file is finished")
        of = TopicPartition(topic, partition)
        if of.problem is not None:
            raise InvalidInput(of.problem)
        buffers = [batches] if isinstance(batches, bytes | bytearray | memoryview) else batches
        size = sum(memoryview(buffer).nbytes for buffer in buffers)
        position = self._size
        if not size:
            return position
        file = self._open()
        file.write_at(buffers, position)
        if self._sync:
            file.begin_sync(position, size)
        last = self._chunks[-1] if self._chunks else None
        if last is not None and last.partition == of:
            self._chunks[-1] = last._replace(size=last.size + size)
        else:
            self._chunks.append(StagedChunk(of, position, size))
        self._size += size
        return position

    def finish(self) -> StagedFile | None:
        """Finish the file, and return what is in it; None if nothing was added. Raises `OSError`."""
        if self._file is None or self._path is None:
            self._is_open = False
            return None
        if self._sync:
            self._file.sync()
        self._close()
        return StagedFile(self._path.name, tuple(self._chunks))

    def discard(self) -> None:
        """Remove the file. May be called at any time, also after `finish`."""
        self._close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._storage.remove(self._path)

    def _close(self) -> None:
        self._is_open = False
        if self._file is not None:
            self._file.close()

    def _open(self) -> File:
        if self._file is None:
            self._area.make(self._storage)
            self._path = self._area.new_path()
            self._file = self._storage.open_to_write(self._path, create=True)
        return self._file

"""The snapshots of a metadata log on the disk: `Snapshots`.

    00000000000000000042-0000000003.checkpoint             a snapshot of all records below offset 42, taken in epoch 3
    00000000000000000042-0000000003-7f3a.checkpoint.part   one that is being written; a start removes it

A snapshot gets its name when all of it is on the disk. The one named 0-0 has the voters of a new cluster, and no
metadata.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from octavo.errors import BadDirectory, CorruptFile, FormatError
from octavo.log.metadata.cluster_log import SnapshotId, snapshot_id_of, snapshot_records
from octavo.log.metadata.image import Image
from octavo.log.names import CHECKPOINT
from octavo.log.storage import File, Storage
from octavo.records.layout import Buffer
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import UnknownRecord

PART: Final = CHECKPOINT + ".part"
DELETED: Final = CHECKPOINT + ".deleted"


class SnapshotStatus(NamedTuple):
    """A snapshot on the disk."""

    id: SnapshotId
    size: int
    modified_ms: int


class Snapshots:
    """The snapshots in the folder of a metadata log."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        """Find the snapshots, and remove what a crash has left of others."""
        self._storage = storage
        self.folder: Final = folder
        self._part: tuple[SnapshotId, Path, File] | None = None  # the one that is being received
        for path in sorted(folder.iterdir()):
            if path.name.endswith((PART, DELETED)):
                storage.remove(path)

    @property
    def all(self) -> list[SnapshotId]:
        """The ids of all snapshots, from the oldest on."""
        return sorted(filter(None, (snapshot_id_of(path.name) for path in self.folder.iterdir())))

    @property
    def newest(self) -> SnapshotId | None:
        """The id of the newest snapshot; None if there is none, or only the one without metadata."""
        return next((each for each in reversed(self.all) if each.offset > 0), None)

    def path(self, snapshot: SnapshotId) -> Path:
        """Return the path of a snapshot."""
        return self.folder / snapshot.file_name

    def load(self, snapshot: SnapshotId) -> Image:
        """Read a snapshot. Raises `CorruptFile`."""
        return read_snapshot(self._storage, self.path(snapshot))

    def statuses(self) -> list[SnapshotStatus]:
        """Return all snapshots with their sizes and times, from the oldest on."""
        found = []
        for snapshot in self.all:
            status = self._storage.status(self.path(snapshot))
            found.append(SnapshotStatus(snapshot, status.size, status.modified_ns // 1_000_000))
        return found

    def remove(self, snapshot: SnapshotId) -> None:
        """Remove a snapshot. Raises `OSError`."""
        self._storage.remove(self.path(snapshot))

    # Receiving one in parts

    def write(self, snapshot: SnapshotId, position: int, data: Buffer) -> None:
        """Write a part of a snapshot that another node has. The first one begins at 0."""
        if position == 0:
            self.drop_part()
            path = self.new_part(snapshot)
            self._part = snapshot, path, self._storage.open_to_write(path, create=True)
        if self._part is None or self._part[0] != snapshot:
            raise BadDirectory(self.path(snapshot), "the part before this one is missing")
        self._part[2].write_at([data], position)

    def finish(self, snapshot: SnapshotId) -> Image:
        """Put a snapshot that was received whole in its place, and return its content. Raises `CorruptFile`."""
        if self._part is None or self._part[0] != snapshot:
            raise BadDirectory(self.path(snapshot), "no part of this snapshot is there")
        _, path, file = self._part
        try:
            image = read_snapshot(self._storage, path)
        except CorruptFile:
            self.drop_part()
            raise
        file.sync()
        self.put_in_place(path, snapshot)
        self._part = None
        return image

    def new_part(self, snapshot: SnapshotId) -> Path:
        """Return a new name for a snapshot that is being written."""
        return self.folder / f"{snapshot.file_name.removesuffix(CHECKPOINT)}-{uuid4().hex}{PART}"

    def put_in_place(self, part: Path, snapshot: SnapshotId) -> None:
        """Give a snapshot that is on the disk its name."""
        self._storage.rename(part, self.path(snapshot))
        self._storage.sync_folder(self.folder)

    def remove_part(self, part: Path) -> None:
        """Remove a snapshot that cannot be written, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self._storage.remove(part)

    def drop_part(self) -> None:
        """Forget the snapshot that is being received."""
        if self._part is not None:
            _, path, _ = self._part
            self._part = None
            self.remove_part(path)


def read_snapshot(storage: Storage, path: Path) -> Image:
    """Read the file of a snapshot. Raises `CorruptFile`."""
    image = Image()
    for content in snapshot_records(storage, path):
        try:
            if isinstance(content, MetadataRecord | UnknownRecord):
                image.replay(content)
            else:
                image.replay_control(content)
        except FormatError as error:
            raise CorruptFile(path, 0, error.rule) from None
    return image

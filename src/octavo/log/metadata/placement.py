"""Choose the folders in which partitions are created.

Kafka can keep its metadata log in a separate folder, `metadata.log.dir`, that is not one of its `log.dirs`. It does not
look for partitions there: it would create an empty one in another folder and serve that. So no partition is created in
a folder that holds metadata alone. Such a folder has the metadata log and no partition. Also, Kafka has formatted the
directory or run on it, and in the metadata it

    has registered its log directories without this folder (it registers them since metadata.version 3.7-IV2), or
    has registered none, and there are other folders

In a directory that Octavo created and Kafka has never seen, partitions go into all folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from octavo.errors import BadDirectory
from octavo.log.files.meta_properties import is_reserved_directory
from octavo.log.metadata.identities import Identities
from octavo.log.names import BOOTSTRAP_CHECKPOINT
from octavo.log.partition_folders import has_partitions
from octavo.schemas.metadata.nodes import RegisterBrokerRecord


class Placement:
    """Chooses folders for the partitions of one node."""

    def __init__(
        self, folders: Sequence[Path], metadata_folder: Path, whose: Identities, broker: RegisterBrokerRecord | None
    ) -> None:
        self._metadata_folder = metadata_folder
        self._whose = whose
        self._broker = broker
        self._holds_metadata_alone = self._look(folders)
        self.log_dirs = [
            folder for folder in folders if folder != metadata_folder or not self._holds_metadata_alone
        ]  # Kafka's term: the folders that partitions may go into

    def _look(self, folders: Sequence[Path]) -> bool:
        folder = self._metadata_folder
        named = () if self._broker is None else self._broker.log_dirs
        identity = self._whose.known.get(folder)
        if named:
            is_strange = identity is not None and identity.directory_id not in named
        else:
            is_kafkas = self._broker is not None or (folder / BOOTSTRAP_CHECKPOINT).exists()
            is_strange = is_kafkas and len(folders) > 1
        return is_strange and not has_partitions(folder)

    def folder_for(self, directory: UUID | None) -> Path | None:
        """Return the folder for a new partition assigned to `directory`; None if that folder is not open here."""
        if directory is None or is_reserved_directory(directory):
            return self._first
        return self._whose.folder_of(directory)

    def choose(self, count: int, taken: Mapping[Path, int]) -> list[UUID]:
        """Choose directories for new partitions: each time the one with the fewest partitions, as Kafka does.

        `taken` has the number of existing partitions of each folder. Raises `BadDirectory` if no folder may have
        partitions.
        """
        if len(self.log_dirs) < 2:
            return [self._whose.directory_of(self._first)] * count
        load = {folder: taken.get(folder, 0) for folder in self.log_dirs}
        chosen = []
        for _ in range(count):
            folder = min(load, key=load.__getitem__)
            load[folder] += 1
            chosen.append(self._whose.directory_of(folder))
        return chosen

    @property
    def _first(self) -> Path:
        if not self.log_dirs:
            raise BadDirectory(
                self._metadata_folder, "Kafka keeps its metadata alone in this folder: give those of log.dirs as well"
            )
        return self.log_dirs[0]

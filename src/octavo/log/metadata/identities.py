"""Identities of the folders of a data directory: their `meta.properties`, all of one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from octavo.errors import InvalidInput
from octavo.log.files.meta_properties import (
    MetaProperties,
    check_one_node,
    random_uuid,
    read_meta_properties,
    write_meta_properties,
)
from octavo.log.storage import Storage


class Identities:
    """The contents of `meta.properties` of each folder."""

    def __init__(self, storage: Storage, folders: Sequence[Path]) -> None:
        """Raises `BadDirectory` if the folders do not belong to one node, and `CorruptFile`."""
        self._storage = storage
        self._found = {folder: read_meta_properties(storage, folder) for folder in folders}
        check_one_node(self.known)

    @property
    def known(self) -> Mapping[Path, MetaProperties]:
        """The identities of the folders that have one."""
        return {folder: identity for folder, identity in self._found.items() if identity is not None}

    @property
    def any(self) -> MetaProperties | None:
        """The node and the cluster that own the folders, if any."""
        return next(iter(self.known.values()), None)

    def directory_of(self, folder: Path) -> UUID:
        """The directory id of a folder. Raises `InvalidInput` if it has none."""
        identity = self._found.get(folder)
        if identity is None or identity.directory_id is None:
            raise InvalidInput(f"{folder} is none of the directory's folders")
        return identity.directory_id

    def folder_of(self, directory_id: UUID) -> Path | None:
        """The folder with a directory id; None if there is none."""
        return next((path for path, identity in self.known.items() if identity.directory_id == directory_id), None)

    def complete(self, node: MetaProperties, voter: tuple[Path, UUID] | None) -> None:
        """Assign every folder to `node`. `voter`: the folder and directory id by which the quorum knows the node."""
        for folder, present in self._found.items():
            if present is not None and present.version == 1 and present.directory_id is not None:
                continue
            directory_id = None if present is None else present.directory_id
            if directory_id is None and voter is not None and folder == voter[0]:
                directory_id = voter[1]  # with another id it would not be a voter
            identity = replace(node, version=1, directory_id=directory_id or random_uuid())
            write_meta_properties(self._storage, folder, identity)
            self._found[folder] = identity

"""Whose the folders of a data directory are: their `meta.properties`, all of one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from octavo.errors import InvalidInput
from octavo.log.identity import (
    MetaProperties,
    check_one_node,
    random_uuid,
    read_meta_properties,
    write_meta_properties,
)
from octavo.log.storage import Storage


class Identities:
    """What `meta.properties` of each folder say."""

    def __init__(self, storage: Storage, folders: Sequence[Path]) -> None:
        """Raises `BadDirectory` where the folders are not of one node, and `CorruptFile`."""
        self._storage = storage
        self._found = {folder: read_meta_properties(storage, folder) for folder in folders}
        check_one_node(self.known)

    @property
    def known(self) -> Mapping[Path, MetaProperties]:
        """Of the folders that belong to somebody."""
        return {folder: identity for folder, identity in self._found.items() if identity is not None}

    @property
    def any(self) -> MetaProperties | None:
        """The node and the cluster, if the folders belong to any."""
        return next(iter(self.known.values()), None)

    def directory_of(self, folder: Path) -> UUID:
        """The id of a folder that has one; raises `InvalidInput`."""
        identity = self._found.get(folder)
        if identity is None or identity.directory_id is None:
            raise InvalidInput(f"{folder} is none of the directory's folders")
        return identity.directory_id

    def folder_of(self, directory_id: UUID) -> Path | None:
        """The folder that has an id."""
        return next((path for path, identity in self.known.items() if identity.directory_id == directory_id), None)

    def complete(self, node: MetaProperties, voter: tuple[Path, UUID] | None) -> None:
        """Has every folder be `node`'s. `voter`: the folder that the quorum knows the node by, and its id there."""
        for folder, present in self._found.items():
            if present is not None and present.version == 1 and present.directory_id is not None:
                continue
            directory_id = None if present is None else present.directory_id
            if directory_id is None and voter is not None and folder == voter[0]:
                directory_id = voter[1]  # with another id it would not be a voter
            identity = replace(node, version=1, directory_id=directory_id or random_uuid())
            write_meta_properties(self._storage, folder, identity)
            self._found[folder] = identity

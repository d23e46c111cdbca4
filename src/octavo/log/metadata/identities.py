"""The identities of the folders of a data directory: their `meta.properties`, which must name one node."""

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
    """The `meta.properties` of each folder of a data directory."""

    def __init__(self, storage: Storage, folders: Sequence[Path]) -> None:
        """Read the identities. Raises `CorruptFile`, and `BadDirectory` if the folders do not belong to one node."""
        self._storage = storage
        self._found = {folder: read_meta_properties(storage, folder) for folder in folders}
        check_one_node(self.known)

    @property
    def known(self) -> Mapping[Path, MetaProperties]:
        """The identities of the folders that have one."""
        return {folder: identity for folder, identity in self._found.items() if identity is not None}

    @property
    def any(self) -> MetaProperties | None:
        """The identity of the first folder that has one; None if none has. All have the same node and cluster."""
        return next(iter(self.known.values()), None)

    def directory_of(self, folder: Path) -> UUID:
        """Return the directory id of a folder. Raises `InvalidInput` if it has none."""
        identity = self._found.get(folder)
        if identity is None or identity.directory_id is None:
            raise InvalidInput(f"{folder} is none of the directory's folders")
        return identity.directory_id

    def folder_of(self, directory_id: UUID) -> Path | None:
        """Return the folder with this directory id; None if there is none."""
        return next((path for path, identity in self.known.items() if identity.directory_id == directory_id), None)

    def complete(self, node: MetaProperties, voter: tuple[Path, UUID] | None) -> None:
        """Write the identity of `node` into every folder without a complete one.

        `voter`: the folder and the directory id by which the quorum knows the node.
        """
        for folder, present in self._found.items():
            if present is not None and present.version == 1 and present.directory_id is not None:
                continue
            directory_id = None if present is None else present.directory_id
            if directory_id is None and voter is not None and folder == voter[0]:
                directory_id = voter[1]  # with another id the node would not be a voter
            identity = replace(node, version=1, directory_id=directory_id or random_uuid())
            write_meta_properties(self._storage, folder, identity)
            self._found[folder] = identity

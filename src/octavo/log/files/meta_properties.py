"""The identity of a data directory: `meta.properties`, and ids in Kafka's format.

Version 1 is KRaft's: `node.id`, `cluster.id`, and `directory.id` if there may be several directories. Version 0 is
ZooKeeper's: `broker.id`, and an optional `cluster.id`. Both are read and written. Other properties are not kept.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from octavo.errors import BadDirectory, Corrupt, CorruptFile, InvalidInput
from octavo.log.files.properties import read_properties, write_properties
from octavo.log.files.small_file import read_small_file
from octavo.log.names import META_PROPERTIES
from octavo.log.storage import Storage
from octavo.records.layout import MAX_INT32
from octavo.records.uuid_text import read_uuid as read_uuid
from octavo.records.uuid_text import write_uuid as write_uuid

ZERO_ID: Final = uuid.UUID(int=0)
METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
_RESERVED_DIRECTORY_IDS: Final = 100  # the first ids have meanings such as unassigned, lost, migrating
_RESERVED: Final = frozenset(uuid.UUID(int=number) for number in range(_RESERVED_DIRECTORY_IDS))

_MAX_SIZE: Final = 1 << 20
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


def random_uuid() -> uuid.UUID:
    """Return a new id that is not reserved and whose text does not start with a dash, as a command-line option does."""
    while True:
        value = uuid.uuid4()
        if value not in _RESERVED and not write_uuid(value).startswith("-"):
            return value


def is_reserved_directory(directory: uuid.UUID) -> bool:
    """Return whether an id is no directory's, but means that a replica is unassigned, lost or migrating."""
    return directory in _RESERVED


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """The content of `meta.properties`. Version 1 always has a node and a cluster."""

    version: int = 1
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: uuid.UUID | None = None

    def __post_init__(self) -> None:
        if self.version not in {0, 1}:
            raise InvalidInput(f"version {self.version} of meta.properties is unknown")
        if self.version == 1 and (self.cluster_id is None or self.node_id is None):
            raise InvalidInput("meta.properties of version 1 need both cluster.id and node.id")

    @classmethod
    def from_properties(cls, properties: dict[str, str]) -> MetaProperties:
        """Parse the properties. Raises `InvalidInput` if Kafka would refuse to start with them."""
        version = _integer("version", properties.get("version", "0").strip())
        node = properties.get(_node_key(version))
        directory = properties.get("directory.id")
        return cls(
            version=version,
            cluster_id=properties.get("cluster.id"),
            node_id=None if node is None else _integer(_node_key(version), node),
            directory_id=None if directory is None else read_uuid(directory),
        )

    def to_properties(self) -> dict[str, str]:
        """Return the properties that are set."""
        values = {
            "version": str(self.version),
            "cluster.id": self.cluster_id,
            _node_key(self.version): None if self.node_id is None else str(self.node_id),
            "directory.id": None if self.directory_id is None else write_uuid(self.directory_id),
        }
        return {name: value for name, value in values.items() if value is not None}


def read_meta_properties(storage: Storage, folder: Path) -> MetaProperties | None:
    """Read the identity of `folder`; None if it has no `meta.properties`. Raises `CorruptFile`."""
    path = folder / META_PROPERTIES
    try:
        data = read_small_file(storage, path, _MAX_SIZE)
    except FileNotFoundError:
        return None
    try:
        return MetaProperties.from_properties(read_properties(data))
    except Corrupt as error:
        raise CorruptFile(path, error.position, error.rule) from None
    except InvalidInput as error:
        raise CorruptFile(path, 0, str(error)) from None


def write_meta_properties(storage: Storage, folder: Path, properties: MetaProperties) -> None:
    """Replace `meta.properties`. It is on disk when this returns."""
    now = datetime.now(UTC).strftime("%a %b %d %H:%M:%S UTC %Y")  # as Java writes a Date
    storage.replace_file(folder / META_PROPERTIES, write_properties(properties.to_properties(), ["", now]))


def check_one_cluster(folders: Iterable[tuple[Path | str, MetaProperties]]) -> None:
    """Check that folders belong to one cluster. Raises `BadDirectory` with both folders and both ids.

    A folder that names no cluster matches any.
    """
    first: tuple[Path | str, str] | None = None
    for folder, identity in folders:
        if identity.cluster_id is None:
            continue
        if first is None:
            first = folder, identity.cluster_id
        elif identity.cluster_id != first[1]:
            raise BadDirectory(
                folder, f"it belongs to cluster {identity.cluster_id}, but {first[0]} to cluster {first[1]}"
            )


def check_one_node(identities: Mapping[Path, MetaProperties]) -> None:
    """Check that folders belong to one node, and that none is a copy of another. Raises `BadDirectory`."""
    check_one_cluster(identities.items())
    directories: dict[uuid.UUID, Path] = {}
    for folder, identity in identities.items():
        other, expected = next(iter(identities.items()))
        if identity.node_id != expected.node_id:
            raise BadDirectory(folder, f"it belongs to node {identity.node_id}, but {other} to node {expected.node_id}")
        if identity.cluster_id != expected.cluster_id:
            raise BadDirectory(folder, f"only one of this folder and {other} names its cluster")
        if identity.directory_id is not None:
            twin = directories.setdefault(identity.directory_id, folder)
            if twin != folder:
                raise BadDirectory(folder, f"it has the directory id of {twin}: one is a copy of the other")


def _node_key(version: int) -> str:
    return "broker.id" if version == 0 else "node.id"


def _integer(name: str, text: str) -> int:
    if _INTEGER.fullmatch(text) is None or not -MAX_INT32 - 1 <= (number := int(text)) <= MAX_INT32:
        raise InvalidInput(f"{name} is {text[:40]!r}, which is no number of 32 bits")
    return number

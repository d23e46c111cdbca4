"""Open the metadata that a node follows: `open_followed`. Damaged ones are set aside, because the controllers have all.

    __cluster_metadata-0.f7ab2d6cc8a14ebca5c1f0a2ee3d8a55-stray        the folder, as it was found

Kafka ignores a folder of such a name, and nobody removes it: it may tell what has happened. Only a node that has never
voted may begin anew, because nobody counts on what it has. Kafka's brokers stop, and do not start again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

from octavo.errors import BadDirectory, FormatError
from octavo.log.clock import Clock
from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.followed.own_snapshots import MetadataLimits
from octavo.log.metadata.cluster_log import FOLDER
from octavo.log.metadata.quorum_state import has_voted, read_quorum_state
from octavo.log.names import Aside, AsideFolder
from octavo.log.ownership.owner import Owner
from octavo.log.partition_folders import METADATA_PARTITION
from octavo.log.storage import Storage

_MOST: Final = 3  # that are set aside: damage that returns is that of a disk, and copies would fill it


def open_followed(
    folder: Path,
    owner: Owner,
    *,
    storage: Storage,
    clock: Clock,
    limits: MetadataLimits,
    on_damage: Callable[[str], object],
) -> FollowedMetadata:
    """Open the metadata in a data folder. If they are damaged, set them aside, and begin with nothing.

    on_damage: is told about it, in a sentence

    Raises `BadDirectory`, `CorruptFile` and `OSError`, as `FollowedMetadata` does.
    """
    try:
        return FollowedMetadata(folder, owner, storage=storage, clock=clock, limits=limits)
    except FormatError as error:
        if has_voted(storage, folder / FOLDER):
            raise
        if len(_set_aside(folder)) >= _MOST:
            problem = f"the metadata are damaged again, and {_MOST} damaged copies are beside them: {error}"
            raise BadDirectory(folder / FOLDER, problem) from None
        damage = error
    epoch = _epoch(storage, folder)
    aside = folder / f"{METADATA_PARTITION}.{uuid4().hex}{Aside.STRAY.value}"
    storage.rename(folder / FOLDER, aside)
    storage.sync_folder(folder)
    on_damage(f"metadata on the disk are damaged; they are now in {aside}, and are fetched anew: {damage}")
    metadata = FollowedMetadata(folder, owner, storage=storage, clock=clock, limits=limits)
    metadata.keep_leader(epoch)
    return metadata


def _set_aside(folder: Path) -> list[Path]:
    parsed = ((path, AsideFolder.parse(path.name)) for path in folder.iterdir())
    return [path for path, found in parsed if found is not None and found.partition == METADATA_PARTITION]


def _epoch(storage: Storage, folder: Path) -> int:
    """Return the newest epoch of the controllers, as far as that can be read."""
    try:
        return read_quorum_state(storage, folder / FOLDER).epoch
    except FormatError:
        return 0

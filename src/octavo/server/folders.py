"""The folders of the data directory that a broker serves, as its settings name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from octavo.broker.config import LOG_DIRS, METADATA_DIR
from octavo.errors import BadDirectory, InvalidConfig
from octavo.log.files.partition_metadata import read_topic_id
from octavo.log.metadata.cluster_log import FOLDER, has_cluster_log
from octavo.log.partition_folders import find_all_partitions
from octavo.log.storage import DISK


def named_folders(properties: Mapping[str, str]) -> list[Path]:
    """Return the folders that `log.dirs` and `metadata.log.dir` name; none if they name none. Raises `InvalidConfig`.

    A new directory has its metadata in the first of them.
    """
    named = next((properties[name] for name in LOG_DIRS if properties.get(name, "").strip()), "")
    folders = [Path(each) for each in (part.strip() for part in named.split(",")) if each]
    where = properties.get(METADATA_DIR, "").strip()
    if not where:
        return folders
    metadata = Path(where)
    for folder in folders:
        if folder.resolve() == metadata.resolve():
            return [folder, *(each for each in folders if each != folder)]
    if not folders or not has_cluster_log(metadata / FOLDER):
        raise InvalidConfig(METADATA_DIR, where, "there are no metadata, and new ones are kept in one of log.dirs")
    return [*folders, metadata]


def check_metadata(folders: Sequence[Path]) -> None:
    """Check that there are metadata if there are partitions of a cluster. Raises `BadDirectory`.

    Otherwise an empty cluster would be served beside them.
    """
    existing = [folder for folder in folders if folder.is_dir()]
    if any(has_cluster_log(folder / FOLDER) for folder in existing):
        return
    for path in find_all_partitions(existing).values():
        if read_topic_id(DISK, path) is not None:
            raise BadDirectory(
                path,
                f"the topic of this partition is in metadata that are not here: name their folder by {METADATA_DIR}, "
                "or have `octavo handover` make new ones",
            )

"""The folders of the data directory that a broker serves, as its settings name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from octavo.broker.config import LOG_DIRS, METADATA_DIR
from octavo.errors import BadDirectory, InvalidConfig
from octavo.log.files.partition_metadata import read_topic_id
from octavo.log.metadata.cluster_log import FOLDER, has_cluster_log
from octavo.log.names import LOG, TopicPartition
from octavo.log.partition_folders import find_all_partitions
from octavo.log.recovery_report import in_lines
from octavo.log.storage import DISK

ADOPT: Final = "--adopt"
_SHOWN: Final = 10  # partitions that a message names


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
    found = find_all_partitions(existing)
    for path in found.values():
        if read_topic_id(DISK, path) is not None:
            shown = [f"{partition} ({_size(each):,} bytes)" for partition, each in list(found.items())[:_SHOWN]]
            more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            raise BadDirectory(
                path,
                f"the topic of this partition is in metadata that are not here: name their folder by {METADATA_DIR}, "
                f"or have `octavo serve {ADOPT}` or `octavo handover` make new ones. Without them are "
                f"{', '.join(shown)}{more}",
            )


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.name.endswith(LOG))


def tell_strangers(sizes: Mapping[TopicPartition, int]) -> list[str]:
    """Return sentences on partitions that are not served, because the metadata do not know them.

    sizes: the partitions, with the bytes of their records
    """
    if not sizes:
        return []
    first = (
        f"{len(sizes):,} partition(s) in this directory are not in its metadata, and are not served: they may have "
        f"been copied here. `octavo serve {ADOPT}` makes topics of them, whose records are kept for ever "
        "(retention.ms=-1) until you say otherwise"
    )
    return [
        first,
        *(f"not served: {each}" for each in in_lines(f"{name} ({size:,} bytes)" for name, size in sizes.items())),
    ]


def tell_adopted(partitions: Sequence[TopicPartition]) -> list[str]:
    """Return sentences on partitions that were adopted."""
    return [
        f"added to the metadata, and kept for ever (retention.ms=-1; Kafka's own topics are compacted): {each}"
        for each in in_lines(map(str, partitions))
    ]

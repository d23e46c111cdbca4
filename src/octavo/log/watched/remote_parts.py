"""Find out which partitions of a folder are tiered, by reading it: `tiered_topics` and `remote_parts`."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

from octavo.errors import CorruptFile, OctavoError
from octavo.log.files.text_checkpoint import LOG_START, read_epochs, read_offsets
from octavo.log.metadata.cluster_log import FOLDER, has_cluster_log, read_cluster_log
from octavo.log.metadata.image import Topic
from octavo.log.names import LEADER_EPOCHS, LOG, TopicPartition, base_offset_of
from octavo.log.partition_folders import find_partitions
from octavo.log.storage import DISK
from octavo.log.tiers import RemotePart, remote_part

TIERED = "remote.storage.enable"


def is_tiered(topic: Topic) -> bool:
    """Return whether the settings of a topic say that it is tiered."""
    return topic.config.get(TIERED, "").strip().lower() == "true"


def tiered_topics(folder: Path) -> AbstractSet[str] | None:
    """Return the tiered topics by the metadata in a data folder on this disk; None if there are none to be read."""
    try:
        if has_cluster_log(folder / FOLDER):
            topics = read_cluster_log(DISK, folder / FOLDER).image.topics()
            return {name for name, topic in topics.items() if is_tiered(topic)}
    except (OctavoError, OSError):  # whoever reads them for their own sake says so
        pass
    return None


def remote_parts(folder: Path) -> list[RemotePart]:
    """Return what is in remote storage only, of all partitions of a data folder on this disk.

    Damaged files tell nothing, and are somebody else's to report.
    """
    try:
        recorded, partitions = read_offsets(DISK, folder / LOG_START), find_partitions(folder)
    except (OctavoError, OSError):
        return []
    topics = tiered_topics(folder)
    found = []
    for partition, path in sorted(partitions.items()):
        tiered = None if topics is None else partition.topic in topics
        if tiered is not False:
            part = _part(path, partition, recorded.get(partition), tiered)
            found += [] if part is None else [part]
    return found


def _part(path: Path, partition: TopicPartition, recorded: int | None, tiered: bool | None) -> RemotePart | None:
    try:
        bases = [base_offset_of(each.name) for each in path.iterdir() if each.name.endswith(LOG)]
        epochs = tuple(read_epochs(DISK, path / LEADER_EPOCHS))
    except (CorruptFile, OSError):
        return None
    first = min((base for base in bases if base is not None), default=0)
    return remote_part(partition, is_tiered=tiered, recorded=recorded, epochs=epochs, first=first)

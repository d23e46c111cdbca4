"""Find the partitions in what a salvage is given, and check where its result may go. Nothing is changed here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from octavo.errors import BadDirectory, CorruptFile, InvalidInput
from octavo.inspect.salvage.run import SegmentFile
from octavo.log.files.meta_properties import MetaProperties, check_one_cluster, read_meta_properties
from octavo.log.files.partition_metadata import read_topic_id
from octavo.log.files.text_checkpoint import (
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    EpochEntry,
    read_epochs,
    read_offsets,
)
from octavo.log.names import (
    INDEX,
    LEADER_EPOCHS,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    AsideFolder,
    TopicPartition,
    base_offset_of,
    file_name,
)
from octavo.log.partition_folders import METADATA_PARTITION
from octavo.log.storage import DISK

_REST = (".deleted", ".cleaned", ".lost")  # endings of files that hold batches, but are not part of the log


class PartitionSources(NamedTuple):
    """The folders of one partition: its replicas, in the order in which they were given."""

    partition: TopicPartition
    folders: list[Path]


class Sources(NamedTuple):
    """What a salvage was given."""

    partitions: list[PartitionSources]
    are_directories: bool  # data directories, not folders of one partition
    folders: list[Path]


class SegmentFiles(NamedTuple):
    """The files of a partition's folder that hold batches."""

    logs: list[SegmentFile]  # in the order of their names
    swaps: list[SegmentFile]  # finished output of a compaction that had not yet replaced its input
    ignored: list[str]  # names of files that are not part of the log


class Told(NamedTuple):
    """Offsets that a log had by what lies beside its segments, even if nothing is left of them."""

    segments: list[int]  # where segments began that are gone: their indexes are there, or something that is no file
    ends: list[int]  # the log reached these: names of producer snapshots, and checkpoints
    start: int  # where the log began, if no name of a segment tells it


def find_sources(paths: Sequence[Path], target: Path) -> Sources:
    """Find out what the sources are. Raises `BadDirectory`, `InvalidInput` and `OSError`."""
    for path in paths:
        if not path.is_dir():
            problem = (
                "this is no folder: give the folder of the partition" if path.exists() else "there is no such folder"
            )
            raise BadDirectory(path, problem)
        if not os.access(path, os.R_OK | os.X_OK):
            raise BadDirectory(path, "there is no permission to read this folder")
    if len({path.resolve() for path in paths}) < len(paths):
        raise InvalidInput("the same source is given twice")
    directories = [not _is_partition(path) for path in paths]
    if any(directories) != all(directories):
        raise InvalidInput("give either folders of one partition, or data directories, and not both")
    if all(directories):
        return Sources(_partitions_of(paths), True, list(paths))
    _check_names(paths)
    names = [_partition_of(path) for path in (*paths, target)]
    partition = next((name for name in names if name is not None), TopicPartition("salvaged", 0))
    if partition == METADATA_PARTITION:
        raise BadDirectory(paths[0], "the log of Kafka's metadata must not have gaps: fetch it from another controller")
    return Sources([PartitionSources(partition, list(paths))], False, list(paths))


def _is_partition(path: Path) -> bool:
    with os.scandir(path) as entries:
        names = [entry.name for entry in entries if not entry.is_dir()]
    return any(base_offset_of(name) is not None for name in names) or (
        TopicPartition.parse(path.name) is not None and not _subfolders(path)
    )


def _subfolders(path: Path) -> dict[TopicPartition, Path]:
    """Return the partitions of a data directory. A folder of another name is none of ours."""
    found = {TopicPartition.parse(each.name): each for each in sorted(path.iterdir()) if each.is_dir()}
    return {name: each for name, each in found.items() if name is not None and name != METADATA_PARTITION}


def _partitions_of(paths: Sequence[Path]) -> list[PartitionSources]:
    found: dict[TopicPartition, list[Path]] = {}
    for path in paths:
        partitions = _subfolders(path)
        if not partitions:
            raise BadDirectory(path, "there is neither a segment in this folder nor the folder of a partition")
        for name, folder in partitions.items():
            found.setdefault(name, []).append(folder)
    identities = [(path, identity_of(path)) for path in paths]
    check_one_cluster([(path, identity) for path, identity in identities if identity is not None])
    return [PartitionSources(name, folders) for name, folders in sorted(found.items())]


def _partition_of(folder: Path) -> TopicPartition | None:
    """Return the partition that a folder is named after, even if it was set aside; None if it has another name."""
    aside = AsideFolder.parse(folder.name)
    return TopicPartition.parse(folder.name) if aside is None else aside.partition


def _check_names(paths: Sequence[Path]) -> None:
    names = {name for path in paths if (name := _partition_of(path)) is not None}
    if len(names) > 1:
        both = " and ".join(str(name) for name in sorted(names)[:2])
        raise InvalidInput(f"{both} are different partitions, not replicas of one")


def identity_of(folder: Path) -> MetaProperties | None:
    """Return the identity of a data directory; None if it cannot be read."""
    try:
        return read_meta_properties(DISK, folder)
    except (CorruptFile, BadDirectory):
        return None


def check_target(target: Path, sources: Sequence[Path]) -> None:
    """Check that the result may be put at `target`. Raises `BadDirectory`."""
    place = target.absolute().parent.resolve() / target.absolute().name
    for source in sources:
        folder = source.resolve()
        if place == folder or folder in place.parents or place in folder.parents:
            raise BadDirectory(target, f"it must lie neither in the source {source} nor around it")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise BadDirectory(target, "there is a file of this name: the target has to be new, or an empty folder")
    if target.is_dir() and any(target.iterdir()):
        raise BadDirectory(target, "the target has to be new, or an empty folder, and there is something in it")
    if target.absolute().is_mount():
        raise BadDirectory(target, "another file system is mounted there: give a folder in it that does not exist yet")
    if not place.parent.is_dir():
        raise BadDirectory(target, "there is no folder in which to make it")
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise BadDirectory(place.parent, "there is no permission to write in this folder")


def segment_files(folder: Path, replica: int) -> SegmentFiles:
    """Return the files of a partition's folder that may hold batches. Raises `OSError`."""
    logs: list[SegmentFile] = []
    swaps: list[SegmentFile] = []
    ignored: list[str] = []
    for path in sorted(folder.iterdir()):
        named = base_offset_of(path.name)
        suffix = path.name[path.name.find(".") :]
        if named is None or suffix not in (LOG, LOG + SWAP):
            if path.name.endswith(_REST) and LOG in path.name:
                ignored.append(path.name)
            continue
        if not path.is_file():
            ignored.append(path.name)
            continue
        of = logs if suffix == LOG else swaps
        of.append(SegmentFile(path, named, path.stat().st_size, replica, len(of)))
    for file, following in pairwise(logs):
        file.next_named = following.named
    return SegmentFiles(logs, swaps, ignored)


def told_of(folder: Path, partition: TopicPartition, epochs: Sequence[EpochEntry]) -> Told:
    """Return what names of files and checkpoints tell about the offsets of a log. Raises `OSError`."""
    segments: set[int] = set()
    ends = [entry.start_offset for entry in epochs]
    for path in folder.iterdir():
        named = base_offset_of(path.name)
        suffix = path.name[path.name.find(".") :]
        if named is None:
            continue
        if suffix == SNAPSHOT:
            ends.append(named)
        elif suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
            logs = folder / file_name(named, LOG), folder / file_name(named, LOG + SWAP)
            if not any(log.is_file() for log in logs):
                segments.add(named)
    start = min(ends, default=0) if epochs else 0
    if folder.name == str(partition):  # a folder that was set aside is not the one that the checkpoints mean
        known = [checkpointed(folder, name, partition) for name in (RECOVERY_POINT, REPLICATION)]
        ends += [offset for offset in known if offset is not None]
        start = checkpointed(folder, LOG_START, partition) or start
    return Told(sorted(segments), ends, start)


def topic_id_of(folders: Sequence[Path]) -> UUID | None:
    """Return the id of the topic. Raises `InvalidInput` if folders belong to different topics of the same name."""
    ids: dict[UUID, Path] = {}
    for folder in folders:
        try:
            found = read_topic_id(DISK, folder)
        except (CorruptFile, BadDirectory):
            continue  # a replica may know it, and nothing else depends on it
        if found is not None:
            ids.setdefault(found, folder)
    if len(ids) > 1:
        places = " and ".join(map(str, ids.values()))
        raise InvalidInput(f"{places} are not replicas: they belong to different topics of the same name")
    return next(iter(ids), None)


def epochs_of(folder: Path) -> list[EpochEntry]:
    """Return the leader epochs of a partition's checkpoint; none if it is missing or damaged."""
    try:
        return read_epochs(DISK, folder / LEADER_EPOCHS)
    except (CorruptFile, BadDirectory):
        return []


def checkpointed(folder: Path, name: str, partition: TopicPartition) -> int | None:
    """Return the offset of a partition in a checkpoint of its data directory; None if there is none."""
    try:
        return read_offsets(DISK, folder.parent / name).get(partition)
    except (CorruptFile, BadDirectory, OSError):
        return None

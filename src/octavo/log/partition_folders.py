"""Find the folders of partitions, and refuse a folder that is not a data directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Final

from octavo.errors import BadDirectory, InvalidInput
from octavo.log.names import META_PROPERTIES, METADATA_TOPIC, AsideFolder, TopicPartition, base_offset_of

Paths = Path | str | Sequence[Path | str]

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
_NO_PARTITIONS: Final = frozenset({"remote-log-index-cache"})  # folders that only Kafka uses


class PartitionFolders(MutableMapping[TopicPartition, Path]):
    """The folders of partitions. Those of one topic are found without looking at all others."""

    def __init__(self, found: Mapping[TopicPartition, Path]) -> None:
        self._paths: Final[dict[TopicPartition, Path]] = {}
        self._of_topic: Final[dict[str, set[TopicPartition]]] = {}  # may have partitions that `_paths` has no more
        self.update(found)

    def of_topic(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic, in the order of their numbers."""
        return sorted(partition for partition in self._of_topic.get(topic, ()) if partition in self._paths)

    def __getitem__(self, partition: TopicPartition) -> Path:
        return self._paths[partition]

    def __setitem__(self, partition: TopicPartition, path: Path) -> None:
        self._of_topic.setdefault(partition.topic, set()).add(partition)
        self._paths[partition] = path

    def __delitem__(self, partition: TopicPartition) -> None:
        del self._paths[partition]
        left = self._of_topic.get(partition.topic, set())
        left.discard(partition)
        if not left:
            self._of_topic.pop(partition.topic, None)

    def __contains__(self, partition: object) -> bool:
        return partition in self._paths

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def folder_paths(paths: Paths) -> list[Path]:
    """Return the paths of the folders of one data directory as a list.

    Raises `InvalidInput` if there are none, or if one is not a path. An empty string is refused: as a
    `Path` it would be the current folder, which nobody asked for.
    """
    several = [paths] if isinstance(paths, Path | str) else list(paths)
    if not several:
        raise InvalidInput("a data directory has at least one folder")
    for path in several:
        if not str(path) or "\0" in str(path):
            raise InvalidInput(f"{str(path)!r} is no path to a folder")
    return [Path(path) for path in several]


def check_data_folder(path: Path, *, read_only: bool = False) -> None:
    """Check that a folder can be a data directory. It must not be a partition's, nor inside another data directory.

    `read_only`: allow a directory inside another, because somebody may have put a copy there to read it. Raises
    `BadDirectory`.
    """
    path = path.absolute()
    if not read_only and (path.parent / META_PROPERTIES).exists():
        raise BadDirectory(path, f"it is inside the data directory {path.parent}: open that one")
    if not path.is_dir() or all(base_offset_of(each.name) is None for each in path.iterdir()):
        return
    if TopicPartition.parse(path.name) is not None:
        raise BadDirectory(path, f"this is the folder of a partition: open {path.parent}, or Log.open({str(path)!r})")
    if not find_partitions(path):
        raise BadDirectory(path, "segments lie in it, as in a partition; a data directory has folders such as events-0")


def check_place(path: Path) -> None:
    """Check that there is a folder at `path`, or one in which it can be made. Raises `BadDirectory`."""
    if not path.exists():
        if not path.parent.is_dir():
            raise BadDirectory(path, "there is no such folder, and none to make it in")
    elif not path.is_dir():
        raise BadDirectory(path, "this is a file, and not a data directory")


def find_partitions(folder: Path, *, strict: bool = False) -> dict[TopicPartition, Path]:
    """Return the folders of all partitions except the one that holds Kafka's own metadata.

    `strict`: raise `BadDirectory` for a folder that belongs to no partition. Kafka would not start on it either.
    """
    partitions = {}
    for path in sorted(folder.iterdir()):
        if not path.is_dir() or path.name in _NO_PARTITIONS:
            continue
        partition = TopicPartition.parse(path.name)
        if partition is not None:
            partitions[partition] = path
        elif strict and AsideFolder.parse(path.name) is None:
            raise BadDirectory(path, "a data directory has no folder of such a name: move it somewhere else")
    partitions.pop(METADATA_PARTITION, None)
    return partitions


def has_partitions(folder: Path) -> bool:
    """Return whether `find_partitions` would find any, without looking for all of them."""
    found = (TopicPartition.parse(path.name) for path in folder.iterdir() if path.is_dir())
    return any(partition is not None and partition != METADATA_PARTITION for partition in found)


def find_all_partitions(folders: Iterable[Path]) -> dict[TopicPartition, Path]:
    """Return the partitions in all folders of a directory, as `find_partitions` with `strict` does for one folder.

    Raises `BadDirectory` for a partition that is in two folders.
    """
    found: dict[TopicPartition, Path] = {}
    for folder in folders:
        for partition, path in find_partitions(folder, strict=True).items():
            other = found.setdefault(partition, path)
            if other != path:
                raise BadDirectory(path, f"the same partition is in {other.parent}: only one of them can be right")
    return found

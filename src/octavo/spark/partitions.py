"""Find the partitions at or below the given paths.

A path leads to a data directory, to the folder of a partition or to the file of a segment. A partition may have
replicas in the data directories of several brokers: `octavo.spark.replicas` chooses the one to read.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from octavo.errors import BadDirectory, MissingPartitions
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.config.log_config import LogConfig
from octavo.log.config.nearest_name import nearest_name
from octavo.log.names import LOG, METADATA_TOPIC, SWAP, TopicPartition, base_offset_of, is_internal_topic
from octavo.log.reading.segment_portions import offset_after
from octavo.log.view import View
from octavo.log.watched.watched_log import WatchedLog
from octavo.spark.files import FoundPath, Root, children, find_paths, shown
from octavo.spark.offsets import partition_list
from octavo.spark.options import Options
from octavo.spark.threads import in_threads

_log = logging.getLogger("octavo.spark")

_FEW_TOPICS: Final = 5  # the most topics that a message names
_MOST_WALKED: Final = 1 << 20  # the most bytes of a remote segment without an index that are walked to find its end

Place = tuple[str, Path]  # a file system and a folder in it


class Replica(NamedTuple):
    """The folder of a partition in one data directory."""

    partition: TopicPartition
    root: Root
    folder: Path
    segments: frozenset[int] | None = None  # base offsets of the segments to read, if paths name files; else None

    @property
    def place(self) -> Place:
        """The file system and the folder. They are equal for all paths that lead to this replica."""
        if self.root.is_local:
            return "", self.folder
        address = urlsplit(self.root.address)
        return f"{address.scheme}://{address.netloc}?{address.query}", self.folder

    @property
    def directory(self) -> Place:
        """The data directory that contains the replica's folder."""
        return self.place[0], self.folder.parent

    def open(self, checkpoints: WatchedCheckpoints | None = None) -> WatchedLog:
        """Open the log as it is now. `checkpoints` are those of its data directory. Raises `BadDirectory`."""
        return WatchedLog(self.root.storage(), self.folder, self.partition, LogConfig(), checkpoints)

    def checkpoints(self) -> WatchedCheckpoints:
        """Open the checkpoints of the data directory. All replicas in that directory share them."""
        return WatchedCheckpoints(self.root.storage(), self.folder.parent)

    def reads(self, base_offset: int) -> bool:
        """Whether the segment with this base offset is to be read."""
        return self.segments is None or base_offset in self.segments

    def offset_after(self, view: View, number: int) -> int:
        """Return the offset after the last one of a segment, as `segment_portions.offset_after` does.

        A large remote file without an index is not read for that: the base offset of the next segment is returned.
        """
        segment = view.segments[number]
        if segment.size > _MOST_WALKED and not self.root.is_local and segment.offset_index.count == 0:
            return view.segment_end(number)
        return offset_after(view, number)

    def has_segments(self) -> bool:
        """Whether the folder has segments now. While a topic is created, its folder exists before its first segment."""
        try:
            inside = children(self.root.storage(), self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return any(map(_is_segment, inside))

    def __str__(self) -> str:
        return str(self.folder) if self.root.is_local else f"{self.folder} of {shown(self.root.address)}"


Replicas = dict[TopicPartition, list[Replica]]


def find_partitions(options: Options, *, must_be_there: bool = True) -> Replicas:
    """Find the partitions that the options ask for, sorted. Raises `BadDirectory` and `InvalidInput`.

    With `must_be_there`, raises `MissingPartitions` if a topic of `subscribe` or all partitions of `assign` are
    missing.
    """
    found: dict[TopicPartition, dict[Place, Replica]] = {}
    named: set[TopicPartition] = set()  # given by the path of their folder or file, so read whatever their topic
    for replicas, by_itself in in_threads(_replicas_at, (each for path in options.paths for each in find_paths(path))):
        for replica in replicas:
            _add(found.setdefault(replica.partition, {}), replica)
            if by_itself:
                named.add(replica.partition)
    if not found and must_be_there:
        raise BadDirectory(
            _shown_paths(options), "there is no partition here: neither folders named topic-0, nor segments"
        )
    wanted = sorted(_wanted(options, found, named, must_be_there))
    return {partition: list(found[partition].values()) for partition in wanted}


def _shown_paths(options: Options) -> str:
    return ", ".join(map(shown, options.paths))


def _add(replicas: dict[Place, Replica], new: Replica) -> None:
    """Add a replica, or add its segments to a known replica of the same folder (paths may name several files)."""
    known = replicas.setdefault(new.place, new)
    if known.segments is not None and known.segments != new.segments:
        segments = None if new.segments is None else known.segments | new.segments
        replicas[new.place] = known._replace(segments=segments)


def _replicas_at(found: FoundPath) -> tuple[list[Replica], bool]:
    """Return the replicas at a path, and whether the path itself is that of a partition or a segment."""
    root, path = found
    storage = root.storage()
    if not storage.is_folder(path):
        return [_replica_of_file(root, path)], True
    inside = children(storage, path)
    partition = TopicPartition.parse(path.name)
    if partition is not None and any(_is_segment(name) for name, is_folder in inside.items() if not is_folder):
        return [Replica(partition, root, path)], True
    replicas = []
    for name, is_folder in sorted(inside.items()):
        partition = TopicPartition.parse(name) if is_folder else None
        if partition is not None:
            replicas.append(Replica(partition, root, path / name))
    return replicas, False


def _is_segment(name: str) -> bool:
    """Whether a file is a segment, or one that compaction is about to swap in."""
    return name.removesuffix(SWAP).endswith(LOG) and base_offset_of(name) is not None


def _replica_of_file(root: Root, path: Path) -> Replica:
    partition = TopicPartition.parse(path.parent.name)
    base_offset = base_offset_of(path.name)
    if not path.name.endswith(LOG) or base_offset is None or partition is None:
        raise BadDirectory(path, "this is no segment of a partition, such as topic-0/00000000000000000000.log")
    return Replica(partition, root, path.parent, frozenset({base_offset}))


def _wanted(
    options: Options, found: Iterable[TopicPartition], named: set[TopicPartition], must_be_there: bool
) -> Iterable[TopicPartition]:
    found = set(found)
    known = [partition for partition in found if partition.topic != METADATA_TOPIC]
    if options.assign is not None:
        missing = [partition for partition in options.assign if partition not in found]
        if len(missing) == len(options.assign) and must_be_there:
            hint = _hint_at_partitions(missing[0].topic, known)
            raise MissingPartitions(
                f"there is no partition {partition_list(missing)} in {_shown_paths(options)}; {hint}"
            )
        if missing and must_be_there:
            _log.warning(
                "there is no partition %s in %s: the others are read", partition_list(missing), _shown_paths(options)
            )
        return {partition for partition in options.assign if partition in found}
    if options.subscribe is not None:
        topics = {partition.topic for partition in known}
        for topic in options.subscribe:
            if topic not in topics and must_be_there:
                raise MissingPartitions(
                    f"there is no topic {topic!r} in {_shown_paths(options)}; {_hint(topic, topics)}"
                )
        return [partition for partition in found if partition.topic in options.subscribe]
    visible = [partition for partition in found if partition in named or not _is_hidden(partition.topic)]
    if options.subscribe_pattern is not None:
        pattern = re.compile(options.subscribe_pattern)
        return [partition for partition in visible if pattern.search(partition.topic)]
    return visible


def _hint(topic: str, there: Iterable[str]) -> str:
    """Suggest the topic that may have been meant, or else name a few of the existing topics."""
    topics = sorted(there)
    near = nearest_name(topic, topics)
    if near is not None:
        return f"is {near!r} meant?"
    if not topics:
        return "there are no topics"
    shown_topics = ", ".join(map(repr, topics[:_FEW_TOPICS]))
    return f"there {'is' if len(topics) == 1 else 'are'} {shown_topics}" + (
        f" and {len(topics) - _FEW_TOPICS} more" if len(topics) > _FEW_TOPICS else ""
    )


def _hint_at_partitions(topic: str, there: Iterable[TopicPartition]) -> str:
    """Name the partitions that a topic has. If it has none, suggest the topic that may have been meant."""
    numbers = sorted(partition.partition for partition in there if partition.topic == topic)
    if numbers:
        return f"of {topic!r} there are {len(numbers)}, from {numbers[0]} to {numbers[-1]}"
    return _hint(topic, {partition.topic for partition in there})


def _is_hidden(topic: str) -> bool:
    return topic == METADATA_TOPIC or is_internal_topic(topic)

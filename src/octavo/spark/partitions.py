"""Which partitions there are below the paths that were given, and which of several replicas of one is to be read.

A path leads to a data directory, to the folder of a partition or to the file of a segment. The same partition may be
found several times, as the directories of several brokers have it: then that replica is read whose last leader epoch
is the highest, as Kafka would elect it, and of these the one that goes furthest. What another replica has behind the
point where the two part is not in the log: it is reported, and not merged.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from octavo.errors import BadDirectory, InvalidInput
from octavo.log.config import LogConfig
from octavo.log.epochs import UNDEFINED, LeaderEpochs
from octavo.log.names import LOG, METADATA_TOPIC, TopicPartition, base_offset_of, is_internal_topic
from octavo.log.partition_metadata import read_topic_id
from octavo.log.watched import WatchedLog
from octavo.spark.files import Root, children, find_paths
from octavo.spark.offsets import told
from octavo.spark.options import Options

_log = logging.getLogger("octavo.spark")


class Replica(NamedTuple):
    """A folder of a partition."""

    partition: TopicPartition
    root: Root
    folder: Path
    segment: int | None = None  # the base offset of the only one to read, where a file was named

    def open(self) -> WatchedLog:
        """The log as it is now. Raises `BadDirectory`."""
        return WatchedLog(self.root.storage(), self.folder, self.partition, LogConfig())

    def __str__(self) -> str:
        return str(self.folder) if self.root.is_local else f"{self.folder} of {self.root.address.partition('?')[0]}"


Replicas = dict[TopicPartition, list[Replica]]


def find_partitions(options: Options, *, must_be_there: bool = True) -> Replicas:
    """The partitions that the options ask for, in order. Raises `BadDirectory` and `InvalidInput`.

    Those that are asked for by their names, or their topics', have to be there, unless that is not wanted.
    """
    found: Replicas = {}
    named: set[TopicPartition] = set()  # by their own folder or file: such a one is wanted, whatever its topic
    for path in options.paths:
        for root, place in find_paths(path):
            replicas, by_itself = _look_at(root, place)
            for replica in replicas:
                _add(found.setdefault(replica.partition, []), replica)
                if by_itself:
                    named.add(replica.partition)
    if not found and must_be_there:
        where = ", ".join(options.paths)
        raise BadDirectory(where, "there is no partition here: neither folders named topic-0, nor segments")
    return {partition: found[partition] for partition in sorted(_wanted(options, found, named, must_be_there))}


def _add(replicas: list[Replica], new: Replica) -> None:
    if new not in replicas:
        replicas.append(new)


def _look_at(root: Root, path: Path) -> tuple[list[Replica], bool]:
    """What partitions there are at a path, and whether it is one by itself."""
    storage = root.storage()
    if not storage.is_folder(path):
        return [_of_file(root, path)], True
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
    return name.endswith(LOG) and base_offset_of(name) is not None


def _of_file(root: Root, path: Path) -> Replica:
    partition = TopicPartition.parse(path.parent.name)
    if not _is_segment(path.name) or partition is None:
        raise BadDirectory(path, "this is no segment of a partition, such as topic-0/00000000000000000000.log")
    return Replica(partition, root, path.parent, base_offset_of(path.name))


def _wanted(
    options: Options, found: Replicas, named: set[TopicPartition], must_be_there: bool
) -> Iterable[TopicPartition]:
    where = ", ".join(options.paths)
    known = [partition for partition in found if partition.topic != METADATA_TOPIC]
    if options.assign is not None:
        missing = [partition for partition in options.assign if partition not in found]
        if len(missing) == len(options.assign) and must_be_there:
            raise InvalidInput(f"there is no partition {told(missing)} in {where}; there are {told(known)}")
        if missing and must_be_there:
            _log.warning("there is no partition %s in %s: the others are read", told(missing), where)
        return [partition for partition in options.assign if partition in found]
    if options.subscribe is not None:
        topics = {partition.topic for partition in known}
        for topic in options.subscribe:
            if topic not in topics and must_be_there:
                raise InvalidInput(f"there is no topic {topic!r} in {where}; there are {', '.join(sorted(topics))}")
        return [partition for partition in found if partition.topic in options.subscribe]
    visible = [partition for partition in found if partition in named or not _is_hidden(partition.topic)]
    if options.subscribe_pattern is not None:
        pattern = re.compile(options.subscribe_pattern)
        return [partition for partition in visible if pattern.fullmatch(partition.topic)]
    return visible


def _is_hidden(topic: str) -> bool:
    return topic == METADATA_TOPIC or is_internal_topic(topic)


class _Candidate(NamedTuple):
    """A replica, and by what it is compared."""

    replica: Replica
    log: WatchedLog
    epochs: LeaderEpochs

    @property
    def rank(self) -> tuple[int, int]:
        latest = self.epochs.latest
        return (UNDEFINED if latest is None else latest.epoch, self.log.end_offset)


def choose(replicas: list[Replica]) -> tuple[Replica, WatchedLog]:
    """The replica that is the log, of those that there are of one partition. Raises `InvalidInput`, `BadDirectory`."""
    if len(replicas) == 1:
        return replicas[0], replicas[0].open()
    if all(replica.segment is not None for replica in replicas) and len({each.folder for each in replicas}) == 1:
        raise InvalidInput(f"{replicas[0].partition}: name its folder rather than several of its files")
    candidates = []
    for replica in replicas:
        log = replica.open()
        candidates.append(_Candidate(replica, log, log.epochs))
    _check_ids(candidates)
    best = max(candidates, key=lambda candidate: candidate.rank)
    for other in candidates:
        if other is not best:
            _report_divergence(best, other)
            other.log.close()
    return best.replica, best.log


def _check_ids(candidates: list[_Candidate]) -> None:
    ids: dict[UUID, Replica] = {}
    for candidate in candidates:
        topic_id = read_topic_id(candidate.replica.root.storage(), candidate.replica.folder)
        if topic_id is not None:
            ids.setdefault(topic_id, candidate.replica)
    if len(ids) > 1:
        places = " and ".join(str(replica) for replica in ids.values())
        topic = candidates[0].replica.partition.topic
        raise InvalidInput(f"{places} are not replicas: they belong to different topics named {topic!r}; read one")


def _report_divergence(best: _Candidate, other: _Candidate) -> None:
    """Tell of what only the other replica has."""
    parting = parting_offset(best.epochs, best.log.end_offset, other.epochs, other.log.end_offset)
    if parting < other.log.end_offset:
        _log.warning(
            "%s: offsets %d to %d in %s are not in the log: its leader of epoch %s was replaced. %s is read",
            other.replica.partition,
            parting,
            other.log.end_offset - 1,
            other.replica,
            "unknown" if other.epochs.latest is None else other.epochs.latest.epoch,
            best.replica,
        )


def parting_offset(ours: LeaderEpochs, our_end: int, theirs: LeaderEpochs, their_end: int) -> int:
    """Up to where two replicas have the same, as a follower finds it out: epoch by epoch, from its last one back."""
    for entry in reversed(theirs.entries):
        answer = ours.end_offset_for(entry.epoch, our_end)
        their_last = theirs.end_offset_for(answer.epoch, their_end)
        if answer.epoch == their_last.epoch != UNDEFINED:
            return min(answer.end_offset, their_last.end_offset, their_end)
    return theirs.entries[0].start_offset if theirs.entries else min(our_end, their_end)

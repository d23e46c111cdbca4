"""Hand a data directory over to Apache Kafka: `handover`.

An Octavo directory is a Kafka directory at any time, provided its metadata name every partition in it. What may be
missing is repaired once the directory is locked:

    a topic that is missing from the metadata         is added, with the id that it has and `retention.ms=-1`: its
                                                      retention is not known, and Kafka's default deletes. The topics
                                                      in which Kafka keeps its own state, and which it compacts, are
                                                      added with `cleanup.policy=compact`
    a leader epoch or folder that is not the log's    is corrected
    a partition that this node leads                  has no leader, as after Kafka's own shutdown: see `_resigned`
    producer ids that are in logs, but not in the     are reserved, so that they are never given out again
    metadata
    a lost `partition.metadata`                       is written

A directory that Kafka would not start on is refused, and left unchanged: everything is read before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from octavo.errors import BadDirectory
from octavo.log.files.clean_shutdown import was_clean
from octavo.log.files.meta_properties import random_uuid, write_uuid
from octavo.log.files.partition_metadata import read_topic_id, write_topic_ids
from octavo.log.files.text_checkpoint import read_epochs
from octavo.log.metadata.cluster_log import FOLDER, has_cluster_log, snapshot_records
from octavo.log.metadata.image import PartitionState
from octavo.log.metadata.server_properties import ChangedSetting, differences, needed_settings
from octavo.log.metadata.store import FIRST_NODE, MetadataStore
from octavo.log.metadata.used_producer_ids import first_free_producer_id
from octavo.log.names import (
    BOOTSTRAP_CHECKPOINT,
    LEADER_EPOCHS,
    LOCK,
    LOG,
    META_PROPERTIES,
    TopicPartition,
    base_offset_of,
)
from octavo.log.ownership.lock import DirectoryLock
from octavo.log.partition_folders import check_data_folder, find_all_partitions
from octavo.log.segment.batch_walk import walk
from octavo.log.storage import DISK, Storage
from octavo.log.tiers import RemotePart
from octavo.records.layout import BATCH_HEADER

KEPT_FOR_EVER: Final = {"retention.ms": "-1"}
COMPACTED: Final = {"cleanup.policy": "compact"}
COMPACTED_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})  # compacted in any cluster
_NO_EPOCH: Final = -1
_NO_LEADER: Final = -1
_MOST_PARTITIONS: Final = 100_000  # limit for an adopted topic; all partitions up to its last are created
_EPOCH: Final = BATCH_HEADER.only("leader_epoch", "magic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """The result of a hand-over, with the settings that Kafka needs."""

    folders: tuple[Path, ...]
    node_id: int
    cluster_id: str
    topics: Mapping[str, int]  # number of partitions of each topic
    adopted: tuple[str, ...]  # topics that were missing from the metadata
    raised: tuple[TopicPartition, ...]  # partitions whose leader epoch was behind their log
    missing: tuple[TopicPartition, ...]  # partitions without a folder: Kafka creates them, empty
    unclean: tuple[Path, ...]  # folders without a clean shutdown: Kafka checks their logs when it starts
    settings: Mapping[str, str]  # for server.properties
    differences: tuple[ChangedSetting, ...] = ()  # settings that differ from what Kafka was running with
    expiring: Mapping[str, int] = field(default_factory=dict)  # bytes of topics that Kafka's default retention deletes
    remote: tuple[RemotePart, ...] = ()  # what of tiered topics is in remote storage only
    finished_commit: bool = False  # whether a commit of staged batches was pending, and is finished now


def handover(folders: Sequence[Path], *, storage: Storage = DISK) -> Handover:
    """Prepare the directory in `folders` so that a stock Apache Kafka 4.x starts on it and serves it.

    This takes no notice of commits of staged batches; `octavo.log.handover` finishes these first.

    Raises `DirectoryLocked`, `BadDirectory`, `CorruptFile` and `OSError` if that is not possible.
    """
    for folder in folders:
        if not folder.is_dir():
            raise BadDirectory(folder, "there is no such folder")
        check_data_folder(folder)
    if not all((folder / LOCK).exists() for folder in folders):
        _look(folders, storage)  # nobody has it open; if it is refused, it must not get a lock file
    with ExitStack() as locks:
        # First lock those that may be in use: if one is, no lock file is created in the others.
        for folder in sorted(folders, key=lambda folder: not (folder / LOCK).exists()):
            locks.enter_context(DirectoryLock.acquire(folder, storage))
        seen = _look(folders, storage)
        # From here on there are changes, and only the disk can fail.
        store = MetadataStore.open(folders, storage=storage, read_only=False)
        store.reserve_producer_ids(seen.first_free_producer_id)
        for topic in seen.strangers:
            _adopt(store, topic, seen.found, COMPACTED if topic in COMPACTED_TOPICS else KEPT_FOR_EVER)
        write_lost_ids(store, storage, {partition: each.path for partition, each in seen.found.items()})
        raised = _set_partitions(store, seen.found)
        return _report(store, folders, seen.found, seen.strangers, raised)


def adopt_strangers(
    folders: Sequence[Path], *, new_node_id: int = FIRST_NODE, storage: Storage = DISK
) -> tuple[TopicPartition, ...]:
    """Add all topics that have partitions in `folders` but are missing from the metadata. Returns these partitions.

    They get the settings that a hand-over gives them. Folders that contradict each other, or the metadata, are refused,
    and everything is left as it is. Raises `DirectoryLocked`, `OthersDecide`, `BadDirectory`, `CorruptFile` and
    `OSError`.
    """
    existing = [folder for folder in folders if folder.is_dir()]
    if not find_all_partitions(existing):
        return ()
    with ExitStack() as locks:
        for folder in existing:
            locks.enter_context(DirectoryLock.acquire(folder, storage))
        seen = _look(existing, storage)
        if seen.strangers:
            store = MetadataStore.open(existing, storage=storage, read_only=False, new_node_id=new_node_id)
            store.reserve_producer_ids(seen.first_free_producer_id)
            for topic in seen.strangers:
                _adopt(store, topic, seen.found, COMPACTED if topic in COMPACTED_TOPICS else KEPT_FOR_EVER)
            write_lost_ids(store, storage, {partition: each.path for partition, each in seen.found.items()})
    return tuple(sorted(partition for partition in seen.found if partition.topic in seen.strangers))


class _Found(NamedTuple):
    """What was read from a partition's folder."""

    path: Path
    topic_id: UUID | None  # None if the folder has lost it
    last_epoch: int  # latest leader epoch in the log; -1 if there is none


class _Seen(NamedTuple):
    """What was read from a directory that can be handed over, before any change."""

    found: Mapping[TopicPartition, _Found]
    strangers: tuple[str, ...]  # topics that are missing from the metadata
    first_free_producer_id: int


def _look(folders: Sequence[Path], storage: Storage) -> _Seen:
    """Read all that a hand-over needs. Raises if Kafka would not start on the directory."""
    paths = find_all_partitions(folders)
    found = _read(storage, paths)
    if not found and not any((folder / META_PROPERTIES).exists() for folder in folders):
        raise BadDirectory(folders[0], "there is nothing in it that could be handed over")
    known = MetadataStore.open(folders, storage=storage, read_only=True)
    _check_charge(known, storage)
    _check_ids(known, found)
    _check_partitions(known, found)
    strangers = tuple(sorted({topic for topic, _ in found} - known.topics.keys()))
    return _Seen(found, strangers, first_free_producer_id(storage, paths, strangers))


def _read(storage: Storage, paths: Mapping[TopicPartition, Path]) -> dict[TopicPartition, _Found]:
    return {
        partition: _Found(path, read_topic_id(storage, path), _last_epoch(storage, path))
        for partition, path in paths.items()
    }


def _check_charge(known: MetadataStore, storage: Storage) -> None:
    """Raise if other nodes share control, or the first records cannot be read.

    The store checks this too, but only after it has given new folders an identity.
    """
    known.check_charge()
    bootstrap = known.metadata_folder / BOOTSTRAP_CHECKPOINT
    if not has_cluster_log(known.metadata_folder / FOLDER) and bootstrap.exists():
        list(snapshot_records(storage, bootstrap))


def _check_ids(known: MetadataStore, found: Mapping[TopicPartition, _Found]) -> None:
    """Check that every folder has the topic id of the topic it is named after. Raises `BadDirectory`."""
    expected = {name: topic.id for name, topic in known.topics.items()}
    owners = {topic_id: name for name, topic_id in expected.items()}
    for partition, (path, topic_id, _) in found.items():
        if topic_id is None:
            continue
        wanted = expected.setdefault(partition.topic, topic_id)
        if topic_id != wanted:
            raise BadDirectory(
                path,
                f"it is of a topic with the id {write_uuid(topic_id)}, but {partition.topic} is {write_uuid(wanted)}: "
                "move one of them away",
            )
        owner = owners.setdefault(topic_id, partition.topic)
        if owner != partition.topic:
            raise BadDirectory(path, f"its topic has the id of {owner}, {write_uuid(topic_id)}: move one of them away")


def _check_partitions(known: MetadataStore, found: Mapping[TopicPartition, _Found]) -> None:
    """Check that the metadata assign every partition that was found to this node. Raises `BadDirectory`."""
    for partition, (path, _, _) in found.items():
        topic = known.topics.get(partition.topic)
        if topic is not None and not (
            partition.partition in topic.partitions and known.is_here(topic.partitions[partition.partition])
        ):
            raise BadDirectory(path, f"the metadata say that node {known.node_id} has no such partition: move it away")


def adopt(
    store: MetadataStore,
    storage: Storage,
    topic: str,
    found: Mapping[TopicPartition, Path],
    config: Mapping[str, str],
) -> None:
    """Add a topic that is missing from the metadata, with all partitions from 0 to its last one in `found`."""
    store.reserve_producer_ids(first_free_producer_id(storage, found, {topic}))
    _adopt(store, topic, _read(storage, {key: path for key, path in found.items() if key.topic == topic}), config)


def _adopt(store: MetadataStore, topic: str, found: Mapping[TopicPartition, _Found], config: Mapping[str, str]) -> None:
    partitions = {partition.partition: each for partition, each in found.items() if partition.topic == topic}
    last = max(partitions)
    if last >= _MOST_PARTITIONS:
        raise BadDirectory(partitions[last].path, "no topic has so many partitions: move it away")
    topic_id = next((each.topic_id for each in partitions.values() if each.topic_id), None) or random_uuid()
    epochs = dict.fromkeys(range(last + 1), 0)
    places = dict.fromkeys(epochs, partitions[min(partitions)].path.parent)
    for number, each in partitions.items():
        epochs[number] = max(each.last_epoch, 0)
        places[number] = each.path.parent
    store.adopt_topic(topic, epochs, config, topic_id, folders=list(places.values()))


def write_lost_ids(store: MetadataStore, storage: Storage, found: Mapping[TopicPartition, Path]) -> None:
    """Write a `partition.metadata` with the topic id into each folder that has none."""
    lost = {
        path: store.topics[partition.topic].id
        for partition, path in found.items()
        if read_topic_id(storage, path) is None
    }
    write_topic_ids(storage, lost)


def _set_partitions(store: MetadataStore, found: Mapping[TopicPartition, _Found]) -> tuple[TopicPartition, ...]:
    """Set the folder of each partition in the metadata, raise its leader epoch to that of the log, and resign."""
    changes: list[PartitionState] = []
    raised = []
    for topic in store.topics.values():
        for number, state in topic.partitions.items():
            new = state
            partition = TopicPartition(topic.name, number)
            if partition in found:
                path, _, last_epoch = found[partition]
                new = _in_folder(store, state, path.parent)
                if last_epoch > state.leader_epoch:
                    new = replace(new, leader_epoch=last_epoch)
                    raised.append(partition)
            new = _resigned(store, new)
            if new != state:
                changes.append(replace(new, partition_epoch=state.partition_epoch + 1))
    store.set_partitions(changes)
    return tuple(raised)


def _resigned(store: MetadataStore, state: PartitionState) -> PartitionState:
    """Return the state of a partition that this node no longer leads.

    A broker that finds itself the leader leads until its controller sees that it has not registered yet. If it has
    loaded a decided transaction by then, it takes the partitions for deleted, and may complete the transaction without
    its markers.
    """
    if state.leader != store.node_id:
        return state
    return replace(state, leader=_NO_LEADER, leader_epoch=state.leader_epoch + 1)


def _in_folder(store: MetadataStore, state: PartitionState, folder: Path) -> PartitionState:
    """Return the state of a partition, assigned to the folder in which it was found."""
    if len(state.directories) != len(state.replicas) or store.folder_of(state) == folder:
        return state
    directory_id = store.identity[folder].directory_id
    assert directory_id is not None
    assert store.node_id is not None
    at = state.replicas.index(store.node_id)
    return replace(state, directories=(*state.directories[:at], directory_id, *state.directories[at + 1 :]))


def _last_epoch(storage: Storage, folder: Path) -> int:
    """Return the latest leader epoch in a partition's log; -1 if there is none."""
    epochs = [entry.epoch for entry in read_epochs(storage, folder / LEADER_EPOCHS)]
    if epochs:
        return max(epochs)
    names = [path.name for path in folder.iterdir() if path.name.endswith(LOG)]
    last = max((name for name in names if base_offset_of(name) is not None), default=None)
    if last is None:
        return _NO_EPOCH
    file = storage.open(folder / last)
    found = _NO_EPOCH
    for entry in walk(file, 0, file.size()):
        epoch, magic = _EPOCH.unpack(file.read_at(_EPOCH.size, entry.position))
        found = max(found, epoch if magic == 2 else _NO_EPOCH)  # older formats have the checksum there
    return found


def _report(
    store: MetadataStore,
    folders: Sequence[Path],
    found: Mapping[TopicPartition, _Found],
    adopted: tuple[str, ...],
    raised: tuple[TopicPartition, ...],
) -> Handover:
    assert store.node_id is not None
    assert store.cluster_id is not None
    missing = [
        TopicPartition(topic.name, number)
        for topic in store.topics.values()
        for number, state in topic.partitions.items()
        if store.is_here(state) and TopicPartition(topic.name, number) not in found
    ]
    return Handover(
        folders=tuple(folders),
        node_id=store.node_id,
        cluster_id=store.cluster_id,
        topics={topic.name: len(topic.partitions) for topic in store.topics.values()},
        adopted=adopted,
        raised=raised,
        missing=tuple(missing),
        unclean=tuple(folder for folder in folders if not was_clean(folder)),
        settings=needed_settings(store, folders),
        differences=tuple(differences(store)),
    )

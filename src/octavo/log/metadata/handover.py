"""Handing a data directory over to Apache Kafka: `handover`.

A directory of ours is one of Kafka's at any time, as long as its metadata know every partition that is there. What
can be missing is made good, once the directory is locked:

    a partition that the metadata do not know         is added, under the id that it has, with `retention.ms=-1`: how
                                                      long it was to be kept is not known, and Kafka's default deletes
    a leader epoch, or folder, that is not the log's  is set
    a lost `partition.metadata`                       is written

What Kafka would not start on is refused, and left as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import UUID

from octavo.errors import BadDirectory
from octavo.log.checkpoint import read_epochs
from octavo.log.folder import find_partitions
from octavo.log.identity import random_uuid, write_uuid
from octavo.log.lock import DirectoryLock
from octavo.log.metadata.creation import CONTROLLER_PORT, LISTENER
from octavo.log.metadata.image import PartitionState
from octavo.log.metadata.store import MetadataStore
from octavo.log.names import LEADER_EPOCHS, LOG, META_PROPERTIES, TopicPartition, base_offset_of
from octavo.log.partition_metadata import read_topic_id, write_topic_id
from octavo.log.shutdown import was_clean
from octavo.log.storage import DISK, Storage
from octavo.log.walk import walk
from octavo.records.layout import BATCH_HEADER

KEPT_FOR_EVER: Final = {"retention.ms": "-1"}
_NO_EPOCH: Final = -1
_LISTENER_PORT: Final = 9092
_EPOCH: Final = BATCH_HEADER.only("leader_epoch", "magic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What was found and done, and what Kafka has to be told."""

    folders: tuple[Path, ...]
    node_id: int
    cluster_id: str
    topics: Mapping[str, int]  # how many partitions each topic has
    adopted: tuple[str, ...]  # topics that the metadata did not know
    raised: tuple[TopicPartition, ...]  # partitions whose leader epoch was behind their log
    missing: tuple[TopicPartition, ...]  # partitions without a folder: Kafka makes them, empty
    unclean: tuple[Path, ...]  # folders that were not closed in good order: Kafka checks their logs when it starts
    settings: Mapping[str, str]  # for server.properties


def handover(folders: Sequence[Path], *, storage: Storage = DISK) -> Handover:
    """Makes the directory in `folders` one that a stock Apache Kafka 4.x starts on and serves.

    Raises `DirectoryLocked`, `BadDirectory`, `CorruptFile` and `OSError` where that cannot be.
    """
    with ExitStack() as locks:
        for folder in folders:
            if not folder.is_dir():
                raise BadDirectory(folder, "there is no such folder")
            locks.enter_context(DirectoryLock.acquire(folder, storage))
        found = _find(folders)
        ids = {partition: read_topic_id(storage, path) for partition, path in found.items()}
        if not found and not any((folder / META_PROPERTIES).exists() for folder in folders):
            raise BadDirectory(folders[0], "there is nothing in it that could be handed over")
        _check_ids(MetadataStore.open(folders, storage=storage, read_only=True), found, ids)
        store = MetadataStore.open(folders, storage=storage, read_only=False)
        strangers = sorted({topic for topic, _ in found} - store.topics.keys())
        for topic in strangers:
            adopt(store, storage, topic, found, KEPT_FOR_EVER)
        write_lost_ids(store, storage, found)
        raised = _set_partitions(store, storage, found)
        return _report(store, folders, found, tuple(strangers), raised)


def _find(folders: Sequence[Path]) -> dict[TopicPartition, Path]:
    found: dict[TopicPartition, Path] = {}
    for folder in folders:
        for partition, path in find_partitions(folder, strict=True).items():
            other = found.setdefault(partition, path)
            if other != path:
                raise BadDirectory(path, f"the same partition is in {other.parent}: only one of them can be right")
    return found


def _check_ids(
    store: MetadataStore, found: Mapping[TopicPartition, Path], ids: Mapping[TopicPartition, UUID | None]
) -> None:
    """Every folder belongs to the topic that has its name, and is one of its partitions."""
    expected = {name: topic.id for name, topic in store.topics.items()}
    for partition, topic_id in ids.items():
        if topic_id is None:
            continue
        wanted = expected.setdefault(partition.topic, topic_id)
        if topic_id != wanted:
            raise BadDirectory(
                found[partition],
                f"it is of a topic with the id {write_uuid(topic_id)}, but {partition.topic} is {write_uuid(wanted)}: "
                "move one of them away",
            )
    for partition in found:
        topic = store.topics.get(partition.topic)
        if topic is not None and not (
            partition.partition in topic.partitions and store.is_here(topic.partitions[partition.partition])
        ):
            raise BadDirectory(
                found[partition], f"the metadata say that node {store.node_id} has no such partition: move it away"
            )


def adopt(
    store: MetadataStore,
    storage: Storage,
    topic: str,
    found: Mapping[TopicPartition, Path],
    config: Mapping[str, str],
) -> None:
    """Adds a topic that the metadata do not know, from its first partition to the last that was `found`."""
    paths = {partition.partition: path for partition, path in found.items() if partition.topic == topic}
    known = (read_topic_id(storage, path) for path in paths.values())
    topic_id = next(filter(None, known), None) or random_uuid()
    epochs = dict.fromkeys(range(max(paths) + 1), 0)
    places = dict.fromkeys(epochs, store.metadata_folder)
    for number, path in paths.items():
        epochs[number] = max(_last_epoch(storage, path), 0)
        places[number] = path.parent
    store.adopt_topic(topic, epochs, config, topic_id, folders=list(places.values()))


def write_lost_ids(store: MetadataStore, storage: Storage, found: Mapping[TopicPartition, Path]) -> None:
    """Writes the topic's id into the folders of partitions that lost it."""
    for partition, path in found.items():
        if read_topic_id(storage, path) is None:
            write_topic_id(storage, path, store.topics[partition.topic].id)


def _set_partitions(
    store: MetadataStore, storage: Storage, found: Mapping[TopicPartition, Path]
) -> tuple[TopicPartition, ...]:
    """Has the metadata say what is: the folder and, at least, the leader epoch of each partition."""
    changes: list[PartitionState] = []
    raised = []
    for partition, path in found.items():
        state = store.topics[partition.topic].partitions[partition.partition]
        new = _in_folder(store, state, path.parent)
        epoch = _last_epoch(storage, path)
        if epoch > state.leader_epoch:
            new = replace(new, leader_epoch=epoch)
            raised.append(partition)
        if new != state:
            changes.append(replace(new, partition_epoch=state.partition_epoch + 1))
    store.set_partitions(changes)
    return tuple(raised)


def _in_folder(store: MetadataStore, state: PartitionState, folder: Path) -> PartitionState:
    """The partition, assigned to the folder where it is."""
    if len(state.directories) != len(state.replicas) or store.folder_of(state) == folder:
        return state
    directory_id = store.identity[folder].directory_id
    assert directory_id is not None
    assert store.node_id is not None
    at = state.replicas.index(store.node_id)
    return replace(state, directories=(*state.directories[:at], directory_id, *state.directories[at + 1 :]))


def _last_epoch(storage: Storage, folder: Path) -> int:
    """The epoch of the leader that wrote last; -1 where there is none."""
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
        found = max(found, epoch if magic == 2 else _NO_EPOCH)  # in older formats the checksum stands there
    return found


def _report(
    store: MetadataStore,
    folders: Sequence[Path],
    found: Mapping[TopicPartition, Path],
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
        settings=_settings(store, folders),
    )


def _settings(store: MetadataStore, folders: Sequence[Path]) -> dict[str, str]:
    """What server.properties need, for one node that clients on this machine reach."""
    controller = f"localhost:{CONTROLLER_PORT}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(store.node_id),
        "log.dirs": ",".join(str(folder.resolve()) for folder in folders),
        "metadata.log.dir": str(store.metadata_folder.resolve()),
        "listeners": f"PLAINTEXT://localhost:{_LISTENER_PORT},{LISTENER}://{controller}",
        "controller.listener.names": LISTENER,
    }
    if store.image.kraft_version:
        settings["controller.quorum.bootstrap.servers"] = controller
    else:
        settings["controller.quorum.voters"] = f"{store.node_id}@{controller}"
    for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        settings[f"{name}.replication.factor"] = "1"
    for name in ("transaction.state.log", "share.coordinator.state.topic"):
        settings[f"{name}.min.isr"] = "1"
    return settings

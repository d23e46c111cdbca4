"""Open a single partition, inside or outside a data directory. `Log.open` uses this."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octavo.errors import BadDirectory, FormatError
from octavo.log.clock import Clock
from octavo.log.config.broker_defaults import UNKNOWN, BrokerDefaults, TopicConfig
from octavo.log.config.log_config import LogConfig
from octavo.log.directory.data_folder import DataFolder, abandon
from octavo.log.files.partition_metadata import read_topic_id
from octavo.log.log import Log
from octavo.log.names import TopicPartition
from octavo.log.partition_folders import METADATA_PARTITION
from octavo.log.recovery.recover import Recover
from octavo.log.recovery_report import OnProgress
from octavo.log.storage import Storage
from octavo.log.watched.warnings import warn_of_hidden_records, warn_of_unreadable_metadata
from octavo.log.watched.watched_log import WatchedLog

if TYPE_CHECKING:
    from octavo.log.metadata import MetadataStore, PartitionState, Topic


def open_partition(
    path: Path,
    config: LogConfig | None,
    *,
    storage: Storage,
    clock: Clock,
    may_have_gaps: bool,
    even_if_replicated: bool,
    on_progress: OnProgress | None,
    recover: Recover,
) -> Log:
    """Open the log of the partition at `path` for writing."""
    partition = _partition_at(path)
    if partition == METADATA_PARTITION:
        raise BadDirectory(path, "the log of Kafka's metadata is written by Kafka and DataDirectory alone")
    check_no_file(path)
    folder = DataFolder(path.parent, storage)
    folder.recover = recover
    try:
        metadata = _read_metadata(path.parent, storage)
        topic = metadata.topics.get(partition.topic)
        state = None if topic is None else topic.partitions.get(partition.partition)
        known = _config(metadata, topic, config)
        if partition in folder.partitions:
            check_topic_id(path, topic, storage)
            folder.check(partition, may_have_gaps=may_have_gaps or known.may_be_compacted)
        elif metadata.identity:
            _check_place(metadata, path, state)
        if not even_if_replicated:
            metadata.check_charge()
        folder.begin()
        is_new = partition not in folder.partitions
        if is_new:
            folder.make_partitions([partition], None if topic is None else topic.id)
        log = folder.open_log(
            partition,
            known,
            leader_epoch=0 if state is None else state.leader_epoch,
            is_only_replica=metadata.others_decide() is None,
            clock=clock,
            on_progress=on_progress,
            is_for_log=True,
            is_new=is_new,
        )
    except BaseException as error:
        abandon([folder], error)
        raise
    log.recovery.ignored.extend(folder.checkpoints.ignored)
    return log


def watch_partition(path: Path, config: LogConfig | None, *, storage: Storage) -> WatchedLog:
    """Open the log of the partition at `path` for reading only, even while another process writes to it."""
    partition = _partition_at(path)
    if config is None:
        try:
            metadata = _read_metadata(path.parent, storage)
            config = _config(metadata, metadata.topics.get(partition.topic), None).config
        except (BadDirectory, FormatError) as error:
            warn_of_unreadable_metadata(error)
            config = UNKNOWN.config
    log = WatchedLog(storage, path, partition, config)
    warn_of_hidden_records(log)
    return log


def check_topic_id(path: Path, topic: Topic | None, storage: Storage) -> None:
    """Check that the folder belongs to this topic, not to another one of the same name. Raises `BadDirectory`."""
    topic_id = read_topic_id(storage, path)
    if topic is not None and topic_id not in (None, topic.id):
        raise BadDirectory(path, f"it belongs to another topic of this name, with the id {topic_id}")


def check_no_file(path: Path) -> None:
    """Check that the path of a partition's folder is not a file. Raises `BadDirectory`."""
    if path.exists() and not path.is_dir():
        raise BadDirectory(path, "this should be the folder of a partition, and is a file")


def _check_place(metadata: MetadataStore, path: Path, state: PartitionState | None) -> None:
    """Check that the metadata place the partition in this folder of this node. Raises `BadDirectory`."""
    if state is None:
        raise BadDirectory(
            path,
            "the metadata of this directory know no such partition: make the topic with DataDirectory.create_topic",
        )
    if not metadata.is_here(state) or (state.directories and metadata.folder_of(state) != path.parent):
        raise BadDirectory(path, "the metadata of this directory have the partition in another folder, or another node")


def _partition_at(path: Path) -> TopicPartition:
    partition = TopicPartition.parse(path.name)
    if partition is None:
        raise BadDirectory(path, "the folder of a partition is named after its topic and number, as in events-0")
    if not path.parent.is_dir():
        raise BadDirectory(path, "there is no such folder, and none to make it in")
    return partition


def _config(metadata: MetadataStore, topic: Topic | None, given: LogConfig | None) -> TopicConfig:
    """Return the configuration given by the caller, or else the one in the directory's metadata."""
    if given is not None:
        return TopicConfig(given, is_known=True, may_be_compacted=given.is_compacted)
    return BrokerDefaults(metadata).config_of(topic)


def _read_metadata(folder: Path, storage: Storage) -> MetadataStore:
    from octavo.log.metadata import MetadataStore

    return MetadataStore.open([folder], storage=storage, read_only=True)

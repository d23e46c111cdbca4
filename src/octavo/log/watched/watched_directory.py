"""Read a data directory that another process writes, Octavo or Apache Kafka, without a lock and without changing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.errors import BadDirectory, FormatError, NoSegments, NotReady, UnknownPartition
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.closing import ClosedByWith
from octavo.log.config.broker_defaults import UNKNOWN, BrokerDefaults
from octavo.log.config.log_config import LogConfig
from octavo.log.files.meta_properties import check_one_node, read_meta_properties
from octavo.log.names import TopicPartition
from octavo.log.partition_folders import METADATA_PARTITION, find_partitions
from octavo.log.storage import Storage
from octavo.log.watched.warnings import (
    warn_of_directories_inside,
    warn_of_hidden_records,
    warn_of_remote_part,
    warn_of_unreadable_metadata,
)
from octavo.log.watched.watched_log import WatchedLog

if TYPE_CHECKING:
    from octavo.log.metadata import MetadataStore, Topic


class WatchedDirectory(ClosedByWith):
    """A data directory that is only read. `DataDirectory.open` returns it."""

    def __init__(self, folders: Sequence[Path], storage: Storage) -> None:
        """Check the folders. Raises `BadDirectory` if one is missing, or if they do not belong to one node."""
        for folder in folders:
            if not folder.is_dir():
                raise BadDirectory(folder, "there is no such folder")
        if len(folders) > 1:
            whose = {folder: read_meta_properties(storage, folder) for folder in folders}
            check_one_node({folder: identity for folder, identity in whose.items() if identity is not None})
        self._checkpoints: Final = {folder: WatchedCheckpoints(storage, folder) for folder in folders}
        self._storage = storage
        self._logs: dict[TopicPartition, WatchedLog] = {}
        self._known: dict[str, tuple[BrokerDefaults, Topic | None]] = {}
        self._problem = ""  # the last problem with the metadata that was reported
        warn_of_directories_inside(folders)

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics by name, read from the metadata now."""
        return self._read_metadata().topics

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions that exist now."""
        return sorted(partition for folder in self._checkpoints for partition in find_partitions(folder))

    def log(self, topic: str, partition: int) -> WatchedLog:
        """Return a partition's log as it is now.

        Raises `UnknownPartition`, `NotReady`, and the errors of `WatchedLog`.
        """
        wanted = TopicPartition(topic, partition)
        try:
            return self._log(wanted)
        except NoSegments:
            self._logs.pop(wanted, None)  # the partition was deleted, and is being created again
            raise NotReady(f"{wanted} is being made: it has no segment yet") from None

    def _log(self, wanted: TopicPartition) -> WatchedLog:
        topic, partition = wanted
        log = self._logs.get(wanted)
        if log is not None:
            log.refresh()
            return log
        if wanted.problem is None and wanted != METADATA_PARTITION:
            for folder, checkpoints in self._checkpoints.items():
                path = folder / wanted.folder
                if path.is_dir():
                    config = self._config(topic)
                    log = WatchedLog(self._storage, path, wanted, config, checkpoints)
                    warn_of_hidden_records(log)
                    warn_of_remote_part(log.remote_part(partial(bool, config.remote_storage_enable)))
                    return self._logs.setdefault(wanted, log)
        raise UnknownPartition(f"there is no partition {partition} of a topic {topic!r}")

    def close(self) -> None:
        """Close all files."""
        for log in list(self._logs.values()):
            log.close()
        self._logs.clear()

    def _config(self, topic: str) -> LogConfig:
        """Return a topic's configuration. The metadata are read once, and again for each topic that they lacked.

        If the metadata are unreadable, warn once and return the defaults: a log can be read without metadata.
        """
        if topic not in self._known:
            try:
                metadata = self._read_metadata()
            except (BadDirectory, FormatError) as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    warn_of_unreadable_metadata(error)
                return UNKNOWN.config
            defaults = BrokerDefaults(metadata)
            self._known |= {name: (defaults, found) for name, found in {topic: None, **metadata.topics}.items()}
        defaults, found = self._known[topic]
        return defaults.config_of(found).config

    def _read_metadata(self) -> MetadataStore:
        from octavo.log.metadata import MetadataStore

        return MetadataStore.open(list(self._checkpoints), storage=self._storage, read_only=True)

"""Create, change and delete the topics of a data directory: `Topics`.

A topic is added to the metadata before the folders of its partitions are made, and removed from the metadata before its
folders are deleted. A topic is created completely or not at all. An exception may interrupt a change at any point, so
the name of the topic is noted before the change begins, and the note is removed last. The next change first settles
what a note tells of: it undoes a creation, and finishes a deletion, or the creation of more partitions.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from octavo.errors import OctavoError, TopicExists, UnknownPartition
from octavo.log.clock import Clock
from octavo.log.closing import Attempts
from octavo.log.config.broker_defaults import BROKER_RESOURCE, BrokerDefaults
from octavo.log.config.log_config import LogConfig
from octavo.log.directory.data_folder import DataFolder
from octavo.log.files.partition_metadata import read_topic_id, write_topic_ids
from octavo.log.names import PARTITION_METADATA, TopicPartition
from octavo.log.recovery_report import OnProgress
from octavo.log.storage import Storage, is_full

if TYPE_CHECKING:
    from octavo.log.metadata import MetadataStore, Topic
    from octavo.log.metadata.image import PartitionState
    from octavo.log.metadata.sorted_map import SortedMap


class Topics:
    """The topics of one data directory, in its metadata and its folders. Callers hold the directory's lock."""

    def __init__(
        self,
        folders: Sequence[DataFolder],
        metadata: MetadataStore,
        defaults: BrokerDefaults,
        *,
        is_in_charge: bool,
        storage: Storage,
        clock: Clock,
        on_progress: OnProgress | None,
    ) -> None:
        self._folders = folders
        self._metadata = metadata
        self._defaults = defaults
        self._is_in_charge = is_in_charge
        self._storage = storage
        self._clock = clock
        self._on_progress = on_progress
        self._half_made: str | None = None  # a topic that is being created
        self._end_before = 0  # the end of the metadata before that
        self._half_deleted: str | None = None  # a topic that is being deleted
        self._half_grown: str | None = None  # a topic that is getting more partitions

    @property
    def complete(self) -> SortedMap[str, Topic]:
        """All topics by name, without one whose creation failed, and which could not be removed from the metadata."""
        topics = self._metadata.topics
        half_made = self._half_made
        return topics if half_made is None else topics.without(half_made)

    @property
    def version(self) -> int:
        """A number that grows when `complete` has changed: the end of the metadata log, when that was so."""
        end = self._metadata.end_offset
        return end if self._half_made is None else self._end_before

    # ----------------------------------------------------------------------------------------------------- partitions

    def open_logs(self) -> None:
        """Open the logs of all partitions, and finish the creation of topics that are in the metadata."""
        for folder in self._folders:
            folder.begin()
            if self._is_in_charge and not folder.was_clean:
                self._finish_deletions(folder)
            for partition in folder.partitions:
                self._open_log(folder, partition)
        if not self._is_in_charge:
            return
        with _if_there_is_room():
            self._write_lost_ids()
        for topic in self._metadata.topics.values():
            with _if_there_is_room():
                self._make_partitions(topic)

    def _finish_deletions(self, folder: DataFolder) -> None:
        """Put away the partitions of topics whose deletion a crash has interrupted, and drop their checkpoints.

        Their names would be taken for ever. Folders that only look abandoned stay: they may be meant to be adopted.
        """
        image, topics = self._metadata.image, self._metadata.topics
        gone = [
            partition
            for partition, path in folder.partitions.items()
            if partition.topic not in topics
            and (topic_id := read_topic_id(self._storage, path)) is not None
            and image.was_removed(topic_id)
        ]
        if gone:
            folder.put_away(gone, self._clock())
        folder.checkpoints.forget(
            partition
            for partition in folder.checkpoints.partitions - folder.partitions.keys()
            if partition.topic not in topics or partition.partition not in topics[partition.topic].partitions
        )

    def _write_lost_ids(self) -> None:
        """Record the topic's id in folders that lack it, because a crash has interrupted the creation of the topic."""
        topics = self._metadata.topics
        lost = {
            path: topics[partition.topic].id
            for folder in self._folders
            for partition, path in folder.partitions.items()
            if partition.topic in topics and not (path / PARTITION_METADATA).exists()
        }
        write_topic_ids(self._storage, lost)

    def _open_log(self, folder: DataFolder, partition: TopicPartition, *, is_new: bool = False) -> None:
        topic = self._metadata.topics.get(partition.topic)
        state = None if topic is None else topic.partitions.get(partition.partition)
        folder.open_log(
            partition,
            self._defaults.config_of(topic),
            leader_epoch=0 if state is None else state.leader_epoch,
            is_only_replica=self._is_in_charge,
            clock=self._clock,
            on_progress=self._on_progress,
            is_new=is_new,
        )

    def lead_all(self) -> None:
        """Make this node the leader of its partitions, as `DataDirectory.lead_all` describes."""
        node_id = self._metadata.node_id
        if not self._is_in_charge or node_id is None:
            return
        changes: dict[TopicPartition, PartitionState] = {}
        for partition in (each for folder in self._folders for each in folder.partitions):
            topic = self._metadata.topics.get(partition.topic)
            state = None if topic is None else topic.partitions.get(partition.partition)
            if state is not None and state.leader != node_id and node_id in state.replicas:
                changes[partition] = replace(
                    state,
                    leader=node_id,
                    isr=(node_id,),
                    leader_epoch=state.leader_epoch + 1,
                    partition_epoch=state.partition_epoch + 1,
                )
        self._metadata.set_partitions(changes.values())
        for folder in self._folders:
            for partition in changes.keys() & folder.partitions.keys():
                folder.logs[partition].become_leader(changes[partition].leader_epoch)

    def _make_partitions(self, topic: Topic) -> None:
        """Make the partitions of a topic that are in no folder and that the metadata place in one of these folders.

        Either all of them are made, or none. Raises `OSError`.
        """
        missing = [
            TopicPartition(topic.name, number)
            for number in topic.partitions
            if not any(TopicPartition(topic.name, number) in folder.partitions for folder in self._folders)
        ]
        if not missing:
            return
        paths = self._metadata.new_folders_of(topic.partitions[partition.partition] for partition in missing)
        made: list[tuple[DataFolder, TopicPartition]] = []
        try:
            for folder in self._folders:
                partitions = [partition for partition, path in zip(missing, paths, strict=True) if path == folder.path]
                if partitions:
                    folder.make_partitions(partitions, topic.id)
                    made += [(folder, partition) for partition in partitions]
            for folder, partition in made:
                self._open_log(folder, partition, is_new=True)
        except OSError:
            for folder, partition in made:
                folder.take_back([partition])
            raise

    def _partitions_of(self, name: str) -> list[tuple[DataFolder, TopicPartition]]:
        return [(folder, partition) for folder in self._folders for partition in folder.partitions.of_topic(name)]

    # --------------------------------------------------------------------------------------------------------- topics

    def create(self, name: str, partitions: int, config: Mapping[str, str], topic_id: uuid.UUID | None) -> Topic:
        """Create a topic. Raises `TopicExists`."""
        if name in self._metadata.topics:
            raise TopicExists(f"there is a topic {name!r} already")
        if self._partitions_of(name):
            raise TopicExists(f"there are partitions of a topic {name!r}, which the metadata does not know")
        self._end_before = self._metadata.end_offset
        self._half_made = name  # only after these checks: `settle` deletes all its partitions
        try:
            topic = self._metadata.create_topic(name, partitions, config, topic_id)
            self._make_partitions(topic)
        except BaseException:
            with contextlib.suppress(OSError):  # if the disk is full, the next change tries again
                self.settle()
            raise
        self._half_made = None
        return topic

    def add_partitions(self, name: str, count: int) -> Topic:
        """Give a topic more partitions, `count` in all. Raises `UnknownPartition`.

        Once the metadata have them they stay: if their folders cannot be made now, a later change makes them.
        """
        if name not in self._metadata.topics:
            raise UnknownPartition(f"there is no topic {name!r}")
        self._half_grown = name
        topic = self._metadata.add_partitions(name, count)
        self._make_partitions(topic)
        self._half_grown = None
        return topic

    def delete(self, name: str) -> None:
        """Delete a topic and all its records. Raises `UnknownPartition`."""
        if name not in self._metadata.topics:
            raise UnknownPartition(f"there is no topic {name!r}")
        self._half_deleted = name
        try:
            self._metadata.delete_topic(name)
            self._put_away(name)
        except (OctavoError, OSError):
            self._half_deleted = None  # whatever could be deleted is deleted
            raise
        self._half_deleted = None

    def _put_away(self, name: str) -> None:
        """Rename the folders of a topic's partitions for deletion. If one cannot be renamed, the others still are."""
        attempts = Attempts()
        for folder in self._folders:
            with attempts:
                folder.put_away(folder.partitions.of_topic(name), self._clock())
        attempts.finish()

    def settle(self) -> None:
        """Undo the creation of a topic that an exception has interrupted, and finish other interrupted changes."""
        self._metadata.settle()
        if self._half_grown is not None:
            topic = self._metadata.topics.get(self._half_grown)
            with _if_there_is_room():
                if topic is not None:
                    self._make_partitions(topic)
                self._half_grown = None
        if self._half_made is not None:
            if self._half_made in self._metadata.topics:
                self._metadata.delete_topic(self._half_made)
            self._put_away(self._half_made)
            self._half_made = None
        if self._half_deleted is not None:
            if self._half_deleted not in self._metadata.topics:
                self._put_away(self._half_deleted)
            self._half_deleted = None

    # -------------------------------------------------------------------------------------------------- configuration

    def set_config(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change a topic's configuration, as `DataDirectory.set_config` describes."""
        if name not in self._metadata.topics:
            self._adopt(name, {key: value for key, value in config.items() if value is not None})
        merged = {**self._metadata.topics[name].config, **config}
        LogConfig.from_properties({key: value for key, value in merged.items() if value is not None})
        if "cleanup.policy" in config:
            for folder, partition in self._partitions_of(name):
                folder.prepare_policy(partition)
        self._metadata.set_config(name, config)
        changed = self._defaults.config_of(self._metadata.topics[name])
        for folder, partition in self._partitions_of(name):
            folder.set_config(partition, changed)

    def set_broker_config(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change the configuration of a broker, as `DataDirectory.set_broker_config` describes."""
        self._defaults.check(name, config)
        partitions = [(folder, partition) for folder in self._folders for partition in folder.partitions]
        if "log.cleanup.policy" in config:
            for folder, partition in partitions:
                folder.prepare_policy(partition)
        self._metadata.set_resource_config(BROKER_RESOURCE, name, config)
        self._defaults.refresh()
        for folder, partition in partitions:
            folder.set_config(partition, self._defaults.config_of(self._metadata.topics.get(partition.topic)))

    def _adopt(self, name: str, config: Mapping[str, str]) -> None:
        """Add a topic that has partitions but is missing from the metadata. Raises `UnknownPartition`."""
        from octavo.log.metadata.handover import adopt, write_lost_ids

        found = {partition: folder.partitions[partition] for folder, partition in self._partitions_of(name)}
        if not found:
            raise UnknownPartition(f"there is no topic {name!r}")
        LogConfig.from_properties(config)
        adopt(self._metadata, self._storage, name, found, config)
        write_lost_ids(self._metadata, self._storage, found)
        self._make_partitions(self._metadata.topics[name])


@contextlib.contextmanager
def _if_there_is_room() -> Iterator[None]:
    """Go on if the disk is full: a directory is perhaps opened just to delete something.

    What is missing is made when the directory is next opened. Until then, partitions without a folder do not exist.
    """
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise

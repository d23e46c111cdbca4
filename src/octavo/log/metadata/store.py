"""The metadata of a data directory: `MetadataStore`.

An Octavo directory stores them as Kafka does: `meta.properties` in each folder, and a metadata log in one of them, to
which records are appended. So nothing needs converting, in either direction. Octavo reads what Kafka wrote. Kafka
continues with what Octavo appended, as if its own controller had written it before it stopped.

Only the node of a single-node cluster may append to the metadata log. If there are other nodes, topics can be read but
not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self
from uuid import UUID

from octavo.errors import BadDirectory, InvalidInput, LogError, OthersDecide
from octavo.log.clock import Clock, wall_clock_ms
from octavo.log.files.meta_properties import MetaProperties, random_uuid, write_uuid
from octavo.log.metadata.authority import others_decide, owner_of
from octavo.log.metadata.cluster_log import (
    DIRECTORIES_VERSION,
    FOLDER,
    ClusterLog,
    has_cluster_log,
    read_cluster_log,
    snapshot_records,
)
from octavo.log.metadata.creation import FEATURES, create_cluster_log
from octavo.log.metadata.identities import Identities
from octavo.log.metadata.image import TOPIC_RESOURCE, Image, PartitionState, Topic
from octavo.log.metadata.placement import Placement
from octavo.log.metadata.sorted_map import SortedMap
from octavo.log.metadata.topic_survey import TopicSurvey
from octavo.log.metadata.used_producer_ids import PRODUCER_IDS
from octavo.log.names import BOOTSTRAP_CHECKPOINT, META_PROPERTIES, check_topic_name
from octavo.log.storage import Storage
from octavo.records.layout import MAX_INT64
from octavo.schemas.metadata.progress import ProducerIdsRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import UnknownRecord
from octavo.schemas.metadata.topics import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

FIRST_NODE: Final = 1
_NO_TOPICS: Final[SortedMap[str, Topic]] = SortedMap()


class MetadataStore:
    """The topics of a directory: their ids, partitions and configurations. For one thread at a time; `close` it."""

    def __init__(
        self, folders: Sequence[Path], *, storage: Storage, read_only: bool, clock: Clock, new_node_id: int
    ) -> None:
        """Do not call this; use `open`."""
        self._new_node_id = new_node_id
        self._folders = tuple(folders)
        self._storage = storage
        self._read_only = read_only
        self._clock = clock
        self._whose = Identities(storage, folders)
        self.metadata_folder: Final = _metadata_folder(folders)  # folder of the metadata log, existing or future
        self._log = self._read_log()
        self._surveyed = TopicSurvey()

    def _read_log(self) -> ClusterLog | None:
        folder = self.metadata_folder / FOLDER
        return read_cluster_log(self._storage, folder) if has_cluster_log(folder) else None

    @classmethod
    def open(
        cls,
        folders: Sequence[Path],
        *,
        storage: Storage,
        read_only: bool,
        clock: Clock = wall_clock_ms,
        new_node_id: int = FIRST_NODE,
    ) -> Self:
        """Open the metadata of one data directory, in one or several existing folders.

        For writing, the caller must hold the locks of the folders. Folders without an identity get one, and a new
        directory gets its metadata log and `new_node_id`. Raises `BadDirectory` and `CorruptFile` if the folders do
        not belong to one node, or cannot be read.
        """
        if not folders:
            raise InvalidInput("a data directory has at least one folder")
        store = cls(folders, storage=storage, read_only=read_only, clock=clock, new_node_id=new_node_id)
        if not read_only:
            store._complete()
        return store

    def close(self) -> None:
        """Do nothing: every change is on the disk when its call returns."""

    # Reading

    @property
    def topics(self) -> SortedMap[str, Topic]:
        """All topics by name. Any thread may ask for them."""
        return _NO_TOPICS if self._log is None else self._log.topics

    @property
    def image(self) -> Image:
        """The state of the cluster; empty if there is no metadata log."""
        return Image() if self._log is None else self._log.image

    @property
    def identity(self) -> Mapping[Path, MetaProperties]:
        """The contents of `meta.properties` of each folder that has one."""
        return self._whose.known

    @property
    def node_id(self) -> int | None:
        """The id of the node that owns the directory."""
        return None if self._whose.any is None else self._whose.any.node_id

    @property
    def cluster_id(self) -> str | None:
        """The id of the node's cluster."""
        return None if self._whose.any is None else self._whose.any.cluster_id

    def is_here(self, partition: PartitionState) -> bool:
        """Return whether this node has a replica of the partition."""
        return self.node_id in partition.replicas

    def folder_of(self, partition: PartitionState) -> Path | None:
        """Return the folder that the partition is assigned to; None if the metadata name none of these folders."""
        directory = self._directory_of(partition)
        return None if directory is None else self._whose.folder_of(directory)

    @property
    def placement(self) -> Placement:
        """The rules that choose the folders of new partitions."""
        broker = None if self.node_id is None else self.image.brokers.get(self.node_id)
        return Placement(self._folders, self.metadata_folder, self._whose, broker)

    def new_folders_of(self, partitions: Iterable[PartitionState]) -> list[Path | None]:
        """Return the folder in which to create each partition; None if it belongs on another node or another disk.

        Raises `BadDirectory` if all folders hold metadata alone.
        """
        placement = self.placement
        return [
            placement.folder_for(self._directory_of(partition)) if self.is_here(partition) else None
            for partition in partitions
        ]

    def _directory_of(self, partition: PartitionState) -> UUID | None:
        """Return the id of the directory on this node that the partition is assigned to; None if it is not known."""
        if not self.is_here(partition) or len(partition.directories) != len(partition.replicas):
            return None
        assert self.node_id is not None
        return partition.directories[partition.replicas.index(self.node_id)]

    @property
    def leader_epoch(self) -> int:
        """The epoch in which this node leads the metadata log."""
        return 0 if self._log is None else self._log.leader_epoch

    @property
    def end_offset(self) -> int:
        """The offset after the last record of the metadata log."""
        return 0 if self._log is None else self._log.next_offset

    def others_decide(self) -> str | None:
        """Return why this node does not control its partitions alone; None if it does (see `authority`)."""
        return others_decide(self._storage, self.metadata_folder, self._whose.any, self._log, self._survey().shared)

    def _survey(self) -> TopicSurvey:
        """Return what is known of all topics together."""
        node_id = owner_of(self._whose.any, self.image)
        self._surveyed = self._surveyed.after(self.topics, node_id, self.folder_of)
        return self._surveyed

    # Changing

    def create_topic(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str],
        topic_id: UUID | None = None,
        *,
        folders: Sequence[Path] | None = None,
    ) -> Topic:
        """Create a topic whose partitions this node leads. `folders` has the folder of each partition, if given.

        Raises `InvalidInput`, `BadDirectory` if other nodes share control, and `OSError`; then nothing has changed.
        """
        if partitions < 1:
            raise InvalidInput(f"a topic has at least one partition, not {partitions}")
        return self.adopt_topic(name, dict.fromkeys(range(partitions), 0), config, topic_id, folders=folders)

    def adopt_topic(
        self,
        name: str,
        leader_epochs: Mapping[int, int],
        config: Mapping[str, str],
        topic_id: UUID | None = None,
        *,
        folders: Sequence[Path] | None = None,
    ) -> Topic:
        """Add a topic for partitions that exist already, each with its leader epoch. Raises as `create_topic`."""
        check_topic_name(name)
        topic_id = random_uuid() if topic_id is None else topic_id
        if name in self.topics or self.image.has_topic_id(topic_id):
            raise InvalidInput(f"there is a topic {name!r}, or one with the id {write_uuid(topic_id)}, already")
        node_id = self._take_charge()
        directories = (
            self._new_directories(len(leader_epochs))
            if folders is None
            else list(map(self._whose.directory_of, folders))
        )
        records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id)]
        records += _config_records(name, config)
        for (number, leader_epoch), directory in zip(sorted(leader_epochs.items()), directories, strict=True):
            records.append(self._partition_record(topic_id, number, node_id, leader_epoch, directory))
        self._append(records)
        return self.topics[name]

    def add_partitions(self, name: str, count: int) -> Topic:
        """Give a topic more partitions, `count` in all, which this node leads. Raises as `create_topic`."""
        topic = self._topic(name)
        node_id = self._take_charge()
        numbers = range(len(topic.partitions), count)
        if not numbers:
            raise InvalidInput(f"topic {name!r} has {len(topic.partitions)} partitions already")
        directories = self._new_directories(len(numbers))
        self._append(
            [
                self._partition_record(topic.id, number, node_id, 0, directory)
                for number, directory in zip(numbers, directories, strict=True)
            ]
        )
        return self.topics[name]

    def _partition_record(
        self, topic_id: UUID, number: int, node_id: int, leader_epoch: int, directory: UUID
    ) -> PartitionRecord:
        """Return the record of a new partition that this node has the only replica of."""
        return PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=(node_id,),
            isr=(node_id,),
            removing_replicas=(),
            adding_replicas=(),
            leader=node_id,
            leader_epoch=leader_epoch,
            partition_epoch=0,
            directories=(directory,) if self.image.metadata_version >= DIRECTORIES_VERSION else (),
        )

    def delete_topic(self, name: str) -> None:
        """Remove a topic from the metadata; the caller removes its folders. Raises as `create_topic`."""
        topic = self._topic(name)
        self._take_charge()
        self._append([RemoveTopicRecord(topic_id=topic.id)])

    def set_config(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change a topic's configuration; None removes a value. Raises as `create_topic`."""
        self._topic(name)
        self._take_charge()
        if config:
            self._append(_config_records(name, config))

    def set_resource_config(self, resource_type: int, name: str, config: Mapping[str, str | None]) -> None:
        """Change the configuration of a resource that is not a topic, such as a broker. Raises as `create_topic`."""
        self._take_charge()
        if config:
            self._append(_config_records(name, config, resource_type))

    def change_cluster(self, records: Sequence[MetadataRecord]) -> None:
        """Append records that concern the cluster as a whole, such as quotas. Raises as `create_topic`."""
        self._take_charge()
        if records:
            self._append(records)

    def set_partitions(self, partitions: Iterable[PartitionState]) -> None:
        """Replace the state of these partitions. Raises as `create_topic`."""
        self._take_charge()
        records = list(partitions)
        if records:
            self._append(records)

    def allocate_producer_ids(self, at_least: int = 0) -> range:
        """Return a block of producer ids that neither Octavo nor Kafka gives out again. Raises as `create_topic`.

        `at_least` is the first id that is free according to the logs.
        """
        self._take_charge()
        first = max(self.image.next_producer_id, at_least)
        if first > MAX_INT64 - PRODUCER_IDS:
            raise LogError("all producer ids have been given away")
        ids = range(first, first + PRODUCER_IDS)
        self.reserve_producer_ids(ids.stop)
        return ids

    def reserve_producer_ids(self, first_free: int) -> None:
        """Reserve the ids below `first_free`: neither Octavo nor Kafka gives them out. Raises as `create_topic`."""
        node_id = self._take_charge()
        if first_free > self.image.next_producer_id:
            broker = self.image.brokers.get(node_id)
            epoch = -1 if broker is None else broker.broker_epoch
            self._append([ProducerIdsRecord(broker_id=node_id, broker_epoch=epoch, next_producer_id=first_free)])

    def _new_directories(self, count: int) -> list[UUID]:
        """Choose directories for new partitions of this node."""
        return self.placement.choose(count, self._survey().load)

    def _topic(self, name: str) -> Topic:
        try:
            return self.topics[name]
        except KeyError:
            raise InvalidInput(f"there is no topic {name!r}") from None

    def _append(self, records: Sequence[MetadataRecord]) -> None:
        assert self._log is not None
        self._log.append(records, timestamp_ms=self._clock())

    def settle(self) -> None:
        """Read the metadata log again if an exception interrupted an append: what is on the disk counts."""
        if self._log is not None and self._log.is_in_doubt:
            log = read_cluster_log(self._storage, self.metadata_folder / FOLDER)
            log.sync()
            self._log = log

    # Identity

    def _complete(self) -> None:
        """Give every folder an identity, and a new directory its metadata log."""
        if self.others_decide() is not None:
            return  # then nothing may be changed
        if self._log is not None:
            self._log.sync()
        known = self._whose.any
        if known is None and self._log is None:
            self._create(MetaProperties(cluster_id=write_uuid(random_uuid()), node_id=self._new_node_id))
        elif known is None:
            self._identify(self._voter_identity())
        elif known.version == 1:
            self._identify(known)

    def _create(self, node: MetaProperties, records: Sequence[MetadataRecord | UnknownRecord] = FEATURES) -> None:
        """Create the metadata log, and then the identity, so that a directory with an identity always has a log."""
        assert node.node_id is not None
        present = self.identity.get(self.metadata_folder)
        create_cluster_log(
            self._storage,
            self.metadata_folder,
            node_id=node.node_id,
            directory_id=(None if present is None else present.directory_id) or random_uuid(),
            records=records,
            timestamp_ms=self._clock(),
        )
        self._log = read_cluster_log(self._storage, self.metadata_folder / FOLDER)
        self._identify(node)

    def _identify(self, node: MetaProperties) -> None:
        voters = [voter for voter in self.image.voter_details if voter.id == node.node_id]
        self._surveyed = TopicSurvey()  # folders may be known by other ids from now on
        self._whose.complete(node, (self.metadata_folder, voters[0].directory_id) if voters else None)

    def _voter_identity(self) -> MetaProperties:
        """Return an identity for folders that lost `meta.properties`: that of the only voter.

        The metadata log names the voters, but no cluster, so the cluster id is new.
        """
        voters = self.image.voter_details
        if len(voters) != 1:
            raise BadDirectory(
                self.metadata_folder, f"it has no {META_PROPERTIES}, and its metadata do not tell which node's they are"
            )
        return MetaProperties(cluster_id=write_uuid(random_uuid()), node_id=voters[0].id)

    def _take_charge(self) -> int:
        """Return the id of this node, after creating its metadata log if needed. Raises if it may not make changes."""
        if self._read_only:
            raise LogError("the directory was opened to be read only")
        self.check_charge()
        identity = self._whose.any
        assert identity is not None
        if self._log is None:
            identity = MetaProperties(
                cluster_id=write_uuid(random_uuid()) if identity.cluster_id is None else identity.cluster_id,
                node_id=self._new_node_id if identity.node_id is None else identity.node_id,
            )
            self._create(identity, self._first_records())
        assert self.node_id is not None
        return self.node_id

    def check_charge(self) -> None:
        """Raise `OthersDecide` if this node does not control its partitions alone."""
        reason = self.others_decide()
        if reason is not None:
            raise OthersDecide(self.metadata_folder, reason)

    def _first_records(self) -> Sequence[MetadataRecord | UnknownRecord]:
        """Return the first records of a new metadata log: those of `bootstrap.checkpoint`, or else `FEATURES`."""
        path = self.metadata_folder / BOOTSTRAP_CHECKPOINT
        if not path.exists():
            return FEATURES
        contents = snapshot_records(self._storage, path)
        return [content for content in contents if isinstance(content, MetadataRecord | UnknownRecord)]


def _config_records(
    resource: str, config: Mapping[str, str | None], resource_type: int = TOPIC_RESOURCE
) -> list[MetadataRecord]:
    return [
        ConfigRecord(resource_type=resource_type, resource_name=resource, name=name, value=value)
        for name, value in sorted(config.items())
    ]


def _metadata_folder(folders: Sequence[Path]) -> Path:
    """Return the folder with the metadata log; else the one that Kafka formatted for it; else the first."""
    found = [folder for folder in folders if has_cluster_log(folder / FOLDER)]
    if len(found) > 1:
        raise BadDirectory(found[1], f"it has metadata, and so has {found[0]}: only one of them can be right")
    formatted = (folder for folder in folders if (folder / BOOTSTRAP_CHECKPOINT).exists())
    return found[0] if found else next(formatted, folders[0])

"""The data directory of a broker that is a member of a cluster: `MemberDirectory`, as Apache Kafka's brokers have it.

Its controllers decide which partitions are in it. When it is opened, all logs in it are opened, as followers whose high
watermarks are those of the checkpoint. What is not in the metadata is put away once the controllers have said what is
committed (`adopt_metadata`): until then nobody knows.

The mark of a clean shutdown has the epoch under which the broker was registered. The controllers take its replicas for
complete if the next registration names that epoch. So the mark is written last, when everything is on the disk.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from octavo.cluster.messages import TopicIdPartition
from octavo.errors import BadDirectory, InvalidConfig, OctavoError, UnknownPartition
from octavo.log.clock import Clock, monotonic_ms, wall_clock_ms
from octavo.log.config.broker_defaults import ALL_BROKERS, BROKER_RESOURCE, BrokerDefaults, TopicConfig
from octavo.log.directory.data_directory import DataDirectory, lock_folder, make_folder
from octavo.log.directory.data_folder import DataFolder, abandon
from octavo.log.directory.identity import take_identity
from octavo.log.files.clean_shutdown import NO_BROKER_EPOCH
from octavo.log.files.partition_metadata import read_topic_id
from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.followed.member_metadata import MemberMetadata
from octavo.log.followed.opening import open_followed
from octavo.log.followed.own_snapshots import MetadataLimits
from octavo.log.log import Log
from octavo.log.metadata.image import TOPIC_RESOURCE, Image, Topic
from octavo.log.metadata.sorted_map import SortedMap
from octavo.log.names import BOOTSTRAP_CHECKPOINT, Aside, TopicPartition
from octavo.log.partition_folders import Paths, check_data_folder, folder_paths
from octavo.log.recovery.recover import Recover
from octavo.log.recovery_report import OnProgress
from octavo.log.storage import DISK, Storage

_LIMITS: Final = MetadataLimits()


class MemberDirectory(DataDirectory):
    """The directory of a member of a cluster. Get one from `open_member`; `close` it."""

    def __init__(
        self,
        folder: DataFolder,
        metadata: MemberMetadata,
        defaults: BrokerDefaults,
        *,
        storage: Storage,
        clock: Clock,
        monotonic: Clock,
        new_id: Callable[[], uuid.UUID],
    ) -> None:
        """Do not call this; use `open_member`."""
        super().__init__(
            [folder],
            metadata,
            defaults,
            storage=storage,
            clock=clock,
            monotonic=monotonic,
            new_id=new_id,
            on_progress=None,
        )
        self.metadata: Final[FollowedMetadata] = metadata.followed
        self._folder: Final = folder
        self._ids: Final[dict[TopicIdPartition, TopicPartition]] = {}  # the partitions whose topic ids are known
        self._keys: Final[dict[TopicPartition, TopicIdPartition]] = {}  # the other way round
        self._configs: SortedMap[tuple[int, str], Mapping[str, str]] = SortedMap()  # those that the logs have
        self._has_adopted = False
        identity = metadata.identity[folder.path]
        assert identity.directory_id is not None  # `open_member` sees to it
        self.directory_id: Final[uuid.UUID] = identity.directory_id

    def open_logs(self, on_progress: OnProgress | None) -> None:
        """Open the logs of all partitions, as followers."""
        self._folder.begin()
        self._configs = self.cluster.configs
        for partition, path in list(self._folder.partitions.items()):
            topic_id = read_topic_id(self._storage, path)
            if topic_id is not None:
                self._note(topic_id, partition)
            self._open_log(partition, topic_id, on_progress=on_progress)

    def _open_log(
        self,
        partition: TopicPartition,
        topic_id: uuid.UUID | None,
        *,
        on_progress: OnProgress | None = None,
        is_new: bool = False,
    ) -> None:
        log = self._folder.open_log(
            partition,
            config_of(self._defaults, self.cluster, topic_id),
            is_only_replica=False,
            clock=self._clock,
            on_progress=on_progress,
            is_new=is_new,
        )
        log.become_follower()

    # ------------------------------------------------------------------------------------------------------- replicas

    def log_of(self, partition: TopicIdPartition) -> Log:
        """Return the log of a partition by its topic's id. Raises `UnknownPartition`."""
        found = self._ids.get(partition)
        log = None if found is None else self._folder.log(found)
        if log is None:
            raise UnknownPartition(f"there is no partition {partition.partition} of a topic {partition.topic_id}")
        return log

    def adopt_metadata(
        self, deleted: Iterable[TopicIdPartition], made: Iterable[TopicIdPartition]
    ) -> list[TopicPartition]:
        """Do what the metadata, as they are now, want of the disk: put replicas away, make others, apply settings.

        deleted: partitions of which this broker has no replica any more
        made: partitions of which it has one, whether their folders are there or not

        The first time, folders that the metadata do not place here are put away as strays. Returns their partitions.
        Raises `BadDirectory` for a topic that this broker cannot have a replica of, and `OSError`.
        """
        strays = [] if self._has_adopted else self.strays()
        self._has_adopted = True
        self.put_away(deleted)
        self.make_replicas(made)
        self.apply_configs()
        return strays

    def strays(self) -> list[TopicPartition]:
        """Rename the folders whose topic is not in the metadata, or not placed on this node. Returns their partitions.

        They stay until somebody removes them, as in Kafka: nobody knows why they are here.
        """
        image, placed = self.cluster, set()
        for partition, found in self._ids.items():
            state = image.partitions_of(partition.topic_id).get(partition.partition)
            topic = image.topic(partition.topic_id)
            if state is not None and self.node_id in state.replicas and topic is not None and topic.name == found.topic:
                placed.add(found)
        strays = [partition for partition in self._folder.partitions if partition not in placed]
        self._set_aside(strays, Aside.STRAY)
        return strays

    def put_away(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Close partitions, and rename their folders for deletion. Those that are not here are skipped."""
        self._set_aside(list(filter(None, map(self._ids.get, partitions))), Aside.DELETE)

    def _set_aside(self, partitions: list[TopicPartition], why: Aside) -> None:
        if not partitions:
            return
        with self._lock:
            self._check_lock()
            try:
                self._folder.put_away(partitions, self._clock(), why)
            finally:
                for partition in partitions:
                    if partition not in self._folder.partitions and partition in self._keys:
                        del self._ids[self._keys.pop(partition)]

    def make_replicas(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Make the logs of those partitions that have none here, empty. Either all of a topic's are made, or none."""
        missing: dict[uuid.UUID, list[int]] = {}
        for partition in partitions:
            if partition not in self._ids:
                missing.setdefault(partition.topic_id, []).append(partition.partition)
        for topic_id, numbers in missing.items():
            topic = self.cluster.topic(topic_id)
            if topic is not None:
                with self._lock:
                    self._check_lock()
                    self._make(topic, numbers)

    def _make(self, topic: Topic, numbers: list[int]) -> None:
        refuse_tiered(self._folder.path, topic)
        made = [TopicPartition(topic.name, number) for number in numbers]
        others = [partition for partition in made if partition in self._folder.partitions]
        self._set_aside(others, Aside.STRAY)  # of an earlier topic of this name
        self._folder.make_partitions(made, topic.id)
        try:
            for partition in made:
                self._open_log(partition, topic.id, is_new=True)
        except OSError:
            self._folder.take_back(made)
            raise
        for partition in made:
            self._note(topic.id, partition)

    def _note(self, topic_id: uuid.UUID, partition: TopicPartition) -> None:
        key = TopicIdPartition(topic_id, partition.partition)
        self._ids[key], self._keys[partition] = partition, key

    def apply_configs(self) -> None:
        """Give the logs the settings that have changed in the metadata since the last time."""
        now = self.cluster.configs
        changed = now.changed_since(self._configs)
        if not changed:
            return
        of_broker = {(BROKER_RESOURCE, ALL_BROKERS), (BROKER_RESOURCE, str(self.node_id))}
        if changed & of_broker:
            with contextlib.suppress(InvalidConfig):  # the controllers have taken it: then the old settings stay
                self._defaults.refresh()
        if changed & of_broker:
            partitions = list(self._folder.partitions)
        else:
            topics = [name for kind, name in changed if kind == TOPIC_RESOURCE]
            partitions = [each for topic in topics for each in self._folder.partitions.of_topic(topic)]
        for partition in partitions:
            self._apply_config(partition)
        self._configs = now

    def _apply_config(self, partition: TopicPartition) -> None:
        log, key = self._folder.log(partition), self._keys.get(partition)
        if log is None or key is None:
            return
        config = config_of(self._defaults, self.cluster, key.topic_id)
        if config.config.is_compacted != log.config.is_compacted:
            self._folder.prepare_policy(partition)
        self._folder.set_config(partition, config)

    # ---------------------------------------------------------------------------------------------------------- close

    @property
    def epoch_of_clean_shutdown(self) -> int:
        """The broker epoch under which the directory was closed cleanly; -1 if it was not."""
        return self._folder.broker_epoch if self._folder.was_clean else NO_BROKER_EPOCH

    def set_clean_epoch(self, broker_epoch: int) -> None:
        """Have `close` write this broker epoch into the mark of a clean shutdown, instead of the one that was found."""
        self._folder.broker_epoch = broker_epoch

    def note_failure(self) -> None:
        """Have `close` leave no mark of a clean shutdown: the disk has failed, and nobody knows what is on it."""
        self._folder.has_failed = True


def open_member(
    paths: Paths,
    *,
    node_id: int,
    new_cluster_id: Callable[[], str],
    broker_config: Mapping[str, str],
    storage: Storage = DISK,
    clock: Clock = wall_clock_ms,
    monotonic: Clock = monotonic_ms,
    new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    limits: MetadataLimits = _LIMITS,
    on_damage: Callable[[str], object] = lambda _: None,
    on_progress: OnProgress | None = None,
    lock_timeout: float = 0,
) -> MemberDirectory:
    """Open the directory of a member of a cluster, or make it.

    new_cluster_id: returns the id of the cluster; called if the folder has no identity yet
    broker_config: the settings of the broker, from which topics inherit
    limits: how much of the metadata's past is kept
    on_damage: is told, in a sentence, that the metadata are damaged and will be fetched anew

    Everything is checked before anything is changed. Raises `DirectoryLocked`. Raises `BadDirectory`, `CorruptFile` and
    `OSError` if it is no folder of this node of a cluster, or cannot be read or written.
    """
    several = folder_paths(paths)
    if len(several) > 1:
        raise BadDirectory(several[1], "a member of a cluster has one log directory so far, not several")
    [path] = several
    check_data_folder(path)
    make_folder(path, storage)
    folder = lock_folder(path, storage, time.monotonic() + lock_timeout)
    folder.recover = Recover.AS_KAFKA  # a leader has what is cut off, or it was not committed
    followed: FollowedMetadata | None = None
    try:
        take_identity(folder, node_id=node_id, new_cluster_id=new_cluster_id)
        followed = open_followed(
            path, folder.lock, storage=folder.storage, clock=clock, limits=limits, on_damage=on_damage
        )
        metadata = MemberMetadata(path, followed, node_id=node_id, storage=folder.storage, clock=clock)
        was_served = (path / BOOTSTRAP_CHECKPOINT).exists()  # an empty folder that this broker takes gets none
        defaults = BrokerDefaults(metadata, broker_config, as_broker=True, was_served=was_served)
        _check(folder, followed.image, defaults, node_id)
        directory = MemberDirectory(
            folder, metadata, defaults, storage=folder.storage, clock=clock, monotonic=monotonic, new_id=new_id
        )
        directory.open_logs(on_progress)
    except BaseException as error:
        if followed is not None:
            with contextlib.suppress(OctavoError, OSError):
                followed.close()
        abandon([folder], error)
        raise
    return directory


def _check(folder: DataFolder, image: Image, defaults: BrokerDefaults, node_id: int) -> None:
    """Check all partitions without changing anything, and that this node can be a broker of the cluster."""
    if image.voters is not None and node_id in image.voters:
        raise BadDirectory(folder.path, f"node {node_id} is one of the cluster's controllers, and not only a broker")
    for partition, path in folder.partitions.items():
        topic_id = read_topic_id(folder.storage, path)
        topic = None if topic_id is None else image.topic(topic_id)
        if topic is not None:
            refuse_tiered(folder.path, topic)
        folder.check(partition, may_have_gaps=config_of(defaults, image, topic_id).may_be_compacted)


def config_of(defaults: BrokerDefaults, image: Image, topic_id: uuid.UUID | None) -> TopicConfig:
    """Return the settings of a topic by its id; if it is not in the metadata, nothing may be deleted from it."""
    return defaults.config_of(None if topic_id is None else image.topic(topic_id))


def refuse_tiered(folder: Path, topic: Topic) -> None:
    """Raise `BadDirectory` for a topic whose records are partly somewhere else."""
    if topic.config.get("remote.storage.enable", "").strip().lower() == "true":
        raise BadDirectory(folder, f"topic {topic.name} is tiered (remote.storage.enable), and Octavo has no tiers yet")
